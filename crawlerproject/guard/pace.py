"""No request goes out before the pause of its host and its IP address is over, wherever it comes from.

A leased request has waited in the workbench: one that would break the pace is refused and counted in
``pace/guard_refused``, which must stay 0. Any other request (shell, fetch, other spiders, what a spider yields by
itself) waits here, by the frontier's politeness. The ports of one name are one host here.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.statscollectors import StatsCollector

from crawlerproject.config.values import ip_seconds_of
from crawlerproject.errors import FetchError
from crawlerproject.fetch.exchange import exchange_of
from crawlerproject.fetch.resolver import OF_PROXIED_SECONDS, Resolved, resolver_for
from crawlerproject.frontier.assembly import politeness_of
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.politeness import FetchOutcome, HostPoliteness
from crawlerproject.guard.neighbours import Neighbours, shared_file
from crawlerproject.guard.pause_clocks import PauseClocks
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.audit import ROUNDING_SECONDS
from crawlerproject.rules.politeness.backoff import retry_after_seconds
from crawlerproject.rules.url.urls import host_key, host_name
from crawlerproject.runtime.clock import stamp, steady

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlerproject.frontier.lease import Lease

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


class _Ticket(NamedTuple):
    """What was entered for a request, so that it leaves exactly once."""

    name: str
    ip: str
    delay_seconds: float  # promised
    host: Host | None  # None: it is leased


class PaceGuard:
    """Checks leased requests and paces all others by ``PACE_*``."""

    def __init__(
        self,
        politeness: HostPoliteness,
        stats: StatsCollector | None,
        *,
        ip_seconds: float | None,  # None: IP addresses have no clock
        resolve: Callable[[str, float | None], Awaitable[Resolved]] | None = None,
        clock: Callable[[], float] = steady,
        stamps: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        rng: random.Random | None = None,  # draws the jitter; None: seeded by the system
        meet: Callable[[], Neighbours] | None = None,  # with other processes of this user; None: there are none
        closing: Callable[[], bool] = lambda: False,  # whether the spider is being closed: what waits is given up
    ) -> None:
        self.politeness = politeness
        self.stats = stats
        self.ip_seconds = ip_seconds
        self.resolve = resolve
        self.clock = clock
        self._stamp = stamps or clock  # of wires
        self.sleep = sleep
        self.names = PauseClocks()
        self.ips = PauseClocks()
        self._meet = meet
        self._closing = closing
        self._neighbours: Neighbours | None = None
        self._beside: asyncio.Future[None] | None = None  # this process has begun to ask beside others
        self._look_again: asyncio.TimerHandle | None = None
        self._rng = rng or random.Random()
        self._entered: dict[Request, _Ticket] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """By the PACE_* and BACKOFF_* settings. Raises OperatorError."""
        settings = crawler.settings
        return cls(
            politeness_of(settings, max_failures=_NEVER_PARKED),
            crawler.stats,
            ip_seconds=ip_seconds_of(settings),
            resolve=lambda name, within: resolver_for(crawler).resolve(name, within),
            stamps=stamp,
            meet=lambda: Neighbours.at(shared_file()),
            closing=lambda: _is_closing(crawler),
        )

    def begin(self, *, crawls: bool) -> None:
        """Before the first request: ``crawls`` when it is the frontier's. Later calls do nothing."""
        if self._meet is None:
            return
        meet, self._meet = self._meet, None
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
        """Nothing more is asked."""
        if self._look_again is not None:
            self._look_again.cancel()
        if self._beside is not None:
            self._beside.cancel()
        if self._neighbours is not None:
            self._neighbours.end()

    def enter(self, request: Request, lease: Lease | None, floor_seconds: float = 0.0) -> Awaitable[None] | None:
        """Take the host's turn: refuse a lease that breaks the pace, let others wait. What enters leaves by ``leave``.

        ``floor_seconds`` is what robots.txt asks for. O(1) and no coroutine for a lease, unless another's request came
        between. Raises ``Refused``.
        """
        if lease is None:
            return self._wait(request, floor_seconds)
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
        # The wire's own end: this runs later, by the loop's lag. Its clock is read before the other: a process that is
        # held up between the two makes the pause longer, not shorter.
        lag_seconds = max(self._stamp() - wire.ended_at, 0.0) if wire and wire.ended_at else 0.0
        now = self.clock()
        end = now - min(lag_seconds, _MAX_LAG_SECONDS)
        clock = self.names.leave(ticket.name, end, ticket.delay_seconds, now)
        if self._neighbours is not None and self._neighbours.noticed:
            self._leave_locks(self._neighbours, ticket, wire.ip if wire else "", now - end)
        if (host := ticket.host) is not None:
            self._learn(host, request, response, now)
            # What was learned is kept while it matters: the rest, and the time after which it is forgiven.
            forgiven = max(host.rest_until, now) + self.politeness.rests.forgive_seconds
            clock.forget_at = max(clock.forget_at, forgiven)
            clock.address = (wire and wire.ip) or clock.address
        if self.ip_seconds is not None:
            if ticket.ip:
                self.ips.leave(ticket.ip, end, self.ip_seconds, now)
            if wire and wire.ip and wire.ip != ticket.ip:
                touched = self.ips.touch(wire.ip, end, self.ip_seconds, now)
                touched.shared = touched.shared or host is not None

    def outlook(self, key: str, floor_seconds: float = 0.0) -> tuple[float, float | None]:
        """The pause promised to a host now, and the seconds until it may be asked (None: a request is in flight)."""
        name = host_name(key)
        clock = self.names.get(name)
        host = (clock.hosts.get(key) if clock else None) or Host(key, 0.0)
        host.floor_seconds = floor_seconds
        delay = self.politeness.delay_seconds(host)
        wait = self._wait_seconds(_Ticket(name, clock.address if clock else "", delay, host), self.clock())
        return delay, None if wait is None else max(0.0, wait)

    def _learn(self, host: Host, request: Request, response: Response | None, now: float) -> None:
        """The response time, and the rest that the host asks for."""
        wire = exchange_of(request).wire
        header = response.headers.get("Retry-After") if response is not None else None
        longest = self.politeness.rests.retry_after_max_seconds
        outcome = FetchOutcome(
            Reason.FETCHED,
            response.status if response is not None else _NO_ANSWER_STATUS,
            wire.ttfb_seconds if wire else request.meta.get("download_latency"),
            retry_after_seconds(header.decode("latin-1") if header else None, now, longest),
        )
        self.politeness.after(host, outcome, now, self._rng)

    async def until_free(self, request: Request) -> None:
        """Wait until host and address are free, without taking their turn. Raises ``Stopped``."""
        await self._free(request)

    async def _wait(self, request: Request, floor_seconds: float) -> None:
        if self._beside is not None:
            await asyncio.shield(self._beside)
        while (wait := self._elsewhere(ticket := await self._free(request, floor_seconds))) > 0:
            await self._unless_closed(wait)
        self._enter(request, ticket)

    async def _unless_closed(self, seconds: float) -> None:
        """Wait for at most so long; the callers look again. Raises ``Stopped``: a rest may last for a day."""
        if self._closing():
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

    def _leave_locks(self, neighbours: Neighbours, ticket: _Ticket, ip: str, ago_seconds: float) -> None:
        neighbours.leave(ticket.name, ago_seconds)
        if self.ip_seconds is not None:
            if ticket.ip:
                neighbours.leave(ticket.ip, ago_seconds)
            if ip and ip != ticket.ip:
                neighbours.ended(ip, ago_seconds)

    async def _free(self, request: Request, floor_seconds: float | None = None) -> _Ticket:
        """Until host and address are free; ``floor_seconds`` None: by the last one known. Raises ``Stopped``.

        Nothing else runs between the last look and the caller's next step.
        """
        key = host_key(request.url)
        name = host_name(key)
        found = await self._address(name, OF_PROXIED_SECONDS if request.meta.get("proxy") else None)
        stretch = self.politeness.jittered(1.0, self._rng)
        while True:
            clock = self.names[name]  # anew each time: the answer waited for may have changed it, or it was dropped
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
            elif self._closing():
                raise Stopped
            else:
                return ticket

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

    async def _address(self, name: str, within_seconds: float | None) -> str:
        """Where the host will be asked: names that share an address wait for each other from their first request on."""
        if self.resolve is None or self.ip_seconds is None:
            return ""
        try:
            return (await self.resolve(name.strip("[]"), within_seconds)).addresses[0]
        except FetchError:
            return ""  # the download fails in the same way, and says so, unless a proxy knows the name

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


def _is_closing(crawler: Crawler) -> bool:
    """Whether Scrapy has begun to close the spider: a signal, ``CLOSESPIDER_TIMEOUT``, ``CloseSpider``.

    It sends no signal of its own then, but only when what is on its way has ended.
    """
    engine = crawler._engine  # ``engine`` raises where there is none yet
    slot = engine._slot if engine is not None else None
    return slot is not None and slot.closing is not None
