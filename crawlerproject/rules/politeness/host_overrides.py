"""Decides which hosts have a pace of their own: lines of a host pattern and the numbers that it changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from crawlerproject.rules.politeness.pace import PacePreset
from crawlerproject.rules.url.urls import host_name

_NUMBERS = frozenset(PacePreset._fields)
# One number instead of a formula: the pause is this, whatever the response times.
_FIXED = "delay_seconds"


class SkippedLine(NamedTuple):
    """A line that is skipped."""

    line: int
    text: str
    why: str


class HostPaces:
    """``example.org delay_seconds=20``: that host. ``*.example.org …``: it and all below. The longest wins."""

    def __init__(self, hosts: dict[str, dict[str, Any]] | None = None) -> None:
        self._hosts = hosts or {}

    def __len__(self) -> int:
        return len(self._hosts)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> tuple[Self, list[SkippedLine]]:
        """The paces of a file's lines, and the lines that say nothing usable; ``#`` begins a comment."""
        hosts: dict[str, dict[str, Any]] = {}
        problems = []
        for number, line in enumerate(lines, 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            try:
                hosts[_pattern(words[0])] = _numbers(words[1:])
            except ValueError as error:
                problems.append(SkippedLine(number, line.strip(), str(error)))
        return cls(hosts), problems

    def preset(self, host: str, base: PacePreset) -> PacePreset:
        """The pace of a host key: ``base`` with the numbers that its most specific line changes."""
        if not self._hosts:
            return base
        given = self._hosts.get(host) or self._hosts.get(name := host_name(host))
        while given is None:
            given = self._hosts.get("*." + name)
            if given is None and "." not in name:
                return base
            name = name.partition(".")[2]
        if _FIXED in given:
            seconds = given[_FIXED]
            return PacePreset(0, 0, seconds, seconds, seconds)
        changed = base._replace(**given)
        if changed.max_seconds is not None and changed.max_seconds < changed.min_seconds:
            return changed._replace(max_seconds=changed.min_seconds)
        return changed


def _pattern(word: str) -> str:
    pattern = word.lower().rstrip(".")
    if "/" in pattern or "*" in pattern.removeprefix("*.") or not pattern.removeprefix("*."):
        raise ValueError("is no host, nor *. and a domain")
    return pattern


def _numbers(words: list[str]) -> dict[str, float]:
    given: dict[str, float] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name != _FIXED and name not in _NUMBERS:
            raise ValueError(f"has {name!r}, which is none of {_FIXED}, {', '.join(PacePreset._fields)}")
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise ValueError(f"has {word!r}, where a number of 0 or more is wanted")
        given[name] = int(value) if name == "window" else value
    if not given:
        raise ValueError(f"names no number, such as {_FIXED}=20")
    if _FIXED in given and len(given) > 1:
        raise ValueError(f"has {_FIXED} and a number that it would make idle")
    return given
