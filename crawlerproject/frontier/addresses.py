"""IP addresses shared with other workers: a request waits until its address is reserved for it in the whole crawl."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from crawlerproject.errors import FetchError, StorageError
from crawlerproject.frontier.lease import Lease
from crawlerproject.stores.redis_fleet import RedisFleet

Waiting = tuple[Lease, FetchError | None]


class Addresses:
    """Everything that comes up while a call is under way goes with the next: one round trip for many requests."""

    def __init__(
        self,
        fleet: RedisFleet,
        *,
        hold_seconds: float,
        rest_seconds: float,
        granted: Callable[[Lease, FetchError | None], None],
        refused: Callable[[Lease, float], None],
        failed: Callable[[StorageError], None],
    ) -> None:
        """``hold_seconds``: no request takes longer; a worker that dies holds an address for as long.

        ``refused`` is told after how many seconds to try again.
        """
        self._fleet = fleet
        self._hold_ms = int(hold_seconds * 1000)
        self._rest_seconds = rest_seconds
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
        """The lease has ended: its address rests, then anyone may ask it."""
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

    async def _once(self) -> None:
        wanted, self._wanted = self._wanted, []
        rested, self._rested = self._rested, []
        marks = [(lease.address, lease.mark) for lease, _ in wanted]
        rest_ms = int(self._rest_seconds * 1000)
        try:
            waits = await asyncio.to_thread(self._fleet.addresses, marks, rested, self._hold_ms, rest_ms)
        except StorageError as error:
            self._failed(error)
            waits = [self._rest_seconds] * len(wanted)  # whoever may have it: on doubt wait
        for (lease, failure), wait in zip(wanted, waits, strict=True):
            if wait:
                lease.mark = ""
                # An address that is in flight elsewhere may be free long before its reservation ends.
                self._refused(lease, min(wait, self._rest_seconds))
            else:
                self._granted(lease, failure)
