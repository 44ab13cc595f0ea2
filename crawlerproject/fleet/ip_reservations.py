"""IP addresses shared with other workers: a request waits until its address is reserved for it in the whole crawl."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from crawlerproject.errors import FetchError, StorageError
from crawlerproject.fleet.worker import Fleet
from crawlerproject.frontier.lease import Lease
from crawlerproject.stores.protocols import FLAG_RECRAWL

# An address that is another's now, or of which Redis says nothing, is asked about again after so long at least (ours).
_AGAIN_SECONDS = 0.25

Waiting = tuple[Lease, FetchError | None]


class IpReservations:
    """Batches requests: all that come up while a call is under way go with the next round trip."""

    def __init__(
        self,
        fleet: Fleet,
        *,
        hold_seconds: float,
        rest_seconds: float,
        granted: Callable[[Lease, FetchError | None], None],
        refused: Callable[[Lease, float], None],
        failed: Callable[[StorageError], None],
    ) -> None:
        """``hold_seconds``: no request takes longer; a worker that dies holds an address for as long.

        ``refused(lease, seconds)``: it is to be tried again after so long.
        """
        self._fleet, self._store = fleet.fleet, fleet.store
        self._hold_ms = int(hold_seconds * 1000)
        self._rest_seconds = rest_seconds
        self._again_seconds = max(rest_seconds, _AGAIN_SECONDS)
        self._granted, self._refused, self._failed = granted, refused, failed
        self._wanted: list[Waiting] = []
        self._rested: list[tuple[str, str]] = []
        self._task: asyncio.Task[None] | None = None
        self._number = 0

    @property
    def waiting(self) -> int:
        """Leases that wait for an answer."""
        return len(self._wanted) + (self._task is not None)

    def want(self, lease: Lease, error: FetchError | None = None) -> None:
        """Reserve the lease's address, sometime soon."""
        self._number += 1
        lease.mark = f"{self._fleet.worker}:{self._number}"
        self._wanted.append((lease, error))
        self._start()

    def rest(self, lease: Lease) -> None:
        """The lease has ended: its address rests, then any worker may ask it."""
        if lease.mark:
            self._rested.append((lease.address, lease.mark))
            lease.mark = ""
            self._start()

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
                await self._once()
        finally:
            self._task = None

    def _reserve(self, leases: Sequence[Lease], rested: Sequence[tuple[str, str]]) -> list[float]:
        # What the end of a request will ask about its hosts needs no answer from Redis then.
        hosts = {host for lease in leases for host in (lease.row.host, _asked_for(lease))}
        again = [(lease.row.key, lease.row.host) for lease in leases if lease.row.flags & FLAG_RECRAWL]
        self._store.at_hand(hosts, again)
        marks = [(lease.address, lease.mark) for lease in leases]
        return self._fleet.addresses(marks, rested, self._hold_ms, int(self._rest_seconds * 1000))

    async def _once(self) -> None:
        wanted, self._wanted = self._wanted, []
        rested, self._rested = self._rested, []
        try:
            waits = await asyncio.to_thread(self._reserve, [lease for lease, _ in wanted], rested)
        except StorageError as error:
            self._failed(error)
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
    return lease.row.note.rpartition("://")[2] if lease.is_robots else lease.row.host
