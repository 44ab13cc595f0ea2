"""The guard of one crawler, below every setting: which requests are the frontier's, and when each request may go.

A leased request is known by the very object that the scheduler handed out: a copy of it (a redirect, a retry,
``meta=response.meta``) is a request like any other. It has waited in the workbench: one that would break the pace is
refused and counted in ``pace/guard_refused``, which must stay 0. Any other request (shell, fetch, other spiders, what a
spider yields by itself) waits here, by the frontier's politeness. The ports of one name are one host here.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from weakref import WeakKeyDictionary

from scrapy.exceptions import IgnoreRequest

from crawlerproject.config.values import ip_seconds_of
from crawlerproject.errors import FetchError
from crawlerproject.fetch.resolver import OF_PROXIED_SECONDS, Resolved, resolver_for
from crawlerproject.frontier.assembly import never_crawl_of, politeness_of
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.passage import Visit
from crawlerproject.frontier.politeness import HostPoliteness
from crawlerproject.guard.neighbours import Neighbours, shared_file
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import exchange_of
from crawlerproject.rules.politeness.pause_audit import ROUNDING_SECONDS
from crawlerproject.rules.politeness.pauses import retry_after_seconds
from crawlerproject.rules.printable import human_seconds
from crawlerproject.rules.url.refused_urls import bad_port
from crawlerproject.rules.url.urls import host_key, host_name
from crawlerproject.runtime.clock import stamp, steady
from crawlerproject.runtime.services import services_of
from crawlerproject.stores.protocols import QueuedPage

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector

    from crawlerproject.frontier.passage import Lease
    from crawlerproject.guard.robots_guard import RobotsGuard
    from crawlerproject.stores.operator_files.watched_lists import NeverCrawlLists

logger = logging.getLogger(__name__)

# A crawl looks so often whether a command asks beside it: a system call, and what the command waits for first (ours).
_LOOK_SECONDS = 1.0

# A request that waits looks so often whether the spider is being closed (ours).
_STOP_SECONDS = 0.25

# Timers and clocks are this exact: a lease that is early by no more waits, and one by more is an error of ours.
_TOLERANCE_SECONDS = 0.002

# Longest plausible lag between an answer's end and ``leave``; beyond it the clock was changed.
_MAX_LAG_SECONDS = 60.0

# Failures in a row after which a host is parked: never, since its spider decides how often it asks again.
_NEVER_PARKED = 2**31

# No answer counts as a 503: Scrapy's retries wait for the back-off, not for the hour that a crawl leaves a dead host.
_NO_ANSWER_STATUS = 503

# Fewer clocks than this are never looked through: they take under a megabyte.
_SWEEP_FROM = 1000


class Refused(IgnoreRequest):
    """A request that we will not send; ``reason`` is the word for log and stats, ``detail`` one line for humans."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason
        self.detail = detail


def refused(
    stats: StatsCollector | None, request: Request, reason: Reason, detail: str = "", *, logged: bool = False
) -> Refused:
    """Count a refusal (``refused/<reason>``) and return it, to be raised; a line, unless it is ``logged`` elsewhere.

    The request log has a leased request's; in the shell and in other spiders a refusal is news.
    """
    if stats is not None:
        stats.inc_value(f"refused/{reason}")
    level, known = logging.DEBUG if logged else logging.INFO, {"url": request.url, "reason": reason}
    logger.log(level, "Refused (%s): %s %s", reason, request.url, detail, extra=known)
    return Refused(reason, detail)


class Stopped(IgnoreRequest):
    """The spider is being closed, and the request still waited for its host: it has not been sent."""


class PauseClock:
    """One host name or IP address. Epoch seconds of a clock that is never set."""

    __slots__ = ("address", "ended", "forget_at", "hosts", "in_flight", "shared", "waiting")

    def __init__(self) -> None:
        self.ended = float("-inf")  # of the last answer
        self.forget_at = float("-inf")
        self.in_flight = False
        self.shared = False  # with requests that the frontier knows nothing of
        self.address = ""  # IP address last connected to
        self.hosts: dict[str, Host] = {}  # by host key: what their answers have taught
        self.waiting: list[asyncio.Future[None]] | None = None  # nearly always: a list less for the collector to walk


class PauseClocks(dict[str, PauseClock]):
    """Clocks by host name or address; those whose pause is over are dropped, at a cost of O(1) a request."""

    def __init__(self) -> None:
        self._sweep_at = _SWEEP_FROM

    def __missing__(self, key: str) -> PauseClock:
        clock = self[key] = PauseClock()
        return clock

    def shared(self, key: str) -> bool:
        """Whether requests that are not the frontier's were sent there lately."""
        clock = self.get(key)
        return clock is not None and clock.shared

    def wait_seconds(self, key: str, now: float, delay: float) -> float | None:
        """Seconds until ``key`` may be asked again under ``delay``; None while a request is in flight."""
        clock = self.get(key)
        if clock is None:
            return 0.0
        if clock.in_flight:
            return None
        free = clock.ended + delay
        if clock.hosts:  # the longest rest of a port counts
            free = max(free, *[host.rest_until for host in clock.hosts.values()])
        return free - now

    def enter(self, key: str, *, shared: bool = False) -> None:
        """A request to ``key`` starts; ``shared``: it is not the frontier's."""
        clock = self[key]
        clock.in_flight = True
        clock.shared = clock.shared or shared

    def leave(self, key: str, ended: float, delay: float, now: float, *, entered: bool = True) -> PauseClock:
        """A request ended: those that wait for it look again. ``entered`` False: ``enter`` had not announced it."""
        clock = self[key]
        clock.ended = max(clock.ended, ended)
        clock.forget_at = max(clock.forget_at, ended + delay)
        if len(self) >= self._sweep_at:  # before this clock is free: its caller keeps what the answer teaches in it
            for old in [key for key, clock in self.items() if not clock.in_flight and clock.forget_at <= now]:
                del self[old]
            self._sweep_at = max(_SWEEP_FROM, 2 * len(self))
        if entered:
            clock.in_flight = False
            if clock.waiting:
                waiting, clock.waiting = clock.waiting, None
                for future in waiting:
                    if not future.done():
                        future.set_result(None)
        return clock

    def tell(self, key: str, freed: asyncio.Future[None]) -> bool:
        """Resolve ``freed`` when the request in flight at ``key`` ends; False when none is."""
        clock = self.get(key)
        if clock is None or not clock.in_flight:
            return False
        if clock.waiting is None:
            clock.waiting = []
        clock.waiting.append(freed)
        return True


class _Ticket(NamedTuple):
    """What was entered for a request, so that it leaves exactly once."""

    name: str
    ip: str
    delay_seconds: float  # promised
    host: Host | None  # None: the request is leased


@dataclass(slots=True, eq=False)
class PaceGuard:
    """Checks leased requests and paces all others by ``PACE_*``."""

    politeness: HostPoliteness
    stats: StatsCollector | None
    ip_seconds: float | None  # None: IP addresses have no clock
    resolve: Callable[[str, float | None], Awaitable[Resolved]] | None = None
    clock: Callable[[], float] = steady
    stamps: Callable[[], float] = stamp  # the clock of wires
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep
    rng: random.Random = field(default_factory=random.Random)  # draws the jitter
    meet: Callable[[], Neighbours] | None = None  # with other processes of this user; None: there are none
    closing: Callable[[], bool] = lambda: False  # whether the spider is being closed: what waits is given up
    names: PauseClocks = field(default_factory=PauseClocks, init=False)
    ips: PauseClocks = field(default_factory=PauseClocks, init=False)
    _neighbours: Neighbours | None = field(default=None, init=False)
    _beside: asyncio.Future[None] | None = field(default=None, init=False)  # this process began to ask beside others
    _look_again: asyncio.TimerHandle | None = field(default=None, init=False)
    _entered: dict[Request, _Ticket] = field(default_factory=dict, init=False)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """By the PACE_* and BACKOFF_* settings. Raises OperatorError."""
        settings = crawler.settings
        return cls(
            politeness_of(settings, max_failures=_NEVER_PARKED),
            crawler.stats,
            ip_seconds=ip_seconds_of(settings),
            resolve=lambda name, within: resolver_for(crawler).resolve(name, within),
            meet=lambda: Neighbours.at(shared_file()),
            closing=lambda: _is_closing(crawler),
        )

    def begin(self, *, crawls: bool) -> None:
        """Before the first request: ``crawls`` when it is the frontier's. Later calls do nothing."""
        if self.meet is None:
            return
        meet, self.meet = self.meet, None
        try:
            neighbours = meet()
            (neighbours.begin_alone if crawls else neighbours.begin_beside)()
        except (OSError, RuntimeError) as error:  # no home, or none that can be written to
            logger.warning("Other processes of this user are not waited for, nor do they wait for this one: %s", error)
            return
        self._neighbours = neighbours
        if crawls:
            self._look()
        else:
            self._beside = asyncio.ensure_future(neighbours.until_noticed())

    def _look(self) -> None:
        """Whether a command asks beside this crawl; from then on each request takes its locks."""
        assert self._neighbours is not None
        if not self._neighbours.look():
            self._look_again = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)
            return
        now = self.clock()
        clocks = [*self.names.items(), *self.ips.items()]
        self._neighbours.notice(
            [key for key, clock in clocks if clock.in_flight],
            [(key, now - clock.ended) for key, clock in clocks if clock.ended > float("-inf")],
        )
        logger.info("Another process of this user asks beside this crawl: from now on they take turns at a host")

    def close(self) -> None:
        """No request follows."""
        if self._look_again is not None:
            self._look_again.cancel()
        if self._beside is not None:
            self._beside.cancel()
        if self._neighbours is not None:
            self._neighbours.end()

    def enter(self, request: Request, lease: Lease) -> Awaitable[None] | None:
        """Take the host's turn for a lease; one that breaks the pace is refused. What enters leaves by ``leave``.

        O(1), and no coroutine unless another's request came between. Raises ``Refused``.
        """
        ticket = _Ticket(host_name(lease.row.host), lease.address, lease.delay_seconds, None)
        wait = self._wait_seconds(ticket, self.clock())
        if wait is None or wait > ROUNDING_SECONDS:
            early = wait is not None and wait <= _TOLERANCE_SECONDS
            if early or self.names.shared(ticket.name) or self.ips.shared(ticket.ip):
                return self._wait_a_little(request, ticket)
            if self.stats is not None:
                self.stats.inc_value("pace/guard_refused")
            detail = "in flight" if wait is None else f"{wait:.3f} s too soon"
            raise refused(self.stats, request, Reason.PACE_GUARD, detail, logged=True)
        if self._neighbours is not None and self._neighbours.noticed:
            return self._wait_a_little(request, ticket)
        self._enter(request, ticket)
        return None

    def leave(self, request: Request, response: Response | None) -> None:
        """The host's clock starts where the answer ended; ``response`` None: a failure ends a request too."""
        ticket = self._entered.pop(request, None)
        if ticket is None:
            return
        wire = exchange_of(request).wire
        ip = wire.ip if wire else ""
        # The wire's own end: this runs later, by the loop's lag. Its clock is read before the other: a process that is
        # held up between the two makes the pause longer, not shorter.
        lag_seconds = max(self.stamps() - wire.ended_at, 0.0) if wire and wire.ended_at else 0.0
        now = self.clock()
        end = now - min(lag_seconds, _MAX_LAG_SECONDS)
        clock = self.names.leave(ticket.name, end, ticket.delay_seconds, now)
        if (host := ticket.host) is not None:
            # It learns the response time, and the rest that the host asks for.
            header = response.headers.get("Retry-After") if response is not None else None
            rests = self.politeness.rests
            visit = Visit(
                QueuedPage(host.name, b"", request.url, 0, 0, 0, "", ""),
                Reason.FETCHED,
                response.status if response is not None else _NO_ANSWER_STATUS,
                ttfb_seconds=wire.ttfb_seconds if wire else request.meta.get("download_latency"),
            )
            asked = header.decode("latin-1") if header else None
            visit.retry_after_seconds = retry_after_seconds(asked, now, rests.retry_after_max_seconds)
            rested_until = host.rest_until
            self.politeness.after(host, visit, now, self.rng)
            if host.rest_until > max(rested_until, now):
                why = f"it answered {response.status}" if response is not None else "it did not answer"
                why += f" with Retry-After: {asked}" if visit.retry_after_seconds else ""
                logger.info("%s is left alone for %s: %s", host.name, human_seconds(host.rest_until - now), why)
            # What was learned is kept while it matters: the rest, and the time after which it is forgiven.
            clock.forget_at = max(clock.forget_at, max(host.rest_until, now) + rests.forgive_seconds)
            clock.address = ip or clock.address
        if self.ip_seconds is not None:
            if ticket.ip:
                self.ips.leave(ticket.ip, end, self.ip_seconds, now)
            if ip and ip != ticket.ip:
                touched = self.ips.leave(ip, end, self.ip_seconds, now, entered=False)
                touched.shared = touched.shared or host is not None
        if (neighbours := self._neighbours) is not None and neighbours.noticed:
            neighbours.leave(ticket.name, now - end)
            if self.ip_seconds is not None:
                if ticket.ip:
                    neighbours.leave(ticket.ip, now - end)
                if ip and ip != ticket.ip:
                    neighbours.leave(ip, now - end, entered=False)

    def resting(self) -> dict[str, float]:
        """The hosts that are left alone beyond their pause, each with the seconds that are left."""
        now = self.clock()
        hosts = [host for clock in self.names.values() for host in clock.hosts.values()]
        return {host.name: host.rest_until - now for host in hosts if host.rest_until > now}

    def outlook(self, key: str, floor_seconds: float = 0.0) -> tuple[float, float | None]:
        """The pause promised to a host now, and the seconds until it may be asked (None: a request is in flight)."""
        name = host_name(key)
        clock = self.names.get(name)
        host = (clock.hosts.get(key) if clock else None) or Host(key, 0.0)
        host.floor_seconds = floor_seconds
        delay = self.politeness.delay_seconds(host)
        wait = self._wait_seconds(_Ticket(name, clock.address if clock else "", delay, host), self.clock())
        return delay, None if wait is None else max(0.0, wait)

    async def until_free(self, request: Request) -> None:
        """Wait until host and address are free, without taking their turn. Raises ``Stopped``."""
        await self._free(request)

    async def _free(self, request: Request, floor_seconds: float | None = None) -> _Ticket:
        """Until host and address are free; ``floor_seconds`` None: by the last one known. Raises ``Stopped``.

        Nothing else runs between the last look and the caller's next step.
        """
        key = host_key(request.url)
        name = host_name(key)
        found = ""  # names that share an address wait for each other from their first request on
        if self.resolve is not None and self.ip_seconds is not None:
            within_seconds = OF_PROXIED_SECONDS if request.meta.get("proxy") else None
            with suppress(FetchError):  # the download fails in the same way, and reports it, unless a proxy knows it
                found = (await self.resolve(name.strip("[]"), within_seconds)).addresses[0]
        stretch = self.politeness.jittered(1.0, self.rng)
        while True:
            clock = self.names[name]  # looked up each time: the answer waited for may have changed or dropped it
            host = clock.hosts.get(key)
            if host is None:
                host = clock.hosts[key] = Host(key, self.politeness.start_delay_seconds)
            if floor_seconds is not None:
                host.floor_seconds = floor_seconds
            ticket = _Ticket(name, found or clock.address, self.politeness.delay_seconds(host) * stretch, host)
            wait = self._wait_seconds(ticket, self.clock())
            if wait is None:
                await self._until_ended(ticket)
            elif wait > 0:
                await self._unless_closed(wait)
            elif self.closing():
                raise Stopped
            else:
                return ticket

    async def wait(self, request: Request, floor_seconds: float = 0.0) -> None:
        """Take the host's turn for any other request; ``floor_seconds`` is what robots.txt asks for."""
        if self._beside is not None:
            await asyncio.shield(self._beside)
        while (wait := self._elsewhere(ticket := await self._free(request, floor_seconds))) > 0:
            await self._unless_closed(wait)
        self._enter(request, ticket)

    async def _unless_closed(self, seconds: float) -> None:
        """Wait for at most so long; the callers look again. Raises ``Stopped``: a rest may last for a day."""
        if self.closing():
            raise Stopped
        await self.sleep(min(seconds, _STOP_SECONDS))

    def _elsewhere(self, ticket: _Ticket) -> float:
        """Take host and address among this user's processes; 0.0, or the seconds until a next try."""
        neighbours = self._neighbours
        if neighbours is None or not neighbours.noticed:
            return 0.0
        pauses = [(ticket.name, ticket.delay_seconds)]
        if ticket.ip and self.ip_seconds is not None:
            pauses.append((ticket.ip, self.ip_seconds))
        return neighbours.enter(pauses)

    async def _wait_a_little(self, request: Request, ticket: _Ticket) -> None:
        """A lease by a clock that is a millisecond early, or whose host or address a spider's own request, or another
        process, has asked meanwhile: its promise counts from there.
        """
        while (
            (wait := self._wait_seconds(ticket, self.clock())) is None
            or wait > 0
            or (wait := self._elsewhere(ticket)) > 0
        ):
            await (self._until_ended(ticket) if wait is None else self.sleep(wait))
        self._enter(request, ticket)

    async def _until_ended(self, ticket: _Ticket) -> None:
        """Until the request that is in flight at the host or the address has ended."""
        freed = asyncio.get_running_loop().create_future()
        if not self.names.tell(ticket.name, freed):
            self.ips.tell(ticket.ip, freed)
        await freed

    def _wait_seconds(self, ticket: _Ticket, now: float) -> float | None:
        """Seconds until both clocks are free; None while either has a request in flight."""
        wait = self.names.wait_seconds(ticket.name, now, ticket.delay_seconds)
        if wait is None or self.ip_seconds is None or not ticket.ip:
            return wait
        ip_wait = self.ips.wait_seconds(ticket.ip, now, self.ip_seconds)
        return None if ip_wait is None else max(wait, ip_wait)

    def _enter(self, request: Request, ticket: _Ticket) -> None:
        shared = ticket.host is not None
        self.names.enter(ticket.name, shared=shared)
        if ticket.ip and self.ip_seconds is not None:
            self.ips.enter(ticket.ip, shared=shared)
        self._entered[request] = ticket


class Guard:
    """One crawler's NeverCrawl lists, robots.txt rules and clocks."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        # What the frontier has handed out: it has judged these requests and promised their pauses. Each is sent once.
        self.leases: WeakKeyDictionary[Request, Lease] = WeakKeyDictionary()

    @cached_property
    def never_crawl(self) -> NeverCrawlLists:
        """The process's one reader of the lists: the crawl's filters ask it as well."""
        return never_crawl_of(self._crawler.settings)

    @cached_property
    def robots(self) -> RobotsGuard:
        """The rules of each origin that the frontier was not asked about."""
        from crawlerproject.guard.robots_guard import RobotsGuard  # which raises what is above

        return RobotsGuard.from_crawler(self._crawler)

    @cached_property
    def pace(self) -> PaceGuard:
        """The clocks of all hosts and addresses."""
        return PaceGuard.from_crawler(self._crawler)

    def check(self, request: Request, lease: Lease | None = None) -> None:
        """Refuse what NeverCrawl excludes now, a lease included: the list may have grown since it was handed out.

        Raises ``Refused``, also for a port at which no web server is to be looked for.
        """
        key = host_key(request.url) if lease is None else lease.row.host
        if lease is None and bad_port(key):
            raise refused(self._crawler.stats, request, Reason.BAD_PORT, key)
        name, now = host_name(key), steady()
        listed = self.never_crawl.current(now)
        if listed.any and listed.excludes(name):
            listing = self.never_crawl.listing(name, now)
            where = f"line {listing.line} of {listing.path}" if listing is not None else "just taken off"
            detail = f"{name} ({where})"
            raise refused(self._crawler.stats, request, Reason.NEVERCRAWL, detail, logged=lease is not None)


def guard_of(crawler: Crawler) -> Guard:
    """The crawler's one guard."""
    return services_of(crawler).once(Guard, lambda: Guard(crawler))


def _is_closing(crawler: Crawler) -> bool:
    """Whether Scrapy has begun to close the spider: a signal, ``CLOSESPIDER_TIMEOUT``, ``CloseSpider``.

    It sends no signal of its own then, but only when what is on its way has ended.
    """
    engine = crawler._engine  # ``engine`` raises where there is none yet
    slot = engine._slot if engine is not None else None
    return slot is not None and slot.closing is not None
