"""Fingerprints in RocksDB: one row in the host's share, four in the tables of all hosts, all in one column."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from typing import cast

from rocksdict import ColumnFamily, Rdict, ReadOptions, WriteBatch

from crawlerproject.rules.duplicates import permuted_tables as across
from crawlerproject.rules.duplicates.nearest import near
from crawlerproject.stores.fingerprints import HostFingerprints
from crawlerproject.stores.protocols import Fingerprint, Near
from crawlerproject.stores.row_codec import fingerprints_of, host_fingerprint_key, host_fingerprints_prefix, table_key

MAX_READ = 32_768
"""Fingerprints that are read at most, once, to know which ranges are empty: 30 milliseconds for so many (measured).
With a few times more stored few ranges are."""


class RocksFingerprints:
    """Reads the column that ``column`` gives at that moment: the store may open its database again."""

    def __init__(self, column: Callable[[], Rdict]) -> None:
        self._column = column
        self._hosts = HostFingerprints(self._load)
        # Of each block, whether its range has rows: while a crawl is small, most pages need no look into the store.
        self._blocks: bytearray | None = None  # not known yet

    def near(self, host: str, value: int, bits: int) -> list[Near]:
        """The host's fingerprints within ``bits`` of ``value``, nearest first; "": of all hosts, three at most."""
        if host:
            found = self._hosts.near(host, value, bits)
            return [Near(differ, self._page_with(host_fingerprint_key(host, each))) for differ, each in found]
        others: dict[int, int] = {}
        if self._blocks is None:
            self._blocks = self._blocks_stored()
        if self._blocks and not any(map(self._blocks.__getitem__, across.blocks(value))):
            return []
        for table, turned, first, last in across.ranges(value):
            values = fingerprints_of(self._keys(table_key(table, first), table_key(table, last) + b"\0"))
            for place, differ in near(values, turned, bits):
                others[across.restored(values[place], table)] = differ
        return sorted(Near(bits_apart, self._page_with(table_key(0, each))) for each, bits_apart in others.items())

    def put(self, batch: WriteBatch, column: ColumnFamily, made: Fingerprint) -> None:
        """Add the rows of one fingerprint to a batch."""
        batch.put(host_fingerprint_key(made.host, made.value), made.key, column)
        for table in range(across.TABLES):
            page = b"" if table else made.key
            batch.put(table_key(table, across.rotated(made.value, table)), page, column)

    def stored(self, made: Fingerprint) -> None:
        """The batch with this one was written."""
        self._hosts.add(made.host, made.value)
        if self._blocks:
            for block in across.blocks(made.value):
                self._blocks[block] = 1

    def forget(self) -> None:
        """The database was opened again: what a failed write left in it is not known."""
        self._blocks = None

    def _blocks_stored(self) -> bytearray:
        """One byte a block: whether anything in that range is stored; empty where that would take long to find out."""
        values = fingerprints_of(self._keys(table_key(0, 0), table_key(1, 0), MAX_READ + 1))
        return across.blocks_of(values) if len(values) <= MAX_READ else bytearray()

    def _keys(self, first: bytes, end: bytes, limit: int | None = None) -> list[bytes]:
        """Keys from ``first`` to before ``end``, ``limit`` at most."""
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        return [*islice(cast("Iterator[bytes]", self._column().keys(from_key=first, read_opt=options)), limit)]

    def _page_with(self, key: bytes) -> bytes:
        return cast("bytes", self._column()[key])  # written in one batch with the row that led here

    def _load(self, host: str) -> array[int]:
        prefix = host_fingerprints_prefix(host)
        end = (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix) + 1, "big")[1:]
        return fingerprints_of(self._keys(prefix, end))
