"""A frontier in RocksDB row by row, whatever its rows mean: for what takes rows from one frontier to another."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from rocksdict import ColumnFamily, Rdict, RdictIter, ReadOptions, WriteBatch

from crawlerproject.errors import StorageError
from crawlerproject.stores.rocks import options as names
from crawlerproject.stores.rocks.store import RESERVE_BYTES
from crawlerproject.stores.rocks.tables import FORMAT, FORMAT_FACT, damaged, make_folder, opening_error, other_version

FACTS: Final = ""
"""The column of facts, as a table."""
TABLES: Final = (FACTS, *names.TABLES)
_NUMBER_OF_ROWS = "rocksdb.estimate-num-keys"


class RawBatch:
    """Rows of several tables that are put or removed at once."""

    def __init__(self, handles: dict[str, ColumnFamily | None]) -> None:
        self._handles = handles
        self.batch = WriteBatch(raw_mode=True)
        self.rows = 0
        self.bytes = 0

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Add a row, or write over it."""
        self.batch.put(key, value, self._handles[table])
        self.rows += 1
        self.bytes += len(key) + len(value)

    def delete(self, table: str, key: bytes) -> None:
        """Remove a row, if it is there."""
        self.batch.delete(key, self._handles[table])
        self.rows += 1


class RawTables:
    """One open database; a new one is made in a new folder. Raises OperatorError at construction."""

    def __init__(self, folder: Path, shares: int = 1) -> None:
        """``shares``: so many of them are open in this process, and share the memory of one."""
        self.folder = folder
        make_folder(os.fspath(folder))
        options = names.database_options()
        options.set_db_write_buffer_size(max(names.MIB, names.WRITE_BUFFERS_BYTES // shares))
        try:
            database = Rdict(os.fspath(folder), options, names.table_options(names.BLOCK_CACHE_BYTES // shares))
        except Exception as error:  # rocksdict raises no narrower class
            raise opening_error(os.fspath(folder), str(error)) from error
        self._database: Rdict | None = database
        self._columns = {name: database.get_column_family(name) if name else database for name in TABLES}
        self._handles = {name: database.get_column_family_handle(name) if name else None for name in TABLES}
        written = database.get(FORMAT_FACT.encode())
        if written is None:
            database.put(FORMAT_FACT.encode(), str(FORMAT).encode())
        elif int(written) != FORMAT:
            self.close()
            raise other_version(os.fspath(folder), newer=int(written) > FORMAT)

    def get(self, table: str, key: bytes) -> bytes | None:
        """One row."""
        value: bytes | None = self._columns[table].get(key)
        return value

    def rows(self, table: str, behind: bytes = b"", prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """All rows of a table in order, those behind a key, or those that begin with a prefix; as of now."""
        found = self.iterator(table)
        found.seek(behind + b"\0" if behind else prefix)
        while found.valid() and (key := found.key()).startswith(prefix):
            yield key, found.value()
            found.next()
        self.require_end(found)

    def iterator(self, table: str) -> RdictIter:
        """An iterator over a table as it is now, to be set on a row; ``require_end`` where it ends."""
        options = ReadOptions()
        options.set_total_order_seek(True)
        return self._columns[table].iter(options)

    def require_end(self, found: RdictIter) -> None:
        """Raise FrontierDamaged where an iterator stopped at what cannot be read, which looks like the end."""
        try:
            found.status()
        except Exception as error:  # rocksdict raises no narrower class
            raise damaged(os.fspath(self.folder), str(error)) from error

    def count(self, table: str) -> int:
        """About how many rows a table has."""
        return int(self._columns[table].property_int_value(_NUMBER_OF_ROWS) or 0)

    def batch(self) -> RawBatch:
        """An empty change of this database."""
        return RawBatch(self._handles)

    def write(self, batch: RawBatch) -> None:
        """Apply a change: all of it, but not yet safe from a power loss. StorageError."""
        assert self._database is not None
        disk = os.statvfs(self.folder)
        if disk.f_bavail * disk.f_frsize < RESERVE_BYTES:
            raise StorageError(f"less than {RESERVE_BYTES >> 20} MB free where the frontier is ({self.folder})")
        try:
            self._database.write(batch.batch)
        except Exception as error:  # rocksdict raises no narrower class
            raise StorageError(f"the frontier in {self.folder} cannot be written: {error}") from error

    def put(self, rows: Iterable[tuple[str, bytes, bytes]]) -> None:
        """Put rows (table, key, value) as one change. StorageError."""
        batch = self.batch()
        for table, key, value in rows:
            batch.put(table, key, value)
        self.write(batch)

    def sync(self) -> None:
        """Make everything written so far survive a power loss. StorageError."""
        assert self._database is not None
        try:
            self._database.flush_wal(sync=True)
        except Exception as error:
            raise StorageError(f"the frontier in {self.folder} cannot be made durable: {error}") from error

    def close(self) -> None:
        """Let go of the folder; harmless when done twice."""
        columns = [column for name, column in self._columns.items() if name]
        self._columns.clear()
        self._handles.clear()  # the lock on the folder falls with the last handle
        for column in columns:
            column.close()
        if (database := self._database) is not None:
            self._database = None
            database.close()
