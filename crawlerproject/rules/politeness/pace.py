"""Decides how long to leave a host alone after an answer: the five paces and what slows them; and DNS's pace."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


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
