"""Decides how long to leave a host alone after an answer: five paces, hosts with one of their own; and DNS's pace."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from crawlerproject.rules.url.urls import host_name


class PacePreset(NamedTuple):
    """delay = clamp(multiplier x mean response time of the last ``window`` answers, min, max)."""

    multiplier: float
    window: int  # answers; 0: response times do not matter
    min_seconds: float
    max_seconds: float | None  # None: no bound
    start_seconds: float  # before the first answer


PRESETS: dict[str, PacePreset] = {
    # Ours: five seconds unless the server is slow (Mischel's mean of the last five, a milder factor).
    "default": PacePreset(10, 5, 5, 120, 5),
    # "Building a polite & fast web crawler": one request every five seconds.
    "fixed5": PacePreset(0, 0, 5, 5, 5),
    # Mischel, "Politeness": mean of the last five response times x 30, never under 15 s.
    "thirtyfold": PacePreset(30, 5, 15, None, 15),
    # Marginalia: wait as long as the server took, 250 ms to 2.5 s.
    "mirror": PacePreset(1, 1, 0.25, 2.5, 1),
    # Nielsen ("How to crawl a quarter billion webpages in 40 hours"): at least 70 s.
    "fixed70": PacePreset(0, 0, 70, 70, 70),
}

# A pause beyond this (ours: 31 days) is how an owner says "leave me alone": no page of the host is asked for.
LEAVE_ALONE_SECONDS = 31 * 86_400.0
# What is kept of a pause that is longer still (some 30 years): sums of moments and pauses stay moments.
LONGEST_SECONDS = 1e9

# Chance lengthens a pause by up to this share, so that hosts do not beat in step. StormCrawler takes 10 %, which costs
# a crawl that politeness bounds 5 % of its rate (94.8 % of the limit by our measurement); answers' own times differ
# by more than these 2 %.
JITTER_SHARE = 0.02

# Of a host with a pace of its own: what its line may change, or one number, the pause whatever the response times.
_NUMBERS, _FIXED = frozenset(PacePreset._fields), "delay_seconds"


def pace_preset(name: str, given: Mapping[str, float | None]) -> PacePreset:
    """A preset with single numbers overridden, by their field's name (None: the preset's).

    Raises ValueError, which says in one sentence what is wrong.
    """
    if name not in PRESETS:
        raise ValueError(f"PACE_PRESET must be one of {', '.join(PRESETS)}, not {name!r}")
    chosen: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    for key, value in chosen.items():
        if not 0 <= value < float("inf"):
            raise ValueError(f"PACE_{key.upper()} must be a number of 0 or more, not {value!r}")
    preset = PRESETS[name]._replace(**chosen)
    if preset.max_seconds is not None and preset.max_seconds < preset.min_seconds:
        raise ValueError(
            f"PACE_MAX_SECONDS ({preset.max_seconds:g}) is below PACE_MIN_SECONDS ({preset.min_seconds:g})"
        )
    return preset


def delay_seconds(preset: PacePreset, samples: Sequence[float], floor_seconds: float = 0.0) -> float:
    """The pause after an answer's end; ``samples`` are response times, seconds, oldest first.

    ``floor_seconds`` (Crawl-delay, Request-rate) holds even above the preset's maximum. Beyond LEAVE_ALONE_SECONDS
    it is no pause: pages are refused, and robots.txt itself is asked for at the usual pace.
    """
    if samples and preset.window:
        delay = preset.multiplier * sum(samples) / len(samples)
        if preset.max_seconds is not None and delay > preset.max_seconds:
            delay = preset.max_seconds
        delay = max(delay, preset.min_seconds)
    else:
        delay = max(preset.start_seconds, preset.min_seconds) if not samples else preset.min_seconds
    return max(delay, floor_seconds) if floor_seconds <= LEAVE_ALONE_SECONDS else delay


def after_answer(
    preset: PacePreset, samples: tuple[float, ...], ttfb_seconds: float | None, *, ok: bool
) -> tuple[float, ...]:
    """The response times to remember after an answer that took ``ttfb_seconds`` to its first byte.

    An answer that is not ``ok`` (failed, 5xx, 429) is only remembered when it does not lower the delay:
    a broken server answers fast. None: no first byte came.
    """
    if preset.window < 1 or ttfb_seconds is None:
        return samples
    grown = (*samples, max(ttfb_seconds, 0.0))[-preset.window :]
    if ok or delay_seconds(preset, grown) >= delay_seconds(preset, samples):
        return grown
    return samples


def jitter_seconds(delay: float, rng: random.Random) -> float:
    """What chance adds to a pause of ``delay`` seconds: never less than nothing."""
    return delay * JITTER_SHARE * rng.random()


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


class QuestionRate:
    """When a service that many share, as DNS is, may be asked once more: so often a second, a second's worth at once.

    ``now`` is in seconds of any clock.
    """

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._most = self._left = max(per_second, 1.0)
        self._at: float | None = None

    def ask(self, now: float) -> float:
        """Reserve the next question; it may be sent after so many seconds, behind those that were reserved before."""
        self._fill(now)
        self._left -= 1.0
        return max(0.0, -self._left / self._per_second)

    def room(self, now: float) -> int:
        """How many questions may be sent now; negative while more are reserved than that."""
        self._fill(now)
        return int(self._left // 1)

    def _fill(self, now: float) -> None:
        if self._at is not None and now > self._at:  # not when the clock was set back
            self._left = min(self._most, self._left + (now - self._at) * self._per_second)
        self._at = now
