"""Decides whether a host is on the never-crawl list: a listed domain excludes itself and all below it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from crawlerproject.rules.url.urls import UrlRefused, parse

# RFC 1035 2.3.1 and 2.3.4: 63 octets a label, 253 characters a name; "_" occurs in real host names.
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_MOST_CHARACTERS = 254  # with a root dot; of a longer text, which names no host, only the end is looked at
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")

_DELIMITERS = frozenset("/\\?#@:%")  # of an address; none is within a name


class UnusableLine(NamedTuple):
    """A line that could not be used; ``line`` counts from 1."""

    line: int
    text: str
    why: str


class Exclusion:
    """A list of domains never to be asked for anything. Immutable."""

    __slots__ = ("_lines",)

    def __init__(self, lines: Mapping[str, int] | None = None) -> None:
        self._lines: dict[str, int] = dict(lines or {})  # domain or IP address -> line it stands on

    @classmethod
    def parse(cls, lines: Iterable[str]) -> tuple[Exclusion, list[UnusableLine]]:
        """Read lines of one domain or IP address each, ``#`` comments; bad ones are returned as problems."""
        found: dict[str, int] = {}
        problems = []
        for number, line in enumerate(lines, 1):
            text = line.partition("#")[0].strip().removeprefix("\ufeff")
            if not text:
                continue
            domain = _domain(text)
            if domain:
                found.setdefault(domain, number)
            else:
                problems.append(UnusableLine(number, text[:100], "is neither a domain nor an IP address"))
        return cls(found), problems

    def __or__(self, other: Exclusion) -> Exclusion:
        """What either list excludes; line numbers are those of the first that has the domain."""
        if not self._lines or not other._lines:
            return self if self._lines else other
        return Exclusion(other._lines | self._lines)

    def excludes(self, host_name: str) -> bool:
        """Whether ``host_name`` (lower-case ASCII, no port) is a listed domain or below one."""
        lines = self._lines
        if not lines:
            return False
        name = host_name[-_MOST_CHARACTERS:]
        while True:
            if name in lines:
                return True
            _, dot, name = name.partition(".")
            if not dot:
                return host_name.endswith(".") and self.excludes(host_name[:-1])

    def domain_of(self, host_name: str) -> str | None:
        """The listed domain that excludes ``host_name``: itself or one above; None when none does."""
        name = host_name.rstrip(".")
        while name and name not in self._lines:
            name = name.partition(".")[2]
        return name or None

    def line_of(self, host_name: str) -> int | None:
        """The line of the list that excludes ``host_name``; None when none does."""
        domain = self.domain_of(host_name)
        return None if domain is None else self._lines[domain]

    @property
    def entries(self) -> Mapping[str, int]:
        """Every listed domain and address, and its line."""
        return self._lines

    @property
    def domains(self) -> frozenset[str]:
        """Every listed domain and address."""
        return frozenset(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def _domain(text: str) -> str:
    """The listed form of a line ("*.Example.org." is "example.org"); "" when it names no host."""
    bare = text.strip("[]")
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        pass
    else:
        return f"[{address.compressed}]" if address.version == 6 else str(address)
    name = text.lower().removeprefix("*").removeprefix(".").removesuffix(".")
    if not name.isascii():
        if not _DELIMITERS.isdisjoint(name):
            return ""
        try:
            name = parse(f"http://{name}/").host
        except UrlRefused:
            return ""
    return name if _NAME.fullmatch(name) else ""
