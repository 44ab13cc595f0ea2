"""A heap of things that each wait for one moment, the earliest first."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Generic, Protocol, TypeVar

# Entries among which the latest are looked for at a time: 5 ms.
_LOOKED_AT = 25_000


class Timed(Protocol):
    """A thing that waits in at most one heap."""

    serial: int  # of its entry; any other entry is stale; 0: it has none


T = TypeVar("T", bound=Timed)


class TimerHeap(Generic[T]):
    """An entry is never moved: a thing that waits for another moment gets a new one. Moments are epoch seconds."""

    __slots__ = ("_dropped", "_heap", "_looked_to", "_serial")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._serial = 0
        self._dropped = 0  # since the heap was rid of what is stale
        self._looked_to = 0  # by ``latest``

    def push(self, item: T, at: float) -> None:
        """Let a thing wait for this moment and no other."""
        self._serial += 1
        item.serial = self._serial
        heappush(self._heap, (at, self._serial, item))

    def due(self, now: float) -> bool:
        """Whether ``pop`` has an entry of this moment or an earlier one."""
        heap = self._heap
        return bool(heap) and heap[0][0] <= now

    def pop(self) -> T | None:
        """The first thing, which waits no more; None when its entry is stale."""
        _, serial, item = heappop(self._heap)
        if item.serial != serial:
            return None
        item.serial = 0
        return item

    def drop(self, item: T) -> None:
        """It waits no more."""
        self._dropped += 1
        item.serial = 0

    def tidy(self) -> None:
        """Forget stale entries of what was dropped, once they are half of all."""
        if self._dropped > len(self._heap) // 2:
            self._dropped = 0
            self._heap = [entry for entry in self._heap if entry[2].serial == entry[1]]
            heapify(self._heap)

    def wake_at(self) -> float | None:
        """The first moment; None when nothing waits."""
        heap = self._heap
        while heap and heap[0][2].serial != heap[0][1]:
            heappop(heap)
        return heap[0][0] if heap else None

    def latest(self, count: int, later_than: float) -> list[T]:
        """Some ``count`` things that wait for a moment later than ``later_than``.

        They are the latest of a part of all, another part each time: empty while there may be some in other parts.
        """
        start = self._looked_to if self._looked_to < len(self._heap) else 0
        self._looked_to = start + _LOOKED_AT
        found = [
            entry
            for entry in self._heap[start : start + _LOOKED_AT]
            if entry[0] > later_than and entry[2].serial == entry[1]
        ]
        found.sort(key=itemgetter(0), reverse=True)
        return [item for _, _, item in found[:count]]
