"""Hands out leases, each as a request: the host's turn, its address, in a fleet the address's reservation."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.crawl.dns_lookups import DnsLookups
from crawlerproject.errors import FetchError, FrontierDamaged, StorageError
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.leasing import Lookup
from crawlerproject.runtime.loop_budget import LoopBudget
from crawlerproject.runtime.send_window import SendWindow

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request

    from crawlerproject.crawl.engine import Engine
    from crawlerproject.crawl.requests import LeaseRequests
    from crawlerproject.crawl.run import Run
    from crawlerproject.crawl.session import Session
    from crawlerproject.crawl.under_way import UnderWay
    from crawlerproject.fetch.resolver import Resolver


# While as many are under way as may be, it is looked again so often: the window opens by two meanwhile.
_FULL_SECONDS = 0.01
# While nothing may be asked it is looked again so often: what ends the pause has the engine ask at once.
_HALTED_SECONDS = 1.0


class Fetches(NamedTuple):
    """What the dispatch must know of requests on their way."""

    resolver: Resolver
    lines: tuple[LoopBudget, ...]  # in which answers wait to be read, and pages to be archived
    behind_proxy: Callable[[str], bool]  # whether a proxy resolves this name or name:port

    def unread(self) -> int:
        """How many of both wait."""
        return sum([line.waiting for line in self.lines])


class LeaseDispatch:
    """What has a lease, an address and a reservation is ready; it leaves by ``next`` alone, when the engine asks."""

    def __init__(
        self,
        session: Session,
        run: Run,
        requests: LeaseRequests,
        under_way: UnderWay,
        engine: Engine,
        fetches: Fetches,
    ) -> None:
        self._frontier = session.frontier
        self._member = session.member
        self._limits = session.limits
        self._run = run
        self._requests = requests
        self._under_way = under_way
        self._engine = engine
        self._fetches = fetches
        self._window = SendWindow()
        self._outage = session.pages.outage
        self._lookups = DnsLookups(
            fetches.resolver, session.frontier, run, self._looked_up, self.wake, fetches.behind_proxy
        )
        self._addresses = session.member.reservations(run, self)
        if self._addresses is not None:
            under_way.rest_with(self._addresses.rest)
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
        self._under_way.sent(turn[0], request)
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
        while self._room() and not (self._run.stopped or self._damaged or self._budget.over()):
            try:
                turn = frontier.next(self._run.now(), self._budget.over)
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

    def _room(self) -> bool:
        """A page in the browser asks for nothing itself, and must not keep out what it waits for."""
        under_way = self._frontier.state.leased - self._frontier.renders.in_flight
        shut = not self._window.open(under_way, self._fetches.unread(), self._run.now())
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
        if run.lost or run.stopped or not self._member.may_ask(lease.row.host):
            self._frontier.postpone(lease, now, now)
            self._under_way.over(lease)
            return
        lease.granted(now)
        self._hand_over(lease, error)

    def refused(self, lease: Lease, wait_seconds: float) -> None:
        """Another worker has the lease's address."""
        now = self._run.now()
        self._frontier.postpone(lease, now, now + wait_seconds)
        self.wake()

    def quit(self) -> bool:
        """End every lease that nothing was sent for yet; whether none is left, those that were sent for included."""
        while self._ready:
            lease, _ = self._ready.popleft()
            if not lease.ended:
                self._frontier.requeue(lease, self._run.now())
                self._under_way.over(lease)
        return not (self._frontier.state.leased or self._lookups)

    def cancel(self) -> None:
        """Look up nothing more, and reserve nothing."""
        self._lookups.cancel()
        if self._addresses is not None:
            self._addresses.close()
