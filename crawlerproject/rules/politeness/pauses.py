"""Decides how long a host is left in peace: its pause after an answer, and its rests after trouble.

Five paces, hosts with one of their own, and the pace of questions to DNS; then how long a troubled host rests, how
often a failure is tried again, and when a host is left alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, Self

from crawlerproject.reasons import Reason
from crawlerproject.rules.url.refused_urls import UnusableLine
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


class HostPaces:
    """``example.org delay_seconds=20``: that host. ``*.example.org …``: it and all below. The longest wins."""

    def __init__(self, hosts: dict[str, dict[str, Any]] | None = None) -> None:
        self._hosts = hosts or {}

    def __len__(self) -> int:
        return len(self._hosts)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> tuple[Self, list[UnusableLine]]:
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
                problems.append(UnusableLine(number, line.strip(), str(error)))
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
            raise ValueError(f"has {name!r}, which is not among {_FIXED}, {', '.join(PacePreset._fields)}")
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


_MINUTE = 60.0
HOUR_SECONDS = 3600.0
# StormCrawler's back-off (its pull request 1984): ten per cent either way, so that blocks do not expire together.
REST_JITTER_SHARE = 0.1
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
    jittered = min(doubled, max_seconds) * (1 + REST_JITTER_SHARE * (2 * rng.random() - 1))
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


def parked_seconds(opened: int) -> float:
    """How long a host that does not answer its probe is left alone, when its breaker has opened so often in a row.

    A day after the first probe, doubled with each further one, at most a week.
    """
    doublings = min(max(opened - 2, 0), _MAX_DOUBLINGS)
    return min(math.ldexp(_LEFT_ALONE_SECONDS, doublings), _MOST_LEFT_ALONE_SECONDS)
