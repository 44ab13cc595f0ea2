"""How a host is treated after an answer: its pace, its rests, its retries and when it is left alone.

The hours in which it answers slowly are learned from its answers, and lengthen its pause (``QuietHours``). Applies
``rules/politeness/pauses`` to a ``Host``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from operator import attrgetter

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.learned.models import HostModel
from crawlerproject.frontier.passage import REST_STATUSES, Visit
from crawlerproject.rules.politeness.pauses import (
    FAILURES,
    JITTER_SHARE,
    THEIR_FAILURES,
    UNSENT_FAILURES,
    Breaker,
    BreakerLimits,
    PacePreset,
    Rest,
    RestLimits,
    after_answer,
    after_success,
    after_trouble,
    breaker_failed,
    delay_seconds,
    door_after_trouble,
    failure_rest_seconds,
    parked_seconds,
)
from crawlerproject.rules.politeness.quiet_hours import (
    LEAST_WORK_SECONDS,
    SLOWER,
    HostHours,
    busy_from_of_country,
    is_busy,
)
from crawlerproject.rules.printable import moment
from crawlerproject.rules.url.urls import host_name
from crawlerproject.stores.operator_files.watched_lists import HostPaceFile
from crawlerproject.stores.protocols import FactReader, HostFact

# A page whose host keeps asking to wait is tried so often before its answer counts (ours).
_REST_TRIES = 5
# Other server errors are often passing: a page gets this many tries (Nutch and Heritrix retry too).
_SERVER_ERROR_TRIES = 2
# A page whose body broke off has lost links: it gets one try more (wget and Heritrix go on for twenty and thirty).
_CUT_TRIES = 2
# Walls in a row that are the pages' alone at a host that has shown a page, and at one that has shown as many: login,
# account and basket are in every menu; a page of a forum has a link to its login with each post (ours).
_LEAST_WALLED_PAGES, _MOST_WALLED_PAGES = 5, 20
# Hosts that are remembered for cutting every answer, as a wrong Content-Length does, and for walls in a row. Then all
# are forgotten (ours).
_MOST_REMEMBERED = 10_000
# A scheme whose robots.txt cannot be reached, while the other's can, is asked again after this (StormCrawler keeps
# such an error an hour; we ask sooner).
_OTHER_SCHEME_SECONDS = 600.0
# Of a host with work for hours: its hours take some 600 bytes.
_HOURS_KEPT = 20_000
# Of one host's answers one in so long is looked at: sixty an hour tell as much as hundreds (ours).
_APART_SECONDS = 60.0


@dataclass(slots=True, frozen=True)
class Consequence:
    """``again``: the page goes back into its queue. ``parked``: the host's breaker has opened.

    ``park``: the host is left alone until ``probe_at`` (epoch seconds; 0: never) or the next start.
    """

    again: bool
    park: bool
    opened: bool = False
    probe_at: float = 0.0
    door_until: float = 0.0  # external requests in a row had no answer: none is sent before (epoch seconds)

    @property
    def until(self) -> str:
        """For how long the host is left alone, in words."""
        return f"{moment(self.probe_at)} or the next start" if self.probe_at else "the next start"


AGAIN, DECIDED = Consequence(again=True, park=False), Consequence(again=False, park=False)
"""The host goes on; the page waits for another try, or its fate is decided."""


class HostPoliteness:
    """Applies one crawl's pace, rests and breaker to its hosts."""

    def __init__(
        self,
        preset: PacePreset,
        rests: RestLimits,
        *,
        max_failures: int,
        paces: HostPaceFile | None = None,
        stretch: float = 1.0,
        quiet_hours: QuietHours | None = None,
    ) -> None:
        """``stretch``: by what every pause and rest is longer than promised, since the clock may be hastened.

        ``quiet_hours`` None: the hour of the day makes no difference.
        """
        self.quiet_hours = quiet_hours
        self.preset = preset
        self._stretch = stretch
        self._paces = paces
        self._now = 0.0  # of the last answer
        self._cutters: set[str] = set()  # hosts that cut a page at its second try as well
        self._walled: dict[str, int] = {}  # host -> walls in a row, as long as they are its pages' alone
        self.rests = rests
        park_seconds = min(BreakerLimits().park_seconds, rests.max_seconds)
        self.breaker = BreakerLimits(max_failures, park_seconds, rests.max_seconds)
        self.start_delay_seconds = delay_seconds(preset, ())

    def delay_seconds(self, host: Host) -> float:
        """The pause promised to this host between an answer's end and the next request.

        The hour lengthens it where neither the operator nor robots.txt has set a pace for this host.
        """
        preset = self._preset(host)
        pause = delay_seconds(preset, host.samples, host.floor_seconds)
        if self.quiet_hours is None or preset is not self.preset or host.floor_seconds:
            return pause
        return self.quiet_hours.paced(host, pause, self._now)

    def _preset(self, host: Host) -> PacePreset:
        return self._paces.preset(host.name, self.preset, self._now) if self._paces is not None else self.preset

    def jittered(self, delay: float, rng: random.Random) -> float:
        """The promised pause, lengthened by chance: never shortened."""
        return self._stretch * (delay + delay * JITTER_SHARE * rng.random())

    def after(self, host: Host, outcome: Visit, now: float, rng: random.Random) -> Consequence:
        """Update the host's pace, rest and breaker; say what becomes of the page and the host."""
        self._now = now
        if outcome.external:
            return self._after_external(host, outcome, now, rng)
        if host.door.rested and outcome.status is not None:
            host.door = host.door._replace(rested=False)
        ok = outcome.ok
        if outcome.ttfb_seconds is not None:
            host.samples = after_answer(self._preset(host), host.samples, outcome.ttfb_seconds, ok=ok)
            if ok and self.quiet_hours is not None:
                self.quiet_hours.learn(host, outcome.ttfb_seconds, now)
        if ok:
            if self._walled:
                self._walled.pop(host.name, None)
            # A robots.txt that has moved is answered for elsewhere, or never.
            if not (outcome.location and outcome.row.kind.is_robots):
                host.failures, host.breaker_opened = 0, 0
            if host.escalation:
                rest = Rest(host.escalation, host.rest_until, host.last_trouble)
                host.escalation, host.rest_until, host.last_trouble = after_success(rest, now, self.rests)
            return AGAIN if outcome.cut and self._broke_off(host, outcome) else DECIDED
        if outcome.other_scheme_good:
            return DECIDED
        rests = outcome.status in REST_STATUSES
        if outcome.walled and not rests and not outcome.row.kind.is_robots and self._before_pages_alone(host):
            return DECIDED
        opened = outcome.counts and self._failed(host, now, rng)
        park = opened and host.breaker_opened > 1 and (outcome.status is None or outcome.row.kind.is_robots)
        if outcome.status is None:
            failure = FAILURES[outcome.reason]
            if failure.host_wide:
                wait = failure_rest_seconds(failure, host.failures, self.rests.max_seconds)
                host.rest_until = max(host.rest_until, now + self._stretch * wait)
            return self._consequence(host, now, opened, park, again=outcome.row.tries + 1 < failure.max_tries)
        if rests or outcome.walled:
            self._rest(host, outcome.retry_after_seconds, now, rng)
            if outcome.asks:
                self._asked(host)
        if outcome.walled:  # asking again is what walls are against
            return Consequence(again=False, park=opened, opened=opened)
        tries = _REST_TRIES if rests else _SERVER_ERROR_TRIES
        return self._consequence(host, now, opened, park, again=outcome.row.tries + 1 < tries)

    def _before_pages_alone(self, host: Host) -> bool:
        """Whether a wall stands before pages of an open host: it has shown others, and few walls came in a row."""
        walls = self._walled.pop(host.name, 0) + 1
        shown = host.pages - walls
        if host.failures or shown <= 0 or walls > min(max(shown, _LEAST_WALLED_PAGES), _MOST_WALLED_PAGES):
            return False
        if len(self._walled) >= _MOST_REMEMBERED:
            self._walled.clear()
        self._walled[host.name] = walls
        return True

    def _after_external(self, host: Host, outcome: Visit, now: float, rng: random.Random) -> Consequence:
        """What only other sites led to leaves the host's own pace, escalation and breaker as they are.

        Its trouble closes the door for more of it; the host itself rests once, where it asked for that or was not there
        at all, until it has answered a request of its own.
        """
        door, status = host.door, outcome.status
        if outcome.ok:
            pause = delay_seconds(self._preset(host), (outcome.ttfb_seconds or 0.0,))
            if pause > host.delay_seconds:  # it is slow at this, which its own pages need not be
                host.door = door._replace(until=max(door.until, now + self._stretch * pause))
            return AGAIN if outcome.cut and self._broke_off(host, outcome) else DECIDED
        wait = 0.0  # for what speaks against no host
        if status is None:
            failure = FAILURES[outcome.reason]
            tries, rests = failure.max_tries, outcome.reason in UNSENT_FAILURES
            if failure.host_wide and outcome.reason in THEIR_FAILURES:
                wait = self._stretch * min(failure.base_wait_seconds, self.rests.max_seconds)
        else:
            rests = status in REST_STATUSES  # a wall alone may be before what other sites know of it
            tries = 1 if outcome.walled else _REST_TRIES if rests else _SERVER_ERROR_TRIES
            asked = min(outcome.retry_after_seconds or 0.0, self.rests.retry_after_max_seconds)
            wait = self._stretch * (asked or min(self.rests.start_seconds, self.rests.max_seconds))
        if wait > 0:
            most = self._stretch * self.rests.max_seconds
            base = max(wait, min(self._stretch * self.rests.start_seconds, most))  # of a short Retry-After, too
            # As the breaker does: so many failures and one probe, whichever site names the pages of a dead host.
            dead = status is None and door.escalation >= self.breaker.max_failures
            if dead:
                base = most = self._stretch * parked_seconds(2 + door.escalation - self.breaker.max_failures)
            host.door = door_after_trouble(door, str(outcome.reason), now, base, most, rng)
            if rests and not door.rested:
                host.door = host.door._replace(rested=True)
                host.rest_until = max(host.rest_until, now + wait)
                host.asked_until = host.rest_until if outcome.asks else host.asked_until
            if outcome.asks and host.ports is not None:  # it asks for all ports of its name
                host.ports.rest_until = max(host.ports.rest_until, host.asked_until)
                for other in host.ports.hosts:
                    other.rest_until = max(other.rest_until, host.asked_until)
                    other.door = max(other.door, host.door, key=attrgetter("until"))
            if dead:
                return Consequence(again=outcome.row.tries + 1 < tries, park=False, door_until=host.door.until)
        return Consequence(again=outcome.row.tries + 1 < tries, park=False)

    def _broke_off(self, host: Host, outcome: Visit) -> bool:
        """Whether a page that was cut is asked for once more: not of a host whose answers always end so."""
        if outcome.row.tries + 1 < _CUT_TRIES:
            return host.name not in self._cutters
        if len(self._cutters) >= _MOST_REMEMBERED:
            self._cutters.clear()
        self._cutters.add(host.name)
        return False

    def robots_failed_elsewhere(self, host: Host, now: float, rng: random.Random) -> Consequence:
        """The host that should have answered for this host's robots.txt did not: a failure of this one as well."""
        opened = self._failed(host, now, rng)
        return self._consequence(host, now, opened, opened and host.breaker_opened > 1, again=False)

    def _consequence(self, host: Host, now: float, opened: bool, park: bool, *, again: bool) -> Consequence:
        """``park``: it did not answer its probe."""
        if not park:
            return Consequence(again=again, park=False, opened=opened)
        probe_at = max(host.rest_until, now + self._stretch * parked_seconds(host.breaker_opened))
        return Consequence(again=again, park=True, opened=opened, probe_at=probe_at)

    def _failed(self, host: Host, now: float, rng: random.Random) -> bool:
        """One more failure in a row; True when it opened the breaker: the host is parked until its one probe."""
        host.failures, host.breaker_opened, until = breaker_failed(
            Breaker(host.failures, host.breaker_opened), now, self.breaker, rng
        )
        host.rest_until = max(host.rest_until, self._stretched(until, now))
        return until > 0.0

    def robots_unreachable(self, host: Host, now: float, rng: random.Random, *, other_good: bool) -> float:
        """When an unreachable robots.txt is asked for again; the host rests until then, but not if ``other_good``."""
        if other_good:
            return now + _OTHER_SCHEME_SECONDS
        if host.rest_until <= now:
            self._rest(host, None, now, rng)
        return host.rest_until

    def _asked(self, host: Host) -> None:
        """The rest was asked for: it is the name's, and with it how often such rests have doubled."""
        host.asked_until = host.rest_until
        if host.ports is None:
            return
        host.ports.rest_until = max(host.ports.rest_until, host.rest_until)
        for other in host.ports.hosts:
            other.escalation = max(other.escalation, host.escalation)
            other.rest_until = max(other.rest_until, host.rest_until)
            other.last_trouble = max(other.last_trouble, host.last_trouble)

    def _rest(self, host: Host, retry_after_seconds: float | None, now: float, rng: random.Random) -> None:
        """The host asked us to wait, or failed."""
        before = Rest(host.escalation, host.rest_until, host.last_trouble)
        escalation, until, last_trouble = after_trouble(before, now, retry_after_seconds, self.rests, rng)
        until = until if until == before.until else self._stretched(until, now)
        host.escalation, host.rest_until, host.last_trouble = escalation, until, last_trouble

    def _stretched(self, until: float, now: float) -> float:
        return now + self._stretch * (until - now) if self._stretch > 1 and until > now else until


class QuietHours(HostModel[HostHours]):
    """Only hosts with work for hours are looked at: for others neither a pause nor a write is made."""

    def __init__(self, store: FactReader) -> None:
        super().__init__(store, HostFact.HOURS, HostHours, _HOURS_KEPT)
        self.slowed: set[str] = set()
        """Hosts whose pause is longer now: the last one that was set."""

    def paced(self, host: Host, delay_seconds: float, now: float) -> float:
        """The pause of a host whose pace gives ``delay_seconds``: that, or a longer one in its busy hours."""
        longer = host.waiting_urls * delay_seconds >= LEAST_WORK_SECONDS and self._busy(host, now)
        (self.slowed.add if longer else self.slowed.discard)(host.name)
        return SLOWER * delay_seconds if longer else delay_seconds

    def _busy(self, host: Host, now: float) -> bool:
        own = self.of(host.name).busy_from(now)
        return is_busy(now, own if own is not None else busy_from_of_country(host_name(host.name)))

    def learn(self, host: Host, response_seconds: float, now: float) -> None:
        """Take in a good answer that took so long to its first byte and ended ``now`` (epoch seconds)."""
        if host.waiting_urls * host.delay_seconds >= LEAST_WORK_SECONDS:
            hours = self.of(host.name)
            if not 0 <= now - hours.learned_at < _APART_SECONDS:
                self.changed(host.name).learn(now, response_seconds)
