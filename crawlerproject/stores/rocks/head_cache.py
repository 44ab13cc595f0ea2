"""The first rows of host queues, read from disk before they are asked for: one look then serves several turns.

A look at a queue on disk costs some 40 µs once the store is larger than its cache, whether it brings one row or
eight. What is kept is always an unbroken beginning of the queue, so that it may answer in the store's stead.
"""

from __future__ import annotations

from bisect import bisect_left

# Rows read beyond those asked for: at eight the look is a tenth of what a page costs the store (benchmarks).
ROWS_AHEAD = 8
# All rows kept. Hosts come in turn, so with too many of them to keep all, the ones that are in stay in: throwing the
# oldest out would throw out each one just before its turn.
MAX_BYTES = 16 * 1024 * 1024
# What two byte strings, their pair and its place in a list take besides their contents.
_OVERHEAD_BYTES = 2 * 33 + 56 + 8
# What nine rows of some 300 bytes take: with less than this free a queue's beginning is not read ahead at all.
_USUAL_BYTES = 4096
# After so many refusals for want of room everything goes, so that hosts which never come back do not stay for ever.
_REFUSALS = 1_000_000

PackedRow = tuple[bytes, bytes]  # queue key, packed row


class QueueHeadCache:
    """Bounded; every change of the queues must be reported to it."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._rows: dict[str, list[PackedRow]] = {}
        self._max_bytes = max_bytes
        self._bytes = 0
        self._refusals = 0

    def first(self, host: str, limit: int) -> list[PackedRow] | None:
        """The first ``limit`` rows of the host's queue; None when the store must be asked."""
        rows = self._rows.get(host)
        return None if rows is None or len(rows) < limit else rows[:limit]

    def has_room(self) -> bool:
        """Whether the beginning of another queue may be kept; no counts as a refusal."""
        if self._bytes + _USUAL_BYTES <= self._max_bytes:
            return True
        self._refused()
        return False

    def keep(self, host: str, rows: list[PackedRow]) -> None:
        """Keep the beginning of a queue as just read, if there is room."""
        self.forget(host)
        size = sum([len(key) + len(value) for key, value in rows]) + _OVERHEAD_BYTES * len(rows)
        if self._bytes + size <= self._max_bytes:
            self._rows[host] = rows
            self._bytes += size
            return
        self._refused()

    def removed(self, host: str, key: bytes) -> None:
        """A row has left the queue."""
        rows = self._rows.get(host)
        if rows is None:
            return
        at = bisect_left(rows, (key,))
        if at < len(rows) and rows[at][0] == key:
            self._bytes -= _size(rows.pop(at))
            if not rows:
                del self._rows[host]

    def queued(self, host: str, key: bytes, value: bytes) -> None:
        """A row has joined the queue; beyond what is kept it changes nothing."""
        rows = self._rows.get(host)
        if rows is None or key > rows[-1][0]:
            return
        at = bisect_left(rows, (key,))
        if rows[at][0] == key:  # written over
            self._bytes -= _size(rows.pop(at))
        rows.insert(at, (key, value))
        self._bytes += _size((key, value))

    def _refused(self) -> None:
        self._refusals += 1
        if self._refusals == _REFUSALS:
            self.clear()

    def forget(self, host: str) -> None:
        """Let go of one host."""
        for row in self._rows.pop(host, ()):
            self._bytes -= _size(row)

    def clear(self) -> None:
        """Let go of everything: what the store holds is not known for sure."""
        self._rows.clear()
        self._bytes = self._refusals = 0


def _size(row: PackedRow) -> int:
    return len(row[0]) + len(row[1]) + _OVERHEAD_BYTES
