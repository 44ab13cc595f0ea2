"""The queues of all hosts in RocksDB: one table, in which the rows of a host lie together in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rocksdict import ReadOptions, WriteBatch

from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import QueuedPage
from crawlerproject.stores.rocks.head_cache import ROWS_AHEAD, PackedRow, QueueHeadCache
from crawlerproject.stores.rocks.tables import Tables
from crawlerproject.stores.row_codec import (
    PLACE_BYTES,
    host_end,
    host_of,
    host_prefix,
    pack_queued,
    place_after,
    queue_key,
    unpack_queued,
)

# Hosts whose first row is remembered. With more hosts than this being crawled in turn, each one's share of the
# removals that compaction has not yet cleared is too small (some dozens) to be worth remembering.
REMEMBERED_HEADS = 16_384

# Hosts found with one iterator, which pins old files as long as it lives.
HOSTS_AT_A_TIME = 250


class RocksQueues:
    """Reads the tables that ``tables`` gives at that moment: the store may open its database again."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables
        # host -> a key with nothing queued before it
        self._heads: LruCache[str, bytes] = LruCache(REMEMBERED_HEADS)
        self._ahead = QueueHeadCache()

    def head(self, host: str, limit: int, after: tuple[int, int] | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        if after is not None:
            prefix = host_prefix(host)
            found = self._rows_from(prefix, place_after(prefix, *after), limit)
        else:
            found = self._ahead.first(host, limit) or self._first_rows(host, limit)
        return [unpack_queued(host, key, value) for key, value in found]

    def whole(self, host: str) -> Iterator[QueuedPage]:
        """The host's whole queue in order."""
        prefix, tables = host_prefix(host), self._tables()
        options = ReadOptions()
        options.set_iterate_upper_bound(host_end(prefix))
        return (unpack_queued(host, *row) for row in tables.rows(tables.queue, prefix, options))

    def hosts(self) -> Iterator[str]:
        """Every host with at least one row, each once; it may see changes made meanwhile."""
        start = b""
        while True:
            found, start = self._hosts_from(start)
            yield from found
            if len(found) < HOSTS_AT_A_TIME:
                return

    def change(self, batch: WriteBatch, removed: Iterable[QueuedPage], queued: Iterable[QueuedPage]) -> set[bytes]:
        """Remove rows, then queue others, maybe in their places; the keys of the pages that were removed."""
        tables, ahead, heads = self._tables(), self._ahead, self._heads
        put, queue, seen = batch.put, tables.queue_handle, tables.seen_handle
        gone = set()
        for row in removed:
            place = queue_key(row)
            batch.delete(place, queue)
            ahead.removed(row.host, place)
            gone.add(row.key)
        for row in queued:
            place, packed = queue_key(row), pack_queued(row)
            put(place, packed, queue)
            put(row.key, b"", seen)
            ahead.queued(row.host, place, packed)
            if place < heads.peek(row.host, b""):
                heads[row.host] = place
        return gone

    def forget(self) -> None:
        """Let go of what is at hand: a change may or may not have been written."""
        self._ahead.clear()

    def _first_rows(self, host: str, limit: int) -> list[PackedRow]:
        if limit <= 0:  # nothing would say where the queue begins
            return []
        prefix = host_prefix(host)
        # Rows ahead that would not be kept are not read: a tenth of a look where hosts are too many to keep theirs.
        more = ROWS_AHEAD if self._ahead.has_room() else 0
        found = self._rows_from(prefix, self._heads.get(host) or prefix, limit + more)
        # Removed rows before a queue's head cost time at every look: the next one starts behind them.
        self._heads[host] = found[0][0] if found else prefix + b"\xff" * PLACE_BYTES
        if more and found:
            self._ahead.keep(host, found)
        return found[:limit]

    def _rows_from(self, prefix: bytes, start: bytes, limit: int) -> list[PackedRow]:
        if limit <= 0:
            return []
        options = ReadOptions()
        options.set_iterate_upper_bound(host_end(prefix))
        tables = self._tables()
        rows = tables.queue.iter(options)  # a new one each time: an iterator sees the store as it was when made
        rows.seek(start)
        found: list[PackedRow] = []
        while rows.valid():
            found.append((rows.key(), rows.value()))
            if len(found) == limit:  # the next row may lie in another block
                return found
            rows.next()
        tables.require_end(rows)
        return found

    def _hosts_from(self, start: bytes) -> tuple[list[str], bytes]:
        found: list[str] = []
        options = ReadOptions()
        options.set_total_order_seek(True)  # from host to host, not within one
        tables = self._tables()
        rows = tables.queue.iter(options)
        rows.seek(start)
        while rows.valid() and len(found) < HOSTS_AT_A_TIME:
            key = rows.key()
            found.append(host_of(key))
            start = host_end(key[:-PLACE_BYTES])
            rows.seek(start)
        if len(found) < HOSTS_AT_A_TIME:
            tables.require_end(rows)
        return found, start
