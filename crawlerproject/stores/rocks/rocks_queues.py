"""The queues of all hosts in RocksDB: one table, in which the rows of a host lie together in their order.

``QueueHeadCache`` remembers where the first rows of queues lie, so that they are read by key, and the very first of
these rows themselves. A look for the beginning of a queue on disk opens an iterator over all sorted files, and reading
a row by its key costs half of that (benchmarks). What is known is always an unbroken beginning of the queue: it may
answer in the store's stead, also that there is no row at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from struct import Struct
from typing import Final

from rocksdict import ReadOptions

from crawlerproject.stores.protocols import QueuedPage
from crawlerproject.stores.rocks.rocks_tables import Tables
from crawlerproject.stores.row_codec import (
    PLACE_BYTES,
    QUEUE,
    host_end,
    host_of,
    host_prefix,
    pack_place,
    place_after,
    unpack_queued,
)

# Hosts found with one iterator, which pins old files as long as it lives.
HOSTS_AT_A_TIME = 250


MAX_PLACES = 16
"""Of one host: one look at the store finds them all, and costs a tenth more than one for the first row alone."""
MAX_ROWS = 4
"""Rows of one host that are kept, and read at a time: those that follow a row mostly lie in the same block."""
MAX_HOSTS = 100_000
"""As many as a crawl has in memory (FRONTIER_MAX_HOSTS_IN_MEMORY): 30 MB with sixteen places each. Hosts come in turn,
so with more of them those that are in stay in: throwing the oldest out would throw out each just before its turn."""
MAX_ROW_BYTES = 24 * 1024 * 1024
"""All rows kept: one or two for each of so many hosts. The others are read when they are asked for."""
_REFUSALS = MAX_HOSTS
"""After so many looks that found no room everything goes, so that hosts which never come back do not stay for ever."""

Put = Callable[..., None]
Pack = Callable[[QueuedPage], bytes]
PackedRow = tuple[bytes, bytes]  # queue key, packed row

# What is known of a queue, by the places that follow.
_MORE: Final = 0  # the first rows; others may follow them
_WHOLE: Final = 1  # all rows, none maybe
_NONE_BEFORE: Final = 2  # no row: only that there is none before this one place

# One host's: kind, places. Then the places in order, then the first rows, each behind its length. Packed, for a hundred
# thousand lists would take three times as much.
_HEAD = Struct("<BB")
_LENGTH = Struct("<I")
_PLACES, _FIRST = Struct(f"{PLACE_BYTES}s"), itemgetter(0)
_BEHIND_ALL = b"\xff" * (PLACE_BYTES + 1)


class RocksQueues:
    """The part of a RocksReader that reads queues, and of a RocksStore that changes them."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._heads = QueueHeadCache()

    def head(self, host: str, limit: int, after: tuple[int, int] | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        if limit <= 0:
            return []
        prefix = host_prefix(host)
        if after is not None:
            found = self._rows_from(prefix, place_after(prefix, *after), limit)
        else:
            known = self._heads.first(host, limit)
            found = self._first_rows(host, prefix, limit) if known is None else self._rows_at(host, prefix, *known)
        return [unpack_queued(host, key, value) for key, value in found]

    def queue(self, host: str) -> Iterator[QueuedPage]:
        """The host's whole queue in order."""
        return (unpack_queued(host, *row) for row in self._tables.rows(QUEUE, prefix=host_prefix(host)))

    def hosts_with_work(self) -> Iterator[str]:
        """Every host with at least one queued row, each once; it may see changes made meanwhile."""
        start = b""
        while True:
            found, start = self._hosts_from(start)
            yield from found
            if len(found) < HOSTS_AT_A_TIME:
                return

    def _first_rows(self, host: str, prefix: bytes, limit: int) -> list[PackedRow]:
        if self._heads.has_room(host):
            return self._look(host, prefix, max(limit, MAX_PLACES))[:limit]
        self._heads.refused()
        return self._rows_from(prefix, prefix, limit)

    def _look(self, host: str, prefix: bytes, limit: int) -> list[PackedRow]:
        # Removed rows before a queue's head cost time at every look: the next one starts behind them.
        found = self._rows_from(prefix, prefix + self._heads.start(host), limit)
        self._heads.keep(host, found, whole=len(found) < limit)
        return found

    def _rows_at(self, host: str, prefix: bytes, places: list[bytes], rows: list[bytes]) -> list[PackedRow]:
        """Rows at known places; ``rows``: those at the first of them."""
        if len(rows) < len(places):
            read = self._heads.rows_to_read(host, len(places))
            try:
                found: list[bytes | None] = self._tables.queue.get([prefix + place for place in read]) or []
            except Exception:  # rocksdict raises no narrower class: the look below says what cannot be read
                found = []
            rows = [row for row in found if row is not None]
            if len(rows) < len(read):
                self._heads.forget(host)
                return self._first_rows(host, prefix, len(places))
            self._heads.keep_rows(host, rows)
        return [(prefix + place, row) for place, row in zip(places, rows, strict=False)]

    def _rows_from(self, prefix: bytes, start: bytes, limit: int) -> list[PackedRow]:
        options = ReadOptions()
        options.set_iterate_upper_bound(host_end(prefix))
        rows = self._tables.queue.iter(options)  # a new one each time: an iterator sees the store as it was when made
        rows.seek(start)
        found: list[PackedRow] = []
        while rows.valid():
            found.append((rows.key(), rows.value()))
            if len(found) == limit:  # the next row may lie in another block
                return found
            rows.next()
        self._tables.require_end(rows)
        return found

    def _hosts_from(self, start: bytes) -> tuple[list[str], bytes]:
        found: list[str] = []
        options = ReadOptions()
        options.set_total_order_seek(True)  # from host to host, not within one
        rows = self._tables.queue.iter(options)
        rows.seek(start)
        while rows.valid() and len(found) < HOSTS_AT_A_TIME:
            key = rows.key()
            found.append(host_of(key))
            start = host_end(key[:-PLACE_BYTES])
            rows.seek(start)
        if len(found) < HOSTS_AT_A_TIME:
            self._tables.require_end(rows)
        return found, start


def put_rows_in_python(
    rows: Iterable[QueuedPage], prefix: bytes, last: bytes, put: Put, queue: object, seen: object, pack: Pack
) -> dict[bytes, bytes]:
    """Put rows of a host, and their keys, into a batch; those at places not behind ``last``, packed, by place."""
    joined: dict[bytes, bytes] = {}
    for row in rows:
        place, packed = pack_place(row), pack(row)
        put(prefix + place, packed, queue)
        put(row.key, b"", seen)
        if place <= last:
            joined[place] = packed
    return joined


class QueueHeadCache:
    """Bounded; every change of the queues must be reported to it."""

    def __init__(self, max_hosts: int = MAX_HOSTS, max_row_bytes: int = MAX_ROW_BYTES) -> None:
        self._heads: dict[str, bytes] = {}
        self._max_hosts = max_hosts
        self._row_room = self._max_row_bytes = max_row_bytes
        self._most_rows = MAX_ROWS  # to keep of one host: fewer where they are kept of many
        self._refusals = 0

    def __contains__(self, host: str) -> bool:
        return host in self._heads

    def first(self, host: str, limit: int) -> tuple[list[bytes], list[bytes]] | None:
        """The places of the first ``limit`` rows of the host's queue, and the first of the packed rows themselves.

        None when the store must be asked.
        """
        head = self._heads.get(host)
        if head is None:
            return None
        kind, known = head[0], head[1]
        if kind == _NONE_BEFORE or (known < limit and kind == _MORE):
            return None
        return _places(head, min(limit, known)), _rows(head, limit)

    def start(self, host: str) -> bytes:
        """A place with no row of the host before it; empty when none is known."""
        head = self._heads.get(host)
        return b"".join(_places(head, min(head[1], 1))) if head else b""

    def last(self, host: str) -> bytes:
        """The last place at which rows that join must be reported; empty when none must."""
        head = self._heads.get(host)
        if head is None:
            return b""
        end = _end(head)
        return _BEHIND_ALL if head[0] == _WHOLE else head[end - PLACE_BYTES : end]

    def has_room(self, host: str) -> bool:
        """Whether the beginning of this queue may be kept."""
        return len(self._heads) < self._max_hosts or host in self._heads

    def refused(self) -> None:
        """A queue was looked at whose beginning may not be kept."""
        self._refusals += 1
        if self._refusals >= _REFUSALS:
            self.clear()

    def keep(self, host: str, rows: Sequence[PackedRow], *, whole: bool) -> None:
        """The beginning of a queue as just read; ``whole``: there is no other row."""
        if not rows and not whole:
            return
        kept = rows[:MAX_PLACES]
        kind = _WHOLE if whole and len(kept) == len(rows) else _MORE
        places = b"".join([key[-PLACE_BYTES:] for key, _ in kept])
        self._put(host, kind, places, [packed for _, packed in kept])

    def keep_rows(self, host: str, rows: list[bytes]) -> None:
        """The packed rows at the first places that are known, as just read."""
        head = self._heads[host]
        self._put(host, head[0], head[_HEAD.size : _end(head)], rows)

    def rows_to_read(self, host: str, limit: int) -> list[bytes]:
        """The places of the rows to read where ``limit`` are asked for: some more, as far as there is room for them."""
        head = self._heads[host]
        return _places(head, min(max(limit, self._most_rows), head[1]))

    def removed(self, host: str, key: bytes) -> None:
        """A row has left the queue."""
        head = self._heads.get(host)
        if head is None or head[0] == _NONE_BEFORE:
            return
        place = key[-PLACE_BYTES:]
        at, end = _HEAD.size, _end(head)  # its row, where it is kept: from ``begin`` with its length to ``behind``
        while at < end and head[at : at + PLACE_BYTES] < place:
            at += PLACE_BYTES
        if at == end or head[at : at + PLACE_BYTES] != place:
            return
        begin = end
        for _ in range((at - _HEAD.size) // PLACE_BYTES):
            if begin == len(head):
                break
            begin += _LENGTH.size + _LENGTH.unpack_from(head, begin)[0]
        behind = begin if begin == len(head) else begin + _LENGTH.size + _LENGTH.unpack_from(head, begin)[0]
        left = head[_HEAD.size : at] + head[at + PLACE_BYTES : begin] + head[behind:]
        self._row_room += behind - begin
        if head[1] > 1 or head[0] == _WHOLE:
            self._heads[host] = _HEAD.pack(head[0], head[1] - 1) + left
        else:
            self._heads[host] = _HEAD.pack(_NONE_BEFORE, 1) + place

    def queued(self, host: str, joined: dict[bytes, bytes]) -> None:
        """Rows have joined the queue, or were written over, at places (place -> packed row) not behind ``last``."""
        head = self._heads.get(host)
        if head is None:
            return
        kind, known, rows = head[0], _places(head, head[1]), _rows(head, MAX_ROWS)
        if kind == _NONE_BEFORE:
            kind, known = _MORE, []
        packed = dict(zip(known, rows, strict=False))
        packed.update(joined)
        places = sorted({*known, *joined})
        if len(places) > MAX_PLACES:
            kind, places = _MORE, places[:MAX_PLACES]
        first: list[bytes] = []
        for place in places[:MAX_ROWS]:
            if (row := packed.get(place)) is None:
                break
            first.append(row)
        self._put(host, kind, b"".join(places), first)

    def forget(self, host: str) -> None:
        """Let go of one host."""
        head = self._heads.pop(host, b"")
        self._row_room += len(head) - _end(head) if head else 0

    def clear(self) -> None:
        """Let go of everything: what the store holds is not known for sure."""
        self._heads.clear()
        self._row_room, self._most_rows = self._max_row_bytes, MAX_ROWS
        self._refusals = 0

    def _put(self, host: str, kind: int, places: bytes, rows: Sequence[bytes]) -> None:
        if (head := self._heads.get(host)) is not None:
            self._row_room += len(head) - _HEAD.size - head[1] * PLACE_BYTES
        self._most_rows = 1 + (MAX_ROWS - 1) * self._row_room // self._max_row_bytes if self._row_room > 0 else 0
        packed = b""
        for row in rows[: self._most_rows]:
            packed += _LENGTH.pack(len(row)) + row
        if len(packed) > self._row_room:
            packed = b""
        self._row_room -= len(packed)
        self._heads[host] = _HEAD.pack(kind, len(places) // PLACE_BYTES) + places + packed


def _end(head: bytes) -> int:
    """Where the places end and the rows begin."""
    return _HEAD.size + head[1] * PLACE_BYTES


def _places(head: bytes, number: int) -> list[bytes]:
    return [*map(_FIRST, _PLACES.iter_unpack(head[_HEAD.size : _HEAD.size + number * PLACE_BYTES]))]


def _rows(head: bytes, most: int) -> list[bytes]:
    at = _HEAD.size + head[1] * PLACE_BYTES
    found: list[bytes] = []
    while at < len(head) and len(found) < most:
        begin = at + _LENGTH.size
        at = begin + _LENGTH.unpack_from(head, at)[0]
        found.append(head[begin:at])
    return found
