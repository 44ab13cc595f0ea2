"""DNS look-ups of hosts whose turn it is, at the rate that the resolver allows."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from crawlerproject.errors import FetchError, StorageError
from crawlerproject.fetch.resolver import MIN_TTL_SECONDS, OF_PROXIED_SECONDS, UNNAMED
from crawlerproject.frontier.hosts.ip_clocks import BEHIND_PROXY, UNRESOLVED
from crawlerproject.rules.url.urls import host_name

if TYPE_CHECKING:
    from crawlerproject.crawl.run import Run
    from crawlerproject.fetch.resolver import Resolved, Resolver
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.hosts.host import Host
    from crawlerproject.frontier.passage import Lease

# Least time between two batches of questions: a timer for each would cost more than the question.
_APART_SECONDS = 0.01


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
