"""The queues of all hosts in RocksDB: one table, in which the rows of a host lie together in their order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from operator import attrgetter

from rocksdict import ReadOptions, WriteBatch

from crawlerproject.errors import FrontierDamaged
from crawlerproject.stores.protocols import QueuedPage
from crawlerproject.stores.rocks.head_cache import MAX_PLACES, PackedRow, QueueHeadCache
from crawlerproject.stores.rocks.tables import Tables
from crawlerproject.stores.row_codec import (
    PLACE_BYTES,
    host_end,
    host_of,
    host_prefix,
    pack_place,
    pack_queued,
    place_after,
    queue_key,
    unpack_queued,
)

# Hosts found with one iterator, which pins old files as long as it lives.
HOSTS_AT_A_TIME = 250

_HOST = attrgetter("host")


class RocksQueues:
    """Reads the tables that ``tables`` gives at that moment: the store may open its database again."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables
        self._ahead = QueueHeadCache()

    def head(self, host: str, limit: int, after: tuple[int, int] | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        if limit <= 0:
            return []
        prefix = host_prefix(host)
        if after is not None:
            found = self._rows_from(prefix, place_after(prefix, *after), limit)
        else:
            known = self._ahead.first(host, limit)
            found = self._first_rows(host, prefix, limit) if known is None else self._rows_at(host, prefix, *known)
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

    def change(self, batch: WriteBatch, removed: Iterable[QueuedPage], queued: Collection[QueuedPage]) -> set[bytes]:
        """Remove rows, then queue others, maybe in their places; the keys of the pages that were removed."""
        tables, ahead = self._tables(), self._ahead
        put, queue, seen = batch.put, tables.queue_handle, tables.seen_handle
        for host in {row.host for row in queued}:
            if host not in ahead and ahead.has_room(host):
                self._begin(host)
        gone = set()
        for row in removed:
            place = queue_key(row)
            batch.delete(place, queue)
            ahead.removed(row.host, place)
            gone.add(row.key)
        for host, rows in groupby(queued, _HOST):  # a page names many of one
            prefix, last = host_prefix(host), ahead.last(host)
            joined: dict[bytes, bytes] = {}
            for row in rows:
                place, packed = pack_place(row), pack_queued(row)
                put(prefix + place, packed, queue)
                put(row.key, b"", seen)
                if place <= last:
                    joined[place] = packed
            if joined:
                ahead.queued(host, joined)
        return gone

    def forget(self) -> None:
        """Let go of what is at hand: a change may or may not have been written."""
        self._ahead.clear()

    def _begin(self, host: str) -> None:
        """Rows come for a queue of which nothing is known: that it is empty costs a quarter of a later look."""
        prefix = host_prefix(host)
        with suppress(FrontierDamaged):  # what cannot be read is said when it is asked for
            self._look(host, prefix, MAX_PLACES)

    def _first_rows(self, host: str, prefix: bytes, limit: int) -> list[PackedRow]:
        if self._ahead.has_room(host):
            return self._look(host, prefix, max(limit, MAX_PLACES))[:limit]
        self._ahead.refused()
        return self._rows_from(prefix, prefix, limit)

    def _look(self, host: str, prefix: bytes, limit: int) -> list[PackedRow]:
        # Removed rows before a queue's head cost time at every look: the next one starts behind them.
        found = self._rows_from(prefix, prefix + self._ahead.start(host), limit)
        self._ahead.keep(host, found, whole=len(found) < limit)
        return found

    def _rows_at(self, host: str, prefix: bytes, places: list[bytes], rows: list[bytes]) -> list[PackedRow]:
        """Rows at known places; ``rows``: those at the first of them."""
        if len(rows) < len(places):
            read = self._ahead.rows_to_read(host, len(places))
            try:
                found: list[bytes | None] = self._tables().queue.get([prefix + place for place in read]) or []
            except Exception:  # rocksdict raises no narrower class: the look below says what cannot be read
                found = []
            rows = [row for row in found if row is not None]
            if len(rows) < len(read):
                self._ahead.forget(host)
                return self._first_rows(host, prefix, len(places))
            self._ahead.keep_rows(host, rows)
        return [(prefix + place, row) for place, row in zip(places, rows, strict=False)]

    def _rows_from(self, prefix: bytes, start: bytes, limit: int) -> list[PackedRow]:
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
