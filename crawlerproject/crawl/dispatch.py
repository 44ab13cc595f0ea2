"""Hands out leases, each as a request: the host's turn, its address, in a fleet the address's reservation."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Container
from typing import NamedTuple

from scrapy import Request

from crawlerproject.crawl.engine import Engine
from crawlerproject.crawl.lease_requests import LeaseRequests
from crawlerproject.crawl.network_outage import Outage
from crawlerproject.crawl.run import Run
from crawlerproject.crawl.session import Session
from crawlerproject.errors import FetchError, FrontierDamaged, StorageError
from crawlerproject.fetch.resolver import MIN_TTL_SECONDS, OF_PROXIED_SECONDS, UNNAMED, Resolved, Resolver
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.ip_clocks import BEHIND_PROXY, UNRESOLVED
from crawlerproject.frontier.leasing import Lookup
from crawlerproject.frontier.passage import Lease
from crawlerproject.rules.url.urls import host_name
from crawlerproject.runtime.loop_budget import LoopBudget

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

# Least time between two batches of questions: a timer for each would cost more than the question.
_APART_SECONDS = 0.01


class Fetches(NamedTuple):
    """What the dispatch must know of requests on their way."""

    resolver: Resolver
    lines: tuple[LoopBudget, LoopBudget]  # in which answers wait to be read, and pages to be archived
    behind_proxy: Callable[[str], bool]  # whether a proxy resolves this name or name:port


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
        if not (lease.kind.is_render and lease.host.name in self.by_host):
            self.by_host[lease.host.name] = lease
        self._sent[id(lease)] = (lease, request)

    def answered(self, lease: Lease) -> None:
        """Its Page is here."""
        self._sent.pop(id(lease), None)

    def over(self, lease: Lease) -> None:
        """It has ended."""
        self._sent.pop(id(lease), None)
        if self.by_host.get(lease.host.name) is lease:
            del self.by_host[lease.host.name]
        if self._rest is not None:
            self._rest(lease)

    def unanswered(self, known: Container[Request]) -> list[Lease]:
        """The leases without a Page whose request the engine does not know."""
        return [lease for lease, request in self._sent.values() if request not in known]


class SendWindow:
    """How many requests may be under way while more answers come than are read.

    A processor that is behind gains nothing by asking for more: a thousand answers in memory, two hundred objects each,
    make Python's collector slow and each of them late. Answers that wait to be read say that it is behind. Then one
    request goes out for two that have ended; while none waits, the window opens slowly. So it finds by itself how many
    the distance to the servers needs: a simulation with answers that take up to a hundred turns of the loop has no idle
    turn. Call ``open`` before each request; ``now`` is seconds.
    """

    def __init__(self) -> None:
        self._most = float(LEAST)
        self._ended = 0  # of all that were sent, as far as it is known here
        self._asked_at = 0.0

    def open(self, sent: int, under_way: int, unread: int, now: float) -> bool:
        """Whether one more may be sent: ``sent`` were so far, ``under_way`` are, ``unread`` of them wait to be read."""
        ended = max(sent - under_way - self._ended, 0)
        self._ended = sent - under_way
        if unread >= _BEHIND:
            self._most = max(min(self._most, under_way + ended) - ended / 2, _BEHIND)
        elif not unread:
            opens = _OPENS_A_SECOND * min(max(now - self._asked_at, 0.0), _LONGEST_SECONDS)
            self._most = min(self._most + opens, max(LEAST, 2 * under_way))
        self._asked_at = now
        return under_way < self._most


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
        self._sent = 0  # requests so far
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
        now = self._run.now()
        turn = self._next(now)
        if turn is None:
            self._wake(now)
            return None
        lease, error = turn
        request = self._requests.request(lease, error)
        self._in_flight.sent(lease, request)
        self._sent += 1
        return request

    def wake(self) -> None:
        """Have the engine ask when the next host is free, or when a fleet has granted what may be asked for."""
        self._wake(self._run.now())

    def _wake(self, now: float) -> None:
        moment = 0.0 if self._ready else self._frontier.wake_at()
        if moment is not None and moment <= now and not self._ready and self._limits.waits():
            self._limits.want(self._engine.ask)
            return
        shut = self._outage is not None and self._outage.shut
        if moment is not None and not self._ready and (shut or self._run.halted):
            moment = max(moment, now + _HALTED_SECONDS)
        if self._full and moment is not None:  # it asks when a request has ended, too
            moment = max(moment, now + _FULL_SECONDS)
        self._engine.ask_at(moment, now)

    def _next(self, now: float) -> tuple[Lease, FetchError | None] | None:
        frontier = self._frontier
        if self._ready:
            self._full = False
            return None if self._budget.over() else self._ready.popleft()
        if self._outage is not None and self._outage.shut and not self._outage.takes_probe():
            return None
        while True:
            # A page in the browser asks for nothing itself, and must not keep out what it waits for.
            under_way = frontier.state.leased - frontier.renders.in_flight
            answers, pages = self._fetches.lines
            shut = not self._window.open(self._sent, under_way, len(answers.waiting) + len(pages.waiting), now)
            limits = self._limits
            self._full = shut or under_way >= limits.max_in_flight or (limits.any and not limits.may_send(under_way))
            if self._full or self._run.stopped or self._damaged or self._budget.over():
                return None
            try:
                turn = frontier.leasing.next(now, self._budget.over)
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
            elif self._addresses is None or turn.kind.is_render:
                return turn, None
            else:
                self._addresses.want(turn)
            now = self._run.now()

    def _looked_up(self, lease: Lease, error: FetchError | None) -> None:
        if self._addresses is not None and not lease.kind.is_render:
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


class DnsLookups:
    """One task per question; hosts beyond the rate wait in line without one."""

    def __init__(
        self,
        resolver: Resolver,
        frontier: Frontier,
        run: Run,
        found: Callable[[Lease, FetchError | None], None],
        nothing: Callable[[], None],
        behind_proxy: Callable[[str], bool] = lambda name: False,
    ) -> None:
        """``found(lease, error)`` is called when a host gets a lease (``error``: without address), else ``nothing``.

        ``behind_proxy``: whether a proxy resolves this name. Our own look-up then only tells which hosts share an
        address; it need not succeed.
        """
        self._resolver = resolver
        self._frontier = frontier
        self._run = run
        self._found = found
        self._nothing = nothing
        self._behind_proxy = behind_proxy
        self._tasks: set[asyncio.Task[None]] = set()
        # Hosts that had an address before go first: new hosts, however many, must not hold up those being crawled. Then
        # those that seeds or pages of their own domain name, then others, of each domain that names some one in turn.
        self._again: deque[Host] = deque()
        self._own: deque[Host] = deque()
        self._named: OrderedDict[str, deque[Host]] = OrderedDict()
        self._waiting = 0  # in all of these
        self._timer: asyncio.Handle | None = None

    def __bool__(self) -> bool:
        return bool(self._tasks or self._waiting)

    def begin(self, host: Host) -> None:
        """Look up a host: here and now from the cache, else as soon as the rate allows a question."""
        try:
            resolved = self._resolver.at_hand(_name(host))
        except FetchError as failed:
            self._end(host, failed)
            return
        if resolved is not None:
            self._end(host, resolved)
            return
        self._line_up(host)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_soon(self._go_on)

    def cancel(self) -> None:
        """Cancel all look-ups."""
        if self._timer is not None:
            self._timer.cancel()
        self._again.clear()
        self._own.clear()
        self._named.clear()
        self._waiting = 0
        for task in self._tasks:
            task.cancel()

    def _go_on(self) -> None:
        """Ask as many questions as the rate allows; they are counted before the next call."""
        self._timer = None
        if not self._waiting:
            return
        for _ in range(min(self._resolver.room(), self._waiting)):
            self._start(self._next())
        self._timer = asyncio.get_running_loop().call_later(_APART_SECONDS, self._go_on)

    def _line_up(self, host: Host) -> None:
        self._waiting += 1
        if host.address:
            self._again.append(host)
        elif named_by := self._frontier.names.namer(host):
            self._named.setdefault(named_by, deque()).append(host)
        else:
            self._own.append(host)

    def _next(self) -> Host:
        self._waiting -= 1
        if line := self._again or self._own:
            return line.popleft()
        named_by, line = self._named.popitem(last=False)
        host = line.popleft()
        if line:
            self._named[named_by] = line
        return host

    def _start(self, host: Host) -> None:
        task = asyncio.get_running_loop().create_task(self._resolve(host))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _resolve(self, host: Host) -> None:
        try:
            within = OF_PROXIED_SECONDS if self._behind_proxy(host.name) else None
            answer: Resolved | FetchError = await self._resolver.resolve(_name(host), within)
        except FetchError as failed:
            answer = failed
        self._end(host, answer)

    def _end(self, host: Host, answer: Resolved | FetchError) -> None:
        frontier, now = self._frontier, self._run.now()
        error = answer if isinstance(answer, FetchError) else None
        if error is not None and error.reason in UNNAMED and self._behind_proxy(host.name):
            address, until, error = BEHIND_PROXY + host.name, now + MIN_TTL_SECONDS, None
        elif isinstance(answer, FetchError):  # the host keeps its turn: the failure is logged and judged like any other
            address, until = UNRESOLVED + host.name, 0.0
        else:
            address, until = frontier.leasing.address_for(host, answer.addresses, now), answer.expires_at
        try:
            lease = frontier.leasing.looked_up(host, address, until, now)
        except StorageError as away:
            self._run.pause(str(away))
            return
        if lease is not None:
            self._found(lease, error)
        else:
            self._nothing()


def _name(host: Host) -> str:
    return host_name(host.name).strip("[]")
