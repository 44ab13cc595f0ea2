"""The frontier on disk: one RocksDB, one atomic batch a change, memory that does not grow with the URLs."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock

from rocksdict import Rdict, RdictIter, ReadOptions, WriteBatch

from crawlerproject.errors import FrontierDamaged, OperatorError, StorageError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.protocols import Changes, Due, Near, PageRecord, QueuedPage
from crawlerproject.stores.rocks import options
from crawlerproject.stores.rocks.fingerprints import RocksFingerprints
from crawlerproject.stores.rocks.folder import damaged, make_folder, opening_error, other_version
from crawlerproject.stores.rocks.head_cache import ROWS_AHEAD, QueueHeadCache, Row
from crawlerproject.stores.rocks.tables import Tables
from crawlerproject.stores.row_codec import (
    PLACE_BYTES,
    due_key,
    due_of,
    host_end,
    host_of,
    host_prefix,
    pack_original,
    pack_queued,
    pack_record,
    place_after,
    queue_key,
    unpack_original,
    unpack_queued,
    unpack_record,
)

# The layout of rows and tables; a store with another number was written by another version of this project.
FORMAT = 2
FORMAT_FACT = "format"
# Of a frontier that was copied from Redis: of how many partitions it may have letters that no worker had read; those of
# each are a JSON list in a fact of this name and its number (stores/copy/to_rocks.py).
LETTERS_FACT = "letters"

# Below this much free disk nothing is begun: all that is in memory can still be written out.
RESERVE_BYTES = 2 * options.WRITE_BUFFERS_BYTES

# Hosts whose first row is remembered. With more hosts than this being crawled in turn, each one's share of the
# removals that compaction has not yet cleared is too small (some dozens) to be worth remembering.
REMEMBERED_HEADS = 16_384

# Hosts found with one iterator, which pins old files as long as it lives.
HOSTS_AT_A_TIME = 250


class RocksStore:
    """The embedded default ``FrontierStore``; ``folder`` is its own, made when missing.

    Raises ``OperatorError`` at construction when the folder cannot be used, ``StorageError`` from ``apply`` and
    ``sync`` when the disk refuses; the same call may then be made again later.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        self._heads: OrderedDict[str, bytes] = OrderedDict()  # host -> a key with nothing queued before it
        self._ahead = QueueHeadCache()
        self._gate = Lock()  # between a sync in another thread and the closing of what it syncs
        self._failed = False
        self._fingerprints = RocksFingerprints(lambda: self._tables.prints)
        self._prepare()
        self._open()

    # --- questions ------------------------------------------------------------------------------

    def known(self, keys: Sequence[bytes], hosts: Sequence[str] | None = None) -> list[bool]:
        """For each key, whether the page is queued or was decided before."""
        if not keys:
            return []
        values: list[bytes | None] = self._tables.seen.get(list(keys)) or []
        return [value is not None for value in values]

    def head(self, host: str, limit: int, after: tuple[int, int] | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        if after is not None:
            prefix = host_prefix(host)
            found = self._rows_from(prefix, place_after(prefix, *after), limit)
        else:
            found = self._ahead.first(host, limit) or self._first_rows(host, limit)
        return [unpack_queued(host, key, value) for key, value in found]

    def _first_rows(self, host: str, limit: int) -> list[Row]:
        if limit <= 0:
            return []
        prefix = host_prefix(host)
        found = self._rows_from(prefix, self._heads.get(host, prefix), limit + ROWS_AHEAD)
        self._remember_head(host, found[0][0] if found else prefix + b"\xff" * PLACE_BYTES)
        if found:
            self._ahead.keep(host, found)
        return found[:limit]

    def _rows_from(self, prefix: bytes, start: bytes, limit: int) -> list[Row]:
        options = ReadOptions()
        options.set_iterate_upper_bound(host_end(prefix))
        rows = self._tables.queue.iter(options)  # a new one each time: an iterator sees the store as it was when made
        rows.seek(start)
        found: list[Row] = []
        while len(found) < limit and rows.valid():
            found.append((rows.key(), rows.value()))
            rows.next()
        if len(found) < limit:
            self._require_end(rows)
        return found

    def page(self, key: bytes) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first."""
        value = self._tables.pages.get(key)
        return None if value is None else unpack_record(value)

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page and its key, in order of key; as they were when the iteration began."""
        rows = self._tables.pages.iter()
        rows.seek_to_first()
        while rows.valid():
            yield rows.key(), unpack_record(rows.value())
            rows.next()
        self._require_end(rows)

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        return self._tables.hosts.get(host.encode())

    def robots(self, origin: str) -> bytes | None:
        """The packed robots record of the origin."""
        return self._tables.robots.get(origin.encode())

    def fact(self, name: str) -> bytes | None:
        """A crawl-wide fact."""
        return self._tables.database.get(name.encode())

    def near(self, host: str, value: int, bits: int) -> list[Near]:
        """The host's fingerprints within ``bits`` of ``value``, nearest first; "": of all hosts, three at most."""
        return self._fingerprints.near(host, value, bits)

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1."""
        value = self._tables.payloads.get(digest)
        return None if value is None else unpack_original(value)

    def hosts_with_work(self) -> Iterator[str]:
        """Every host with at least one queued row, each once; it may see changes made meanwhile."""
        start = b""
        while True:
            found, start = self._hosts_from(start)
            yield from found
            if len(found) < HOSTS_AT_A_TIME:
                return

    def due(self, limit: int, after: Due) -> list[Due]:
        """The first ``limit`` places behind the place ``after``, by moment and then by name."""
        rows = self._tables.due.iter()
        rows.seek(due_key(after) + b"\0")
        found: list[Due] = []
        while len(found) < limit and rows.valid():
            found.append(due_of(rows.key()))
            rows.next()
        if len(found) < limit:
            self._require_end(rows)
        return found

    def is_due(self, place: Due) -> bool:
        """Whether the host has this very place."""
        return self._tables.due.get(due_key(place)) is not None

    def packed_hosts(self, hosts: Sequence[str]) -> list[bytes | None]:
        """As ``host`` for each of them, in one question."""
        return self._tables.hosts.get([host.encode() for host in hosts]) or [] if hosts else []

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
            self._require_end(rows)
        return found, start

    def _require_end(self, rows: RdictIter) -> None:
        """Raise FrontierDamaged where an iterator stopped at what cannot be read, which looks like the end."""
        try:
            rows.status()
        except Exception as error:  # rocksdict raises no narrower class
            raise damaged(self._folder, str(error)) from error

    def _remember_head(self, host: str, key: bytes) -> None:
        """Removed rows before a queue's head cost time at every look; start behind them next time."""
        heads = self._heads
        heads[host] = key
        heads.move_to_end(host)
        if len(heads) > REMEMBERED_HEADS:
            heads.popitem(last=False)

    # --- changes --------------------------------------------------------------------------------

    def apply(self, changes: Changes) -> None:
        """Apply all of it atomically; survives the death of the process, not yet a power loss."""
        self._require_room()
        if self._failed:
            self._open_again()
        batch = self._batch(changes)
        try:
            self._tables.database.write(batch)
        except Exception as error:  # rocksdict raises no narrower class
            self._failed = True
            self._ahead.clear()
            raise StorageError(f"the frontier cannot be written: {error}") from error
        for made in changes.fingerprints:
            self._fingerprints.stored(made)

    def _batch(self, changes: Changes) -> WriteBatch:
        batch = WriteBatch(raw_mode=True)
        put, tables = batch.put, self._tables
        queue, seen = tables.queue_handle, tables.seen_handle
        ahead, heads = self._ahead, self._heads
        was_queued = set()
        for row in changes.removed:  # first, so that a row may be replaced in its place
            place = queue_key(row)
            batch.delete(place, queue)
            ahead.removed(row.host, place)
            was_queued.add(row.key)
        for row in changes.queued:
            place, packed = queue_key(row), pack_queued(row)
            put(place, packed, queue)
            put(row.key, b"", seen)
            ahead.queued(row.host, place, packed)
            if place < heads.get(row.host, b""):
                heads[row.host] = place
        for key, record in changes.pages:
            put(key, pack_record(record), tables.pages_handle)
            if key not in was_queued:  # not every page that is decided was queued before
                put(key, b"", seen)
        for name, packed in changes.hosts:
            put(name.encode(), packed, tables.hosts_handle)
        for origin, packed in changes.robots:
            put(origin.encode(), packed, tables.robots_handle)
        for made in changes.fingerprints:
            self._fingerprints.put(batch, tables.prints_handle, made)
        for digest, original in changes.payloads:
            if original is None:  # its capture is gone
                batch.delete(digest, tables.payloads_handle)
            else:
                put(digest, pack_original(original), tables.payloads_handle)
        for name, before, after in changes.due:
            if before is not None:
                batch.delete(due_key(Due(before, name)), tables.due_handle)
            if after is not None:
                put(due_key(Due(after, name)), b"", tables.due_handle)
        for name, packed in changes.facts:
            put(name.encode(), packed)
        return batch

    def sync(self) -> None:
        """Make everything applied so far survive a power loss. May be called from another thread."""
        with self._gate:
            try:
                self._tables.database.flush_wal(sync=True)
            except Exception as error:
                self._failed = True
                raise StorageError(f"the frontier cannot be made durable: {error}") from error

    def close(self) -> None:
        """Let go of the folder; harmless when done twice."""
        with self._gate:
            self._release()

    def _require_room(self) -> None:
        disk = os.statvfs(self._folder)
        if disk.f_bavail * disk.f_frsize < RESERVE_BYTES:
            raise StorageError(f"less than {RESERVE_BYTES >> 20} MB free where the frontier is ({self._folder})")

    # --- opening and closing --------------------------------------------------------------------

    def _open(self) -> None:
        try:
            database = self._database_opened()
        except FrontierDamaged:
            raise
        except Exception as error:
            raise opening_error(self._folder, str(error)) from error
        self._tables = self._opened(database)
        self._check_format()

    def _prepare(self) -> None:
        make_folder(self._folder)

    def _database_opened(self) -> Rdict:
        return Rdict(self._folder, options.database_options(), options.table_options())

    def _opened(self, database: Rdict) -> Tables:
        return Tables(database)

    def _check_format(self) -> None:
        written = self.fact(FORMAT_FACT)
        if written is None:
            self._tables.database.put(FORMAT_FACT.encode(), str(FORMAT).encode())
        elif int(written) != FORMAT:
            self._release()
            raise other_version(self._folder, newer=int(written) > FORMAT)

    def _open_again(self) -> None:
        """RocksDB stays read-only after a failed write; opening it again replays what was written whole."""
        with self._gate:
            self._release()
            try:
                self._open()
            except OperatorError as error:
                raise StorageError(str(error)) from error
            self._failed = False

    def _release(self) -> None:
        if (tables := self.__dict__.pop("_tables", None)) is not None:
            tables.close(failed=self._failed)
