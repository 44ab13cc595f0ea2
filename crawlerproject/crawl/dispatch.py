"""Hands out leases, each as a request: the host's turn, its address, in a fleet the address's reservation."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from crawlerproject.crawl.dns_lookups import DnsLookups
from crawlerproject.errors import FetchError, FrontierDamaged, StorageError
from crawlerproject.frontier.leasing import Lookup
from crawlerproject.frontier.passage import Lease
from crawlerproject.runtime.loop_budget import LoopBudget

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult

    from crawlerproject.crawl.completion.outage import Outage
    from crawlerproject.crawl.requests import LeaseRequests
    from crawlerproject.crawl.run import Run
    from crawlerproject.crawl.session import Session
    from crawlerproject.fetch.resolver import Resolver

logger = logging.getLogger(__name__)

# While as many are under way as may be, it is looked again so often: the window opens by two meanwhile.
_FULL_SECONDS = 0.01
# While nothing may be asked it is looked again so often: what ends the pause has the engine ask at once.
_HALTED_SECONDS = 1.0

# Answers that wait: a tenth of a second's work, so that the processor always has one to read (ours).
_BEHIND = 64

# Never fewer: at 50 ms an answer 2,500 requests a second, more than one process can read (ours).
LEAST = 128

# By so many it opens in a second; four times as many made it swing between too few and too many (simulated).
_OPENS_A_SECOND = 200.0

# Not asked for longer: nothing was free to be sent, and nothing is known of what the processor could do.
_LONGEST_SECONDS = 0.1


class Fetches(NamedTuple):
    """What the dispatch must know of requests on their way."""

    resolver: Resolver
    lines: tuple[LoopBudget, ...]  # in which answers wait to be read, and pages to be archived
    behind_proxy: Callable[[str], bool]  # whether a proxy resolves this name or name:port

    def unread(self) -> int:
        """How many of both wait."""
        return sum([line.waiting for line in self.lines])


class InFlight:
    """Knows each lease from its turn to its end, and the request that was sent for it until its Page is here."""

    def __init__(self) -> None:
        self.by_host: dict[str, Lease] = {}
        """For inspection. While a page is in the browser its host has other leases: one of those is shown."""
        self._sent: dict[int, tuple[Lease, Request]] = {}  # by the lease's id
        self._rest: Callable[[Lease], None] | None = None
        self.line = LoopBudget()  # of pages that wait to be compared and archived

    def rest_with(self, rest: Callable[[Lease], None]) -> None:
        """Have ``rest`` called with each lease that ends."""
        self._rest = rest

    def sent(self, lease: Lease, request: Request) -> None:
        """The engine has the request."""
        if not (lease.row.kind.is_render and lease.host.name in self.by_host):
            self.by_host[lease.host.name] = lease
        self._sent[id(lease)] = (lease, request)

    def answered(self, lease: Lease) -> None:
        """Its Page is here."""
        self._sent.pop(id(lease), None)

    def over(self, lease: Lease) -> None:
        """It has ended."""
        self.answered(lease)
        if self.by_host.get(lease.host.name) is lease:
            del self.by_host[lease.host.name]
        if self._rest is not None:
            self._rest(lease)

    def unanswered(self, known: Container[Request]) -> list[Lease]:
        """The leases without a Page whose request is none of those that the engine knows."""
        return [lease for lease, request in self._sent.values() if request not in known]


class SendWindow:
    """How many requests may be under way while more answers come than are read.

    A processor that is behind gains nothing by asking for more: a thousand answers in memory, two hundred objects each,
    make Python's collector slow and each of them late. Answers that wait to be read say that it is behind. Then one
    request goes out for two that have ended; while none waits, the window opens slowly. So it finds by itself how many
    the distance to the servers needs: a simulation with answers that take up to a hundred turns of the loop has no idle
    turn. Call ``open`` before each request and ``sent`` after it; ``now`` is seconds.
    """

    def __init__(self) -> None:
        self._most = float(LEAST)
        self._under_way = 0  # as far as it is known here
        self._asked_at = 0.0

    def open(self, under_way: int, unread: int, now: float) -> bool:
        """Whether one more may be sent while ``under_way`` are, ``unread`` of them answers that wait to be read."""
        ended = max(self._under_way - under_way, 0)
        self._under_way = under_way
        if unread >= _BEHIND:
            self._most = max(min(self._most, under_way + ended) - ended / 2, _BEHIND)
        elif not unread:
            opens = _OPENS_A_SECOND * min(max(now - self._asked_at, 0.0), _LONGEST_SECONDS)
            self._most = min(self._most + opens, max(LEAST, 2 * under_way))
        self._asked_at = now
        return under_way < self._most

    def sent(self) -> None:
        """One more was sent."""
        self._under_way += 1


class Engine:
    """One timer at most, for the earliest moment that was asked for. Moments are epoch seconds."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        self._crawler = crawler
        self._run = run
        self._timer: CallLaterResult | None = None
        self._at = 0.0

    def ask_at(self, moment: float | None, now: float) -> None:
        """Have the engine ask then, or sooner when that was asked for; None: no moment."""
        if moment is None or (self._timer is not None and self._at <= moment):
            return
        self.cancel()
        self._at = moment
        self._timer = call_later(max(0.0, moment - now), self._ask_now)

    def cancel(self) -> None:
        """Forget the moment."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def ask(self) -> None:
        """Have the engine ask in the next turn of the loop. One that is full asks when a request has ended."""
        engine = self._crawler.engine
        if engine is None or engine.spider is None or self._run.closed or engine.needs_backout():
            return
        # Scrapy 2.19 has no public call for it but ``crawl``, which takes a request and hands it back to the scheduler.
        slot: Any = engine._slot
        slot.nextcall.schedule()

    def _ask_now(self) -> None:
        self._timer = None
        self.ask()

    def requests(self) -> set[Request]:
        """The requests in progress."""
        slot: Any = getattr(self._crawler.engine, "_slot", None)
        return set() if slot is None else slot.inprogress

    def stop_for_damage(self, error: FrontierDamaged) -> None:
        """End the crawl: what cannot be read of its frontier would be forgotten."""
        logger.error("%s The crawl stops.", error)
        self.stop("frontier_damaged")

    def stop(self, reason: str) -> None:
        """End the crawl; what is on its way ends first."""
        engine = self._crawler.engine
        assert engine is not None
        deferred_from_coro(engine.close_spider_async(reason=reason))


class LeaseDispatch:
    """What has a lease, an address and a reservation is ready; it leaves by ``next`` alone, when the engine asks."""

    def __init__(
        self,
        session: Session,
        run: Run,
        requests: LeaseRequests,
        in_flight: InFlight,
        engine: Engine,
        fetches: Fetches,
        outage: Outage | None = None,
    ) -> None:
        self._frontier = session.frontier
        self._ownership = session.frontier.state.ownership
        self._limits = session.limits
        self._run = run
        self._requests = requests
        self._in_flight = in_flight
        self._engine = engine
        self._fetches = fetches
        self._window = SendWindow()
        self._outage = outage
        self._lookups = DnsLookups(
            fetches.resolver, session.frontier, run, self._looked_up, self.wake, fetches.behind_proxy
        )
        self._addresses = session.role.reservations(run, self)
        if self._addresses is not None:
            in_flight.rest_with(self._addresses.rest)
        self._ready: deque[tuple[Lease, FetchError | None]] = deque()
        self._budget = LoopBudget()
        self._full = False  # no more may be under way
        self._damaged = False  # the frontier cannot be read: the crawl ends

    def __bool__(self) -> bool:
        """Whether a lease is ready, or a host is looked up."""
        return bool(self._ready or self._lookups)

    def next(self) -> Request | None:
        """The request of a lease whose turn it is; None, and the engine is woken later, when there is none now."""
        turn = self._next()
        if turn is None:
            self.wake()
            return None
        request = self._requests.request(*turn)
        self._in_flight.sent(turn[0], request)
        self._window.sent()
        return request

    def wake(self) -> None:
        """Have the engine ask when the next host is free, or when a fleet has granted what may be asked for."""
        now, moment = self._run.now(), 0.0 if self._ready else self._frontier.wake_at()
        if moment is not None and moment <= now and not self._ready and self._limits.waits():
            self._limits.want(self._engine.ask)
            return
        shut = self._outage is not None and self._outage.shut
        if moment is not None and not self._ready and (shut or self._run.halted):
            moment = max(moment, now + _HALTED_SECONDS)
        if self._full and moment is not None:  # it asks when a request has ended, too
            moment = max(moment, now + _FULL_SECONDS)
        self._engine.ask_at(moment, now)

    def _next(self) -> tuple[Lease, FetchError | None] | None:
        frontier = self._frontier
        if self._ready:
            self._full = False
            return None if self._budget.over() else self._ready.popleft()
        if self._outage is not None and self._outage.shut and not self._outage.takes_probe():
            return None
        while self._room(now := self._run.now()) and not (self._run.stopped or self._damaged or self._budget.over()):
            try:
                turn = frontier.next(now, self._budget.over)
                if isinstance(turn, Lookup):
                    self._lookups.begin(turn.host)
            except FrontierDamaged as error:
                self._damaged = True
                self._engine.stop_for_damage(error)
                return None
            except StorageError as error:
                self._run.pause(str(error))
                return None
            if turn is None:
                return None
            if isinstance(turn, Lookup):
                if self._ready:  # the address was at hand
                    return self._ready.popleft()
            elif self._addresses is None or turn.row.kind.is_render:
                return turn, None
            else:
                self._addresses.want(turn)
        return None

    def _room(self, now: float) -> bool:
        """A page in the browser asks for nothing itself, and must not keep out what it waits for."""
        under_way = self._frontier.state.leased - self._frontier.renders.in_flight
        shut = not self._window.open(under_way, self._fetches.unread(), now)
        self._full = shut or not self._limits.room(under_way)
        return not self._full

    def _looked_up(self, lease: Lease, error: FetchError | None) -> None:
        if self._addresses is not None and not lease.row.kind.is_render:
            self._addresses.want(lease, error)
        else:
            self._hand_over(lease, error)

    def _hand_over(self, lease: Lease, error: FetchError | None) -> None:
        self._ready.append((lease, error))
        self._engine.ask()

    def granted(self, lease: Lease, error: FetchError | None) -> None:
        """The lease's address is reserved for it among the workers."""
        run, now = self._run, self._run.now()
        if run.lost or run.stopped or not self._ownership.may_ask(lease.row.host):
            self._frontier.postpone(lease, now, now)
            self._in_flight.over(lease)
            return
        lease.granted(now)
        self._hand_over(lease, error)

    def refused(self, lease: Lease, wait_seconds: float, *, gives_way: bool) -> None:
        """Another worker has the turn at the lease's address."""
        now = self._run.now()
        if self._ownership.may_ask(lease.row.host):
            self._frontier.refused(lease, now, now + wait_seconds, gives_way=gives_way)
        else:
            self._frontier.postpone(lease, now, now)
        self.wake()

    def quick_waits(self, lease: Lease) -> bool:
        """Whether a quick domain waits in our line for the lease's address."""
        return self._frontier.workbench.ips.quick_waits(lease.address)

    def quit(self) -> bool:
        """End every lease that nothing was sent for yet; whether none is left, those that were sent for included."""
        while self._ready:
            lease, _ = self._ready.popleft()
            if not lease.ended:
                self._frontier.requeue(lease, self._run.now())
                self._in_flight.over(lease)
        return not (self._frontier.state.leased or self._lookups)

    def cancel(self) -> None:
        """Look up nothing more, and reserve nothing."""
        self._lookups.cancel()
        if self._addresses is not None:
            self._addresses.close()
