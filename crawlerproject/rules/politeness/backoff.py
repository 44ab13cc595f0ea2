"""Decides how long a troubled host rests, how often a failure is tried again, and when a host is left alone."""

from __future__ import annotations

import math
import random
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from crawlerproject.reasons import Reason

_MINUTE = 60.0
HOUR_SECONDS = 3600.0
# StormCrawler's back-off (its pull request 1984): ten per cent either way, so that blocks do not expire together.
JITTER_SHARE = 0.1
# The same: a host that was quiet for half an hour is forgiven. Also Nutch's exception counter.
FORGIVE_SECONDS = 1800.0
# 60 s doubled eleven times is past a day: a higher exponent only risks an overflow.
_MAX_DOUBLINGS = 40
# A minute doubled ten times is 17 hours; by then the breaker decides.
_MAX_FAILURE_DOUBLINGS = 10
# Nutch asks again a day after a failure that may pass (AbstractFetchSchedule.setPageRetrySchedule).
_LEFT_ALONE_SECONDS = 86_400.0
# A month then has six probes, after 1, 3, 7, 14, 21 and 28 days: as many requests as a dead site's first day (ours).
_MOST_LEFT_ALONE_SECONDS = 7 * 86_400.0


class Failure(NamedTuple):
    """What a kind of failure costs."""

    base_wait_seconds: float  # doubled with each failure of the host in a row
    max_tries: int  # of one URL, the first included
    host_wide: bool  # the host waits, not only the URL


# Base waits after BUbiNG (ParsingThread's table): an hour for a host that cannot be found, reached or trusted,
# a minute for one that broke off. Its retries: DNS, connect, closed 2; others 5; TLS 0. Tries = retries + 1.
_FAILURES: dict[Reason, Failure] = {
    Reason.DNS_NOT_FOUND: Failure(HOUR_SECONDS, 3, True),
    Reason.DNS_FAILED: Failure(15 * _MINUTE, 3, True),  # the resolver's trouble more often than the host's: Heritrix
    Reason.CONNECT_TIMEOUT: Failure(HOUR_SECONDS, 3, True),
    Reason.CONNECT_REFUSED: Failure(HOUR_SECONDS, 3, True),
    Reason.CONNECT_FAILED: Failure(HOUR_SECONDS, 3, True),
    Reason.TLS_CERTIFICATE: Failure(HOUR_SECONDS, 3, True),  # 2 more than BUbiNG: they are renewed
    Reason.TLS_FAILED: Failure(HOUR_SECONDS, 2, True),  # a handshake may be cut by chance: one more (ours)
    Reason.PROXY_FAILED: Failure(_MINUTE, 6, False),  # our side's trouble
    Reason.FIRST_BYTE_TIMEOUT: Failure(_MINUTE, 6, True),
    Reason.DISCONNECTED: Failure(_MINUTE, 3, True),
    Reason.BAD_RESPONSE: Failure(_MINUTE, 2, False),
    Reason.HEADER_TOO_LARGE: Failure(0.0, 1, False),  # the same next time
    Reason.OUR_LIMIT: Failure(_MINUTE, 6, False),  # our side's trouble; a crawl counts no try for it at all
    Reason.INTERNAL_ERROR: Failure(_MINUTE, 2, False),  # ours: do not hammer while we are broken
    Reason.ROBOTS_UNREACHABLE: Failure(10 * _MINUTE, 6, True),  # StormCrawler: an hour; ours: sooner
    Reason.RATE_LIMITED: Failure(_MINUTE, 6, True),
    Reason.HTTP_ERROR: Failure(_MINUTE, 2, False),  # 5xx other than 503
    Reason.POISON: Failure(HOUR_SECONDS, 1, False),  # never sent; of a robots.txt the base is for its host
    Reason.PACE_GUARD: Failure(_MINUTE, 3, True),  # never sent; must not happen
}
_FINAL = Failure(0.0, 1, False)

# Total, so that no outcome can be without an answer: what is not a failure to try again is final.
FAILURES: dict[Reason, Failure] = {reason: _FAILURES.get(reason, _FINAL) for reason in Reason}

# Failures that speak against the host: the proxy's and our own do not, and what was never sent does not either.
THEIR_FAILURES = frozenset(_FAILURES) - {
    *(Reason.PROXY_FAILED, Reason.OUR_LIMIT, Reason.INTERNAL_ERROR, Reason.PACE_GUARD, Reason.POISON)
}

# No answer, and that may be the URL's doing: it says nothing of the rest of its host.
URLS_DOING = frozenset({Reason.FIRST_BYTE_TIMEOUT, Reason.DISCONNECTED, Reason.BAD_RESPONSE, Reason.HEADER_TOO_LARGE})

# The port did not take the connection: another address of the host may, and another port of it.
PORT_FAILURES = frozenset(
    {
        Reason.CONNECT_TIMEOUT,
        Reason.CONNECT_REFUSED,
        Reason.CONNECT_FAILED,
        Reason.TLS_CERTIFICATE,
        Reason.TLS_FAILED,
    }
)
# The same of an address: a certificate does not depend on which of a host's addresses shows it.
ADDRESS_FAILURES = frozenset({Reason.CONNECT_TIMEOUT, Reason.CONNECT_REFUSED, Reason.CONNECT_FAILED})
# There is no such host, as far as can be seen: of one that never answered.
NOT_THERE = ADDRESS_FAILURES | {Reason.DNS_NOT_FOUND, Reason.DNS_FAILED}
# Nothing of the request can have reached a server: what must be sent only once may be sent again.
UNSENT_FAILURES = PORT_FAILURES | {Reason.DNS_NOT_FOUND, Reason.DNS_FAILED, Reason.PACE_GUARD}


class RestLimits(NamedTuple):
    """The bounds of a host's rests."""

    start_seconds: float  # BACKOFF_START_SECONDS
    max_seconds: float  # BACKOFF_MAX_SECONDS
    retry_after_max_seconds: float  # RETRY_AFTER_MAX_SECONDS
    forgive_seconds: float = FORGIVE_SECONDS


class Rest(NamedTuple):
    """A host's rests so far. Epoch seconds."""

    escalation: int = 0  # rests in a row without forgiveness
    until: float = 0.0  # no request before this
    last_trouble: float = 0.0


def retry_after_seconds(header: str | None, now: float, cap: float) -> float | None:
    """Seconds that a Retry-After header asks for (RFC 9110 10.2.3: seconds or an HTTP date), at most ``cap``.

    None when there is no readable one; 0 for a date that is past. Of a repeated header the first counts.
    """
    if not header:
        return None
    text = header.strip()
    number = text.partition(",")[0].strip()
    if number.isascii() and number.replace(".", "", 1).isdigit():
        # Hundreds of digits mean "very long", and only a bounded number is turned into a float.
        return min(float(number[:300]), cap)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, TypeError, OSError):
        return None
    return min(max(moment - now, 0.0), cap)


def rest_seconds(escalation: int, start_seconds: float, max_seconds: float, rng: random.Random) -> float:
    """How long the ``escalation``-th rest in a row lasts (1 is the first): doubling, ±10 %, never above the maximum."""
    doubled = start_seconds * math.ldexp(1.0, min(max(escalation, 1) - 1, _MAX_DOUBLINGS))
    jittered = min(doubled, max_seconds) * (1 + JITTER_SHARE * (2 * rng.random() - 1))
    return min(jittered, max_seconds)


def after_trouble(
    rest: Rest, now: float, retry_after_seconds: float | None, limits: RestLimits, rng: random.Random
) -> Rest:
    """The host asked us to wait, or failed. Retry-After wins; without a positive one the rest doubles.

    Trouble that arrives while the host already rests is of the same block: it may lengthen, never escalate.
    """
    asked = min(retry_after_seconds, limits.retry_after_max_seconds) if retry_after_seconds else 0.0
    if now < rest.until:
        return rest._replace(until=max(rest.until, now + asked), last_trouble=now)
    rest = after_success(rest, now, limits)  # quiet for long enough: starts again
    escalation = rest.escalation + 1
    wait = asked if asked > 0 else rest_seconds(escalation, limits.start_seconds, limits.max_seconds, rng)
    return Rest(escalation, now + wait, now)


def after_success(rest: Rest, now: float, limits: RestLimits | None = None) -> Rest:
    """The host answered well: forgiven when it was quiet for long enough since its last trouble and rest."""
    forgive = limits.forgive_seconds if limits else FORGIVE_SECONDS
    return Rest() if rest.escalation and now - max(rest.until, rest.last_trouble) >= forgive else rest


class Door(NamedTuple):
    """A host's door for external requests: those that only other sites led to. Epoch seconds.

    The trouble that these meet closes it and leaves the host's own rests and breaker as they are.
    """

    escalation: int = 0  # times it closed in a row without forgiveness
    until: float = 0.0  # no external request before this
    last_trouble: float = 0.0
    rested: bool = False  # for one of them the host itself has rested, and has answered no request of its own since
    reason: str = ""  # the last trouble's


OPEN_DOOR = Door()
"""Shared: nearly every host has it."""


def door_after_trouble(
    door: Door, reason: str, now: float, wait_seconds: float, most_seconds: float, rng: random.Random
) -> Door:
    """An external request met trouble: the door closes, for ``wait_seconds`` the first time.

    That is doubled with each further time in a row, up to ``most_seconds``, and never cut short.
    """
    if door.escalation and now - max(door.until, door.last_trouble) >= FORGIVE_SECONDS:
        door = OPEN_DOOR._replace(rested=door.rested)
    escalation = door.escalation + 1
    seconds = max(wait_seconds, rest_seconds(escalation, wait_seconds, most_seconds, rng))
    return Door(escalation, max(door.until, now + seconds), now, door.rested, reason)


def failure_rest_seconds(failure: Failure, failures: int, max_seconds: float) -> float:
    """How long a host rests after its ``failures``-th failure in a row, when the last was of this kind."""
    doublings = min(max(failures, 1) - 1, _MAX_FAILURE_DOUBLINGS)
    return min(math.ldexp(failure.base_wait_seconds, doublings), max_seconds)


class BreakerLimits(NamedTuple):
    """When a host is parked, and for how long."""

    max_failures: int = 5  # HOST_MAX_FAILURES, in a row
    park_seconds: float = HOUR_SECONDS  # BUbiNG's wait for a host that cannot be reached
    max_park_seconds: float = 86_400.0


class Breaker(NamedTuple):
    """A host's circuit breaker. Once it has opened, the host's next request is a probe."""

    failures: int = 0  # in a row
    opened: int = 0  # times in a row: each doubles the park; 2 or more: a probe failed too
    until: float = 0.0  # epoch seconds of the probe, if the last failure opened it; else 0


def breaker_failed(breaker: Breaker, now: float, limits: BreakerLimits, rng: random.Random) -> Breaker:
    """After a failure: the breaker opens at the limit, and again when the probe fails; an answer makes a new one."""
    failures, opened = breaker.failures + 1, breaker.opened
    if not opened and failures < limits.max_failures:
        return Breaker(failures)
    park = rest_seconds(opened + 1, limits.park_seconds, limits.max_park_seconds, rng)
    return Breaker(failures, opened + 1, now + park)


def left_alone_seconds(opened: int) -> float:
    """How long a host that does not answer its probe is left alone, when its breaker has opened so often in a row.

    A day after the first probe, doubled with each further one, at most a week.
    """
    doublings = min(max(opened - 2, 0), _MAX_DOUBLINGS)
    return min(math.ldexp(_LEFT_ALONE_SECONDS, doublings), _MOST_LEFT_ALONE_SECONDS)
