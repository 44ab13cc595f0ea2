"""The frontier on disk: one RocksDB, one atomic batch a change, memory that does not grow with the URLs.

``RocksReader`` answers questions, ``RocksStore`` takes changes as well, ``FrontierView`` looks on from outside, while a
crawl runs or after: it changes and locks nothing in the folder.

Messages to and from other workers in RocksDB: one table, in which those of a partition lie together.

Its rows by their first byte: messages that wait for their reader; how far boxes were read; of earlier versions the
outbox of this frontier. The rows of a partition have one of two prefixes, the byte of their kind and the partition, and
move with it: copied as they are, they mean the same in another frontier. What is read twice there has no second effect.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, groupby, islice
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Self

from rocksdict import Checkpoint, WriteBatch

from crawlerproject import native
from crawlerproject.errors import FrontierDamaged, OperatorError, StorageError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores import row_codec
from crawlerproject.stores.atomic_files import require_room, storage_errors
from crawlerproject.stores.protocols import Applied, Box, Changes, Due, Near, PageRecord
from crawlerproject.stores.rocks.rocks_queues import MAX_PLACES, Put, RocksQueues, put_rows_in_python
from crawlerproject.stores.rocks.rocks_tables import RESERVE_BYTES, TRIES, Tables, open_to_read, open_to_write
from crawlerproject.stores.rocks.rocks_texts import RocksFingerprints

_HOST = attrgetter("host")
# Behind every number of a box.
_BEHIND = b"\xff" * 9


class RocksMessages:
    """The ``Messages`` of a RocksStore. Reads the tables that ``tables`` gives at that moment."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables
        # Another one with each start: what is left of earlier ones may have been moved elsewhere, and is sent by others
        # then; and of a frontier that was put back from a backup numbers were given already that it does not know of.
        self.outbox = uuid.uuid4().bytes
        self.applied = Applied()
        self.durable = Applied()
        self._changed: set[int] = set()

    def boxes(self) -> list[Box]:
        """Those that hold messages, in order."""
        tables, found = self._tables(), list[Box]()
        rows = tables.messages.iter()
        rows.seek(bytes([row_codec.MESSAGE_ROW]))
        while rows.valid() and rows.key()[0] == row_codec.MESSAGE_ROW:
            found.append(box := row_codec.box_of(rows.key()))
            rows.seek(row_codec.box_key(row_codec.MESSAGE_ROW, box) + _BEHIND)
        tables.require_end(rows)
        return found

    def of(self, box: Box, after: int, up_to: int, most_bytes: int) -> list[tuple[int, bytes]]:
        """Messages of a box with numbers above ``after`` and not above ``up_to``; none once they have so many bytes."""
        rows = self._tables().rows(
            row_codec.MESSAGES, row_codec.message_key(box, after), prefix=row_codec.box_key(row_codec.MESSAGE_ROW, box)
        )
        found: list[tuple[int, bytes]] = []
        for key, packed in rows:
            if most_bytes <= 0 or row_codec.number_of(key) > up_to:
                break
            found.append((row_codec.number_of(key), packed))
            most_bytes -= len(packed)
        return found

    def read_up_to(self, box: Box) -> int:
        """The last number that took effect here; 0 before the first."""
        kept = self._tables().messages.get(row_codec.box_key(row_codec.READ_ROW, box))
        return 0 if kept is None else row_codec.number_of(kept)

    def take_changed(self) -> set[int]:
        """The partitions with new messages since this was last called."""
        changed, self._changed = self._changed, set()
        return changed

    def change(self, batch: WriteBatch, changes: Changes) -> None:
        """Add to a batch what a change says of messages."""
        handle, number = self._tables().handles[row_codec.MESSAGES], self.applied.last
        for partition, packed in changes.messages:
            number += 1
            batch.put(row_codec.message_key(Box(partition, self.outbox), number), packed, handle)
        for box, up_to in dict(changes.read).items():
            batch.put(row_codec.box_key(row_codec.READ_ROW, box), row_codec.pack_number(up_to), handle)
        for box, gone in changes.delivered:
            batch.delete(row_codec.message_key(box, gone), handle)

    def stored(self, changes: Changes) -> None:
        """A batch with some was written. Had it failed, its numbers would be given again to the same messages."""
        done = self.applied
        self.applied = Applied(done.changes + 1, done.last + len(changes.messages))
        self._changed.update(partition for partition, _ in changes.messages)


UNREAD_FACT = "letters"
"""Of a frontier that was copied from Redis: how many partitions may have messages that no worker had read. Those of a
partition are a JSON list in a fact of this name, a slash and its number. Released versions call them letters."""

# Of a table: write buffers that are full, or were declared so, and are in no file yet.
_UNWRITTEN = "rocksdb.num-immutable-mem-table"

# Written as a database is opened: its options (some 60 KB), a manifest, a log.
_OPENING_BYTES = 256 * 1024


def _named(hosts: Sequence[tuple[bytes, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Without a step of Python a host, of which a crawl may have millions."""
    names, packed = zip(*hosts, strict=True)
    return zip(map(bytes.decode, names), packed, strict=True)


class RocksReader(RocksQueues):
    """The questions of a ``FrontierStore``. Raises FrontierDamaged where a table cannot be read to its end."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self._fingerprints = RocksFingerprints(lambda: self._tables.fingerprints)

    def known(self, keys: Sequence[bytes], hosts: Sequence[str] | None = None) -> list[bool]:
        """For each key, whether the page is queued or was decided before."""
        if not keys:
            return []
        values: list[bytes | None] = self._tables.seen.get(list(keys)) or []
        return [value is not None for value in values]

    def page(self, key: bytes, host: str | None = None) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first. ``host`` is not needed."""
        value = self._tables.pages.get(key)
        return None if value is None else row_codec.unpack_record(value)

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page and its key, in order of key; as they were when the iteration began."""
        for key, value in self._tables.rows(row_codec.PAGES):
            yield key, row_codec.unpack_record(value)

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        return self._tables.hosts.get(host.encode())

    def hosts(self) -> Iterator[tuple[str, bytes]]:
        """Every host ever met and its packed state, in order of name."""
        return chain.from_iterable(map(_named, self._tables.slices(row_codec.HOSTS)))

    def robots(self, origin: str) -> bytes | None:
        """The packed robots record of the origin."""
        return self._tables.robots.get(origin.encode())

    def fact(self, name: str) -> bytes | None:
        """A crawl-wide fact."""
        return self._tables.database.get(name.encode())

    def facts(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every crawl-wide fact whose name begins with ``prefix``, in order of name."""
        for name, value in self._tables.rows(row_codec.FACTS, prefix=prefix.encode()):
            yield name.decode(), value

    def near(self, host: str, value: int, bits: int) -> list[Near]:
        """The host's fingerprints within ``bits`` of ``value``, nearest first; "": of all hosts, three at most."""
        return self._fingerprints.near(host, value, bits)

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1."""
        value = self._tables.payloads.get(digest)
        return None if value is None else row_codec.unpack_original(value)

    def originals(self) -> Iterator[tuple[bytes, Original]]:
        """Every payload's sha1 and first capture."""
        for digest, packed in self._tables.rows(row_codec.PAYLOADS):
            yield digest, row_codec.unpack_original(packed)


class FrontierView(RocksReader):
    """The frontier as of the last commit before it was opened, which is about a second ago; open another to look again.

    Raises OperatorError when there is no frontier.
    """

    def __init__(self, folder: str | os.PathLike[str], *, tries: int = TRIES) -> None:
        super().__init__(open_to_read(folder, tries=tries))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._tables.close(failed=False)


class RocksStore(RocksReader):
    """The default ``FrontierStore``; ``folder`` is its own, made when missing.

    Raises ``OperatorError`` at construction when the folder cannot be used, ``StorageError`` from ``apply`` and
    ``sync`` when the disk refuses; the same call may then be made again later.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        self._gate = Lock()  # between a sync in another thread and the closing of what it syncs
        self._failed = False
        super().__init__(open_to_write(self._folder))
        self.messages = RocksMessages(self._opened)

    # --- hosts in the order in which they are due -------------------------------------------------

    def due(self, limit: int, after: Due) -> list[Due]:
        """The first ``limit`` places behind the place ``after``, by moment and then by name."""
        rows = self._tables.rows(row_codec.DUE, behind=row_codec.due_key(after))
        return [row_codec.due_of(key) for key, _ in islice(rows, limit)]

    def is_due(self, place: Due) -> bool:
        """Whether the host has this very place."""
        return self._tables.due.get(row_codec.due_key(place)) is not None

    def packed_hosts(self, hosts: Sequence[str]) -> list[bytes | None]:
        """The packed state of each host, in one question."""
        return self._tables.hosts.get([host.encode() for host in hosts]) or [] if hosts else []

    # --- changes --------------------------------------------------------------------------------

    def apply(self, changes: Changes) -> None:
        """Apply all of it atomically; survives the death of the process, not yet a power loss."""
        require_room(self._folder, RESERVE_BYTES)
        if self._failed:
            self._open_again()
        try:
            batch, database = self._batch(changes), self._tables.database
            if changes.messages or changes.read or changes.delivered:
                self.messages.change(batch, changes)
            before = database.latest_sequence_number()
            try:
                database.write(batch)
            except Exception as error:  # rocksdict raises no narrower class
                self._failed = True
                if database.latest_sequence_number() == before:  # else it was written, whatever went wrong then
                    raise StorageError(f"the frontier cannot be written: {error}") from error
        except BaseException:
            self._heads.clear()
            raise
        for made in changes.fingerprints:
            self._fingerprints.stored(made)
        if changes.messages or changes.read:
            self.messages.stored(changes)

    # Apart from ``apply``: handles of tables that the trace of its error kept would keep the folder locked.
    def _batch(self, changes: Changes) -> WriteBatch:
        batch, handles, heads, removed = WriteBatch(raw_mode=True), self._tables.handles, self._heads, set[bytes]()
        put, queue, seen = batch.put, handles[row_codec.QUEUE], handles[row_codec.SEEN]
        for host in set(map(_HOST, changes.queued)):
            if host not in heads and heads.has_room(host):  # that it is empty costs a quarter of a later look
                with suppress(FrontierDamaged):  # what cannot be read is said when it is asked for
                    self._look(host, row_codec.host_prefix(host), MAX_PLACES)
        for row in changes.removed:
            place = row_codec.queue_key(row)
            batch.delete(place, queue)
            heads.removed(row.host, place)
            removed.add(row.key)
        put_rows = put_rows_in_python if (page := native.reader) is None else page.put_rows
        for host, rows in groupby(changes.queued, _HOST):  # maybe in the places of those; a page names many of one
            prefix, put_row = row_codec.host_prefix(host), self._put_of(host, put)
            if joined := put_rows(rows, prefix, heads.last(host), put_row, queue, seen, row_codec.pack_queued):
                heads.queued(host, joined)
        for key, record in changes.pages:
            put(key, row_codec.pack_record(record), handles[row_codec.PAGES])
            if key not in removed:  # not every page that is decided was queued before
                put(key, b"", seen)
        for name, packed in changes.hosts:
            put(name.encode(), packed, handles[row_codec.HOSTS])
        for origin, packed in changes.robots:
            put(origin.encode(), packed, handles[row_codec.ROBOTS])
        for made in changes.fingerprints:
            self._fingerprints.put(batch, handles[row_codec.PRINTS], made)
        for digest, original in changes.payloads:
            if original is None:
                batch.delete(digest, handles[row_codec.PAYLOADS])
            else:
                put(digest, row_codec.pack_original(original), handles[row_codec.PAYLOADS])
        for name, before, after in changes.due:
            if before is not None:
                batch.delete(row_codec.due_key(Due(before, name)), handles[row_codec.DUE])
            if after is not None:
                put(row_codec.due_key(Due(after, name)), b"", handles[row_codec.DUE])
        for name, packed in changes.facts:
            put(name.encode(), packed)
        return batch

    def _put_of(self, host: str, put: Put) -> Put:
        """What puts rows of the host's queue into a batch, by the batch's own ``put``."""
        del host
        return put

    def sync(self) -> None:
        """Make everything applied so far survive a power loss. May be called from another thread."""
        with self._gate:
            applied = self.messages.applied
            try:
                self._tables.database.flush_wal(sync=True)
            except Exception as error:
                self._failed = True
                raise StorageError(f"the frontier cannot be made durable: {error}") from error
            self.messages.durable = applied

    def write_out(self) -> None:
        """Begin to write out what is in memory only, in the background, so that a checkpoint has little to wait for."""
        for table in self._opened().columns.values():
            table.flush(wait=False)

    def is_writing_out(self) -> bool:
        """Whether that is under way."""
        return any(table.property_int_value(_UNWRITTEN) for table in self._opened().columns.values())

    def checkpoint(self, folder: Path) -> None:
        """Make this moment a database of its own in ``folder``, which must not be there. StorageError.

        On the same disk it takes new names of files and 10 ms, after ``write_out``: what is in memory only is written
        out first, and meanwhile the whole process waits (rocksdict keeps Python's lock; 25 MB took 0.1 s).
        """
        require_room(self._folder, RESERVE_BYTES)
        with self._gate:
            try:
                Checkpoint(self._opened().database).create_checkpoint(os.fspath(folder))
            except Exception as error:  # rocksdict raises no narrower class
                raise StorageError(f"no checkpoint of the frontier can be made: {error}") from error

    def mend(self) -> None:
        """Take changes again after a failed write, or a failed sync. Raises StorageError: there still is no room."""
        if self._failed:
            require_room(self._folder, RESERVE_BYTES)
            self._open_again()

    def close(self) -> None:
        """Let go of the folder; harmless when done twice."""
        with self._gate:
            self._release()

    def _open_again(self) -> None:
        """RocksDB stays read-only after a failed write; opening it again replays what was written whole.

        It can be read until then, so it is not closed before it can surely be opened.
        """
        with storage_errors(Path(self._folder)), tempfile.TemporaryFile(dir=self._folder) as probe:
            probe.write(bytes(_OPENING_BYTES))
            probe.flush()
        with self._gate:
            self._release()
            try:
                self._tables = open_to_write(self._folder)
                self._fingerprints.forget()
            except OperatorError as error:
                raise StorageError(str(error)) from error
            self._failed = False

    def _opened(self) -> Tables:
        """Raises StorageError while there is no room to open them again."""
        if "_tables" not in self.__dict__:
            raise StorageError(f"the frontier in {self._folder} is closed")
        return self._tables

    def _release(self) -> None:
        if (tables := self.__dict__.pop("_tables", None)) is not None:
            tables.close(failed=self._failed)
