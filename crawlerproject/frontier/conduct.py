"""How a host is treated after an answer: its pace, its rests, its retries and when it is left alone.

Applies ``rules/pace`` and ``rules/backoff`` to a ``Host``; decides nothing that those rules can decide.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from crawlerproject.frontier.host import Host
from crawlerproject.reasons import Reason
from crawlerproject.rules.backoff import FAILURES, Rest, RestLimits, after_success, after_trouble
from crawlerproject.rules.pace import PacePreset, after_answer, delay_seconds, jitter_seconds

# Asked to wait: the host rests, whatever the URL was (RFC 6585 section 4, RFC 9110 section 15.6.4).
_REST_STATUSES = (429, 503)
# A page whose host keeps asking to wait is tried so often before its answer counts (ours).
_REST_TRIES = 5
# Other server errors are often passing: a page gets this many tries (Nutch and Heritrix retry too).
_SERVER_ERROR_TRIES = 2
# A scheme whose robots.txt cannot be reached, while the other's can, is asked again after this (StormCrawler keeps
# such an error an hour; we ask sooner).
_OTHER_SCHEME_SECONDS = 600.0


@dataclass(slots=True, frozen=True)
class Ending:
    """What a lease came to, as far as its host's treatment is concerned."""

    reason: Reason
    status: int | None = None
    ttfb_seconds: float | None = None
    retry_after_seconds: float | None = None
    location: str = ""
    tries: int = 0  # failed before this one
    # http and https share a host's clock but not its troubles: a port that is closed to one of them says nothing
    # of the other, whose robots.txt was answered.
    other_scheme_good: bool = False

    @property
    def trouble(self) -> bool:
        """Whether the host asked us to wait or failed."""
        return self.status is None or self.status in _REST_STATUSES


@dataclass(slots=True, frozen=True)
class Verdict:
    """``again``: the page goes back into its queue. ``give_up``: the host is left alone from now on."""

    again: bool
    give_up: bool


class Conduct:
    """One crawl's manners towards every host."""

    def __init__(self, preset: PacePreset, rests: RestLimits, *, max_failures: int) -> None:
        self.preset = preset
        self.rests = rests
        self.max_failures = max_failures
        self.start_delay_seconds = delay_seconds(preset, ())

    def delay_seconds(self, host: Host) -> float:
        """The pause promised to this host between an answer's end and the next request."""
        return delay_seconds(self.preset, host.samples, host.floor_seconds)

    def jittered(self, delay: float, rng: random.Random) -> float:
        """The promised pause, lengthened by chance."""
        return delay + jitter_seconds(delay, rng)

    def after(self, host: Host, ending: Ending, now: float, rng: random.Random) -> Verdict:
        """Update the host's pace, rest and failure count; say what becomes of the page and the host."""
        ok = ending.status is not None and ending.status != 429 and not 500 <= ending.status < 600
        if ending.ttfb_seconds is not None:
            host.samples = after_answer(self.preset, host.samples, ending.ttfb_seconds, ok=ok)
        if ok:
            host.failures = 0
            self._rest(host, after_success(self._of(host), now, self.rests))
            return Verdict(again=False, give_up=False)
        if ending.other_scheme_good:
            return Verdict(again=False, give_up=False)
        host.failures += 1
        give_up = host.failures > self.max_failures
        if ending.status is not None and ending.status not in _REST_STATUSES:
            if host.failures >= self.max_failures:
                self._rest(host, after_trouble(self._of(host), now, None, self.rests, rng))
            return Verdict(again=ending.tries + 1 < _SERVER_ERROR_TRIES, give_up=give_up)
        if ending.status is not None:
            rest = after_trouble(self._of(host), now, ending.retry_after_seconds, self.rests, rng)
            self._rest(host, rest)
            return Verdict(again=ending.tries + 1 < _REST_TRIES, give_up=False)
        failure = FAILURES[ending.reason]
        if failure.host_wide:
            wait = failure.base_wait_seconds * 2 ** min(host.failures - 1, 10)
            host.rest_until = max(host.rest_until, now + min(wait, self.rests.max_seconds))
        return Verdict(again=ending.tries + 1 < failure.max_tries, give_up=give_up)

    def robots_unreachable(self, host: Host, now: float, rng: random.Random, *, spare: bool) -> float:
        """When an unreachable robots.txt is asked for again; the host rests until then, unless ``spare``."""
        if spare:
            return now + _OTHER_SCHEME_SECONDS
        if host.rest_until <= now:
            self._rest(host, after_trouble(self._of(host), now, None, self.rests, rng))
        return host.rest_until

    def _of(self, host: Host) -> Rest:
        return Rest(host.escalation, host.rest_until, host.last_trouble)

    def _rest(self, host: Host, rest: Rest) -> None:
        host.escalation, host.rest_until, host.last_trouble = rest.escalation, rest.until, rest.last_trouble
