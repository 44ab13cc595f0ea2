"""A worker's parts of the sums that its whole crawl may spend: asked for when they are needed, given back when not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from crawlerproject.errors import StorageError
from crawlerproject.rules.fleet_shares import QuotaRequest, Share


class FleetQuota:
    """One of them. Nothing is spent beyond ``granted``, so all workers together never spend more than the sum."""

    def __init__(self, kind: str, most: int, committed: Callable[[], int], used: Callable[[], int]) -> None:
        """What this worker has ``committed``, and ``used`` with what is on its way; over all its starts."""
        self.kind = kind
        self.most = most
        self.least, self.largest = 1, most  # of what is granted at a time
        self.at_hand = False  # wanted from the start and kept in idle moments: who spends it cannot wait for a grant
        self.granted: int | None = None  # over all starts; None: not yet known
        self.committed = 0  # by all workers
        self.wanted = False  # more than is granted
        self.vain = False  # nothing was left: not asked again before the next ``turn``
        self._committed, self._used = committed, used
        self._durable = committed()
        self._others_want = False

    @property
    def left(self) -> int:
        """What may still be spent."""
        return 0 if self.granted is None else self.granted - self._used()

    def claim(self, *, gives: bool, idle: bool = False) -> QuotaRequest:
        """What to request now; what is given back is not used from here on."""
        used = self._used()
        if gives:  # of what is at hand half, since it may be spent before the answer is here
            used += max(self.left, 0) // 2 if self.at_hand else 0
            self.granted = used
        self.wanted = self.wanted and (self.at_hand or not idle)
        numbers = self.most, self._durable, max(used, self._durable), self.wanted, gives
        return QuotaRequest(self.kind, *numbers, self.least, self.largest)

    def durable(self) -> None:
        """All that was committed until now is."""
        self._durable = self._committed()
        self.vain = False

    def unused(self, *, idle: bool) -> bool:
        """Whether to give back what is not used: it cannot be used here, or another worker has none.

        What an earlier life was granted it does not know, and keeps at hand where that is wanted.
        """
        if self.granted is None:
            return not self.at_hand
        return self.left > 0 and ((idle and not self.at_hand) or self._others_want)

    def answered(self, share: Share) -> None:
        """Take what was granted."""
        self.granted, self.committed, self._others_want = share
        self.wanted = self.wanted and self.left <= 0  # in vain: the others give back what they do not use


class FleetQuotas:
    """For one event loop; one exchange at a time."""

    def __init__(
        self,
        exchange: Callable[[Sequence[QuotaRequest]], Awaitable[list[Share]]],
        failed: Callable[[StorageError], None],
    ) -> None:
        """``exchange``: as ``Coordinator.shares``; ``failed`` is called when nothing could be asked."""
        self._exchange = exchange
        self._failed = failed
        self._sums: list[FleetQuota] = []
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def add(self, shared: FleetQuota) -> FleetQuota:
        """Share this one as well."""
        self._sums.append(shared)
        return shared

    async def turn(self, *, idle: bool) -> None:
        """After each commit, which is durable. StorageError."""
        self.durable()
        await self.exchange(idle=idle)

    def durable(self) -> None:
        """A commit is."""
        for shared in self._sums:
            shared.durable()

    async def exchange(self, *, idle: bool) -> None:
        """Say how much is spent, give back what is not used, and be granted what is wanted. StorageError."""
        if self._sums:
            async with self._lock:
                await self._ask(idle=idle, giving=True)

    def want(self, shared: FleetQuota, then: Callable[[], None]) -> None:
        """Ask for more, unless that was in vain a moment ago; ``then`` is called when there is some."""
        shared.wanted = True
        if self._task is None and not shared.vain:
            self._task = asyncio.get_running_loop().create_task(self._want(then))

    async def _want(self, then: Callable[[], None]) -> None:
        starved = [shared for shared in self._sums if shared.wanted]
        try:
            async with self._lock:
                await self._ask(idle=False, giving=False)
            if any(shared.left > 0 for shared in starved):
                then()
        except StorageError as error:
            self._failed(error)
        finally:
            for shared in starved:
                shared.vain = shared.left <= 0
            self._task = None

    async def _ask(self, *, idle: bool, giving: bool) -> None:
        sums = list(self._sums)
        claims = [shared.claim(gives=giving and shared.unused(idle=idle), idle=idle) for shared in sums]
        for shared, share in zip(sums, await self._exchange(claims), strict=True):
            shared.answered(share)
