"""The frontier on disk: one RocksDB, one atomic batch a change, memory that does not grow with the URLs.

``RocksReader`` answers questions, ``RocksStore`` takes changes as well, ``FrontierView`` looks on from outside, while a
crawl runs or after: it changes and locks nothing in the folder.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Self

from rocksdict import Checkpoint, WriteBatch

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.atomic_files import storage_errors
from crawlerproject.stores.protocols import Changes, Due, Near, PageRecord
from crawlerproject.stores.rocks.fingerprints import RocksFingerprints
from crawlerproject.stores.rocks.messages import RocksMessages
from crawlerproject.stores.rocks.queues import RocksQueues
from crawlerproject.stores.rocks.schema import DUE, FACTS, HOSTS, PAGES, PAYLOADS, PRINTS, ROBOTS, SEEN
from crawlerproject.stores.rocks.tables import TRIES, Tables, open_to_read, open_to_write, require_room
from crawlerproject.stores.row_codec import due_key, due_of, pack_original, pack_record, unpack_original, unpack_record

UNREAD_FACT = "letters"
"""Of a frontier that was copied from Redis: how many partitions may have messages that no worker had read. Those of a
partition are a JSON list in a fact of this name, a slash and its number. Released versions call them letters."""

# Of a table: write buffers that are full, or were declared so, and are in no file yet.
_UNWRITTEN = "rocksdb.num-immutable-mem-table"

# Written as a database is opened: its options (some 60 KB), a manifest, a log.
_OPENING_BYTES = 256 * 1024


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
        return None if value is None else unpack_record(value)

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page and its key, in order of key; as they were when the iteration began."""
        for key, value in self._tables.rows(PAGES):
            yield key, unpack_record(value)

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        return self._tables.hosts.get(host.encode())

    def hosts(self) -> Iterator[tuple[str, bytes]]:
        """Every host ever met and its packed state, in order of name."""
        for name, packed in self._tables.rows(HOSTS):
            yield name.decode(), packed

    def robots(self, origin: str) -> bytes | None:
        """The packed robots record of the origin."""
        return self._tables.robots.get(origin.encode())

    def fact(self, name: str) -> bytes | None:
        """A crawl-wide fact."""
        return self._tables.database.get(name.encode())

    def facts(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every crawl-wide fact whose name begins with ``prefix``, in order of name."""
        for name, value in self._tables.rows(FACTS, prefix=prefix.encode()):
            yield name.decode(), value

    def near(self, host: str, value: int, bits: int) -> list[Near]:
        """The host's fingerprints within ``bits`` of ``value``, nearest first; "": of all hosts, three at most."""
        return self._fingerprints.near(host, value, bits)

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1."""
        value = self._tables.payloads.get(digest)
        return None if value is None else unpack_original(value)


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
    """The embedded default ``EmbeddedStore``; ``folder`` is its own, made when missing.

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
        return [due_of(key) for key, _ in islice(self._tables.rows(DUE, behind=due_key(after)), limit)]

    def is_due(self, place: Due) -> bool:
        """Whether the host has this very place."""
        return self._tables.due.get(due_key(place)) is not None

    def packed_hosts(self, hosts: Sequence[str]) -> list[bytes | None]:
        """The packed state of each host, in one question."""
        return self._tables.hosts.get([host.encode() for host in hosts]) or [] if hosts else []

    # --- changes --------------------------------------------------------------------------------

    def apply(self, changes: Changes) -> None:
        """Apply all of it atomically; survives the death of the process, not yet a power loss."""
        require_room(self._folder)
        if self._failed:
            self._open_again()
        try:
            batch, database = self._batch(changes), self._tables.database
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
        self.messages.stored(changes)

    def _batch(self, changes: Changes) -> WriteBatch:
        batch, handles = WriteBatch(raw_mode=True), self._tables.handles
        put = batch.put
        was_queued = self._change_queues(batch, changes.removed, changes.queued)
        for key, record in changes.pages:
            put(key, pack_record(record), handles[PAGES])
            if key not in was_queued:  # not every page that is decided was queued before
                put(key, b"", handles[SEEN])
        for name, packed in changes.hosts:
            put(name.encode(), packed, handles[HOSTS])
        for origin, packed in changes.robots:
            put(origin.encode(), packed, handles[ROBOTS])
        for made in changes.fingerprints:
            self._fingerprints.put(batch, handles[PRINTS], made)
        for digest, original in changes.payloads:
            if original is None:
                batch.delete(digest, handles[PAYLOADS])
            else:
                put(digest, pack_original(original), handles[PAYLOADS])
        for name, before, after in changes.due:
            if before is not None:
                batch.delete(due_key(Due(before, name)), handles[DUE])
            if after is not None:
                put(due_key(Due(after, name)), b"", handles[DUE])
        for name, packed in changes.facts:
            put(name.encode(), packed)
        self.messages.change(batch, changes)
        return batch

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
        require_room(self._folder)
        with self._gate:
            try:
                Checkpoint(self._opened().database).create_checkpoint(os.fspath(folder))
            except Exception as error:  # rocksdict raises no narrower class
                raise StorageError(f"no checkpoint of the frontier can be made: {error}") from error

    def mend(self) -> None:
        """Take changes again after a failed write, or a failed sync. Raises StorageError: there still is no room."""
        if self._failed:
            require_room(self._folder)
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
