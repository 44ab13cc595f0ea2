"""IP addresses shared with other workers: a request waits until its address is reserved for it in the whole crawl."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from crawlerproject.errors import FetchError, StorageError
from crawlerproject.fleet.local.questions import ADDRESSES
from crawlerproject.fleet.local.supervisor_link import SupervisorLink
from crawlerproject.frontier.hosts.ip_clocks import LONG_SECONDS
from crawlerproject.frontier.lease import Lease
from crawlerproject.rules.url.domains import bounded_domain

if TYPE_CHECKING:
    from crawlerproject.fleet.redis.worker import Fleet

logger = logging.getLogger(__name__)

# An address that is another's now, or of which nothing is known, is asked about again after so long at least (ours).
_AGAIN_SECONDS = 0.25
LOCAL_GAP_SECONDS = 0.02
"""Between two questions to a supervisor. A busy worker asks about some ten addresses with each, at a tenth of what ten
questions cost; one that asks seldom does not wait."""

# Domains that are remembered for requests that take long; then all are forgotten (ours).
_MOST_SLOW = 50_000

Waiting = tuple[Lease, FetchError | None]
Mark = tuple[str, str]
"""An address, and what its reservation is known by."""
Reserve = Callable[[Sequence[Lease], Sequence[Mark]], Awaitable[list[float]]]
"""Asks for the addresses of leases and gives others back: for each lease 0.0, or after how many seconds to try again.
Raises StorageError."""


def in_redis(fleet: Fleet, *, hold_seconds: float, rest_seconds: float) -> Reserve:
    """Those of a fleet in Redis. A worker that dies holds an address for ``hold_seconds``: no request takes longer."""
    store, hold_ms, rest_ms = fleet.store, int(hold_seconds * 1000), int(rest_seconds * 1000)

    def ask(leases: Sequence[Lease], rested: Sequence[Mark]) -> list[float]:
        # What the end of a request will ask about its hosts needs no answer from Redis then.
        hosts = {host for lease in leases for host in (lease.row.host, _asked_for(lease))}
        again = [(lease.row.page_key, lease.row.host) for lease in leases if lease.row.kind.is_recrawl]
        store.at_hand(hosts, again)
        wanted = [(lease.address, lease.mark, lease.slow) for lease in leases]
        return fleet.fleet.addresses(wanted, rested, hold_ms, rest_ms)

    async def reserve(leases: Sequence[Lease], rested: Sequence[Mark]) -> list[float]:
        return await asyncio.to_thread(ask, leases, rested)

    return reserve


def of_supervisor(link: SupervisorLink) -> Reserve:
    """Those of a local fleet, which a worker holds for as long as its connection lives."""

    async def reserve(leases: Sequence[Lease], rested: Sequence[Mark]) -> list[float]:
        wanted, given_back = [lease.address for lease in leases], [address for address, _ in rested]
        slow = [lease.address for lease in leases if lease.slow]
        waits: list[float] = await link.ask(ADDRESSES, wanted, given_back, slow)
        return waits

    return reserve


class IpReservations:
    """Batches requests: all that come up while a call is under way go with the next."""

    def __init__(
        self,
        reserve: Reserve,
        *,
        rest_seconds: float,
        granted: Callable[[Lease, FetchError | None], None],
        refused: Callable[[Lease, float], None],
        failed: Callable[[StorageError], None],
        worker: str = "",
        gap_seconds: float = 0.0,
    ) -> None:
        """``refused(lease, seconds)``: it is to be tried again after so long. ``gap_seconds`` between two calls."""
        self._reserve, self._worker = reserve, worker
        self._again_seconds = max(rest_seconds, _AGAIN_SECONDS)
        self._granted, self._refused, self._failed = granted, refused, failed
        self._gap_seconds = gap_seconds
        self._called_at = 0.0  # monotonic
        self._wanted: list[Waiting] = []
        self._rested: list[Mark] = []
        self._task: asyncio.Task[None] | None = None
        self._number = 0
        self._slow: set[str] = set()  # domains whose requests take long

    @property
    def waiting(self) -> int:
        """Leases that wait for an answer."""
        return len(self._wanted) + (self._task is not None)

    def want(self, lease: Lease, error: FetchError | None = None) -> None:
        """Reserve the lease's address, sometime soon."""
        self._number += 1
        lease.slow = bool(self._slow) and bounded_domain(lease.row.host) in self._slow
        lease.mark = f"{self._worker}:{self._number}"
        self._wanted.append((lease, error))
        self._start()

    def rest(self, lease: Lease) -> None:
        """The lease has ended: its address rests, then any worker may ask it."""
        if lease.mark:
            self._learn(lease)
            self._rested.append((lease.address, lease.mark))
            lease.mark = ""
            self._start()

    def _learn(self, lease: Lease) -> None:
        """A domain is slow as long as the host of its that was asked last is."""
        if lease.host.took_seconds > LONG_SECONDS:
            if len(self._slow) >= _MOST_SLOW:
                self._slow.clear()
            self._slow.add(bounded_domain(lease.row.host))
        elif self._slow:
            self._slow.discard(bounded_domain(lease.row.host))

    def close(self) -> None:
        """Ask no more; what is reserved falls free by itself."""
        if self._task is not None:
            self._task.cancel()

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._wanted or self._rested:
                if (gap := self._called_at + self._gap_seconds - time.monotonic()) > 0:
                    await asyncio.sleep(gap)
                await self._once()
        finally:
            self._task = None

    async def _once(self) -> None:
        wanted, self._wanted = self._wanted, []
        rested, self._rested = self._rested, []
        self._called_at = time.monotonic()
        try:
            waits = await self._reserve([lease for lease, _ in wanted], rested)
        except Exception as error:  # whatever it is: leases without an answer would keep their hosts for the whole run
            if isinstance(error, StorageError):
                self._failed(error)
            else:
                logger.exception("%d addresses cannot be reserved; they are tried again", len(wanted))
            waits = [self._again_seconds] * len(wanted)  # unknown owner: wait and ask again
        for (lease, failure), wait in zip(wanted, waits, strict=True):
            if wait:
                lease.mark = ""
                # An address that is in flight elsewhere may be free long before its reservation ends.
                self._refused(lease, min(wait, self._again_seconds))
            else:
                self._granted(lease, failure)


def _asked_for(lease: Lease) -> str:
    """The host that a robots.txt speaks for: a redirect may have led to another's."""
    return lease.row.note.rpartition("://")[2] if lease.row.kind.is_robots else lease.row.host
