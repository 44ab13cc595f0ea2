"""Decides how far ahead a stored moment may lie: what is further was stored under a clock that was set back since."""

from __future__ import annotations

from typing import NamedTuple

from crawlerproject.rules.politeness.pauses import HOUR_SECONDS, JITTER_SHARE, REST_JITTER_SHARE, Door

# Clocks of two machines, and the time between an answer's end and its commit, differ by less (ours).
SLACK_SECONDS = 60.0
# 2 ** 10 hours are longer than any rest; a higher exponent only risks an overflow.
_MAX_DOUBLINGS = 10


class Longest(NamedTuple):
    """How long anything may be put off, seconds; "what may be" by the settings of this start."""

    rest_seconds: float = 86_400.0  # the longer of BACKOFF_MAX_SECONDS and RETRY_AFTER_MAX_SECONDS
    robots_seconds: float = 86_400.0  # ROBOTS_TTL_SECONDS
    turn_requests: int = 1  # answered in one turn and charged together: a page in the browser asks for more than one


class Waits(NamedTuple):
    """What a host waits for, as it was stored. Epoch seconds."""

    next_free: float
    name_free: float
    rest_until: float
    last_trouble: float
    delay_seconds: float
    failures: int  # in a row; or how often its breaker has opened, if that is more


def brought_back(waits: Waits, now: float, longest: Longest) -> Waits | None:
    """The same waits, each as long as it can be at most from now on; None when none is longer.

    A rest lasts from the last trouble to its end; a rest after a failure without an answer is an hour at first,
    and doubles. A pause is the host's delay, once for every request of its last turn.
    """
    length = waits.rest_until - waits.last_trouble if waits.last_trouble else 0.0
    if not 0 < length <= longest.rest_seconds:
        doubled = HOUR_SECONDS * 2.0 ** min(max(waits.failures - 1, 0), _MAX_DOUBLINGS)
        length = min(doubled * (1 + REST_JITTER_SHARE), longest.rest_seconds)
    rest_until = _cut(waits.rest_until, now, length)
    pause = waits.delay_seconds * (1 + JITTER_SHARE) * longest.turn_requests
    rests = max(0.0, rest_until - now)
    cut = waits._replace(
        next_free=_cut(waits.next_free, now, max(pause, rests)),
        name_free=_cut(waits.name_free, now, max(pause, rests)),
        rest_until=rest_until,
        last_trouble=_cut(waits.last_trouble, now, 0.0),
    )
    return None if cut == waits else cut


def door_brought_back(door: Door, now: float, longest: Longest) -> Door:
    """A host's door for external requests, closed no longer than it can be from now on; the same object if so."""
    until, last_trouble = _cut(door.until, now, longest.rest_seconds), _cut(door.last_trouble, now, 0.0)
    if (until, last_trouble) == (door.until, door.last_trouble):
        return door
    return door._replace(until=until, last_trouble=last_trouble)


def robots_brought_back(until: float, rest_until: float, now: float, longest: Longest) -> float:
    """Until when a robots.txt is good, or (negative) is not asked for since it cannot be reached."""
    if until >= 0:
        return _cut(until, now, longest.robots_seconds)
    return -_cut(-until, now, max(rest_until - now, HOUR_SECONDS))


def _cut(moment: float, now: float, longest: float) -> float:
    return now + longest if moment > now + longest + SLACK_SECONDS else moment
