"""Fingerprints of texts in RocksDB: one row in the host's share, four in the tables of all hosts, all in one column.

Those of the hosts used last are in memory, eight bytes a page.

``RocksTexts`` has the texts of all workers of one machine in a database of its own. It is derived: each worker's
frontier has the texts of its own pages, and what is missing is made again from there.
"""

from __future__ import annotations

import os
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import cast

from rocksdict import ColumnFamily, Rdict, ReadOptions, WriteBatch

from crawlerproject.errors import StorageError
from crawlerproject.rules import text_likeness as across
from crawlerproject.rules.text_likeness import near
from crawlerproject.stores.protocols import Fingerprint, Near, NearText, Text
from crawlerproject.stores.rocks.rocks_tables import database_options, make_folder, open_to_read, opening_error
from crawlerproject.stores.row_codec import (
    FINGERPRINT_BYTES,
    FIRST_TABLE,
    PAGE_KEY_BYTES,
    PRINTS,
    fingerprints_of,
    host_fingerprint_key,
    host_fingerprints_prefix,
    rows_of_all_hosts,
    table_key,
    unpack_record,
)

MAX_READ = 32_768
"""Fingerprints that are read at most, once, to know which ranges are empty: 30 milliseconds for so many (measured).
With a few times more stored few ranges are."""

# 32 MB: the 10,000 hosts of a broad crawl with 400 pages each. A host that fell out is read again, 0.25 µs a page.
MAX_FINGERPRINTS = 4_000_000
# An empty host costs about 200 bytes as well.
MAX_HOSTS = 50_000

_OF = b"of"
"""The name of the row that says of what the texts are; rows of texts begin with zeros."""
_AT_A_TIME = 1000
_ERRORS = "surrogatepass"


class HostFingerprints:
    """A host's pages are compared one by one: exact for every distance, 10 µs for 10,000 of them."""

    def __init__(
        self,
        load: Callable[[str], array[int]],
        max_fingerprints: int = MAX_FINGERPRINTS,
        max_hosts: int = MAX_HOSTS,
    ) -> None:
        self._load = load
        self._max_fingerprints = max_fingerprints
        self._max_hosts = max_hosts
        self._hosts: OrderedDict[str, array[int]] = OrderedDict()
        self._count = 0

    def __contains__(self, host: str) -> bool:
        return host in self._hosts

    def near(self, host: str, value: int, bits: int) -> list[tuple[int, int]]:
        """The host's fingerprints within ``bits`` of ``value``: (bits that differ, fingerprint), nearest first."""
        if host not in self._hosts:
            self.put(host, self._load(host))
        self._hosts.move_to_end(host)
        values = self._hosts[host]
        found = near(values, value, bits)
        return sorted({(differ, values[place]) for place, differ in found}) if found else []

    def put(self, host: str, values: array[int]) -> None:
        """All fingerprints of a host that is not in memory."""
        self._hosts[host] = values
        self._count += len(values)
        while len(self._hosts) > 1 and (self._count > self._max_fingerprints or len(self._hosts) > self._max_hosts):
            self._count -= len(self._hosts.popitem(last=False)[1])

    def add(self, host: str, value: int) -> None:
        """A fingerprint that the store has now; a host that is not in memory will be loaded with it."""
        values = self._hosts.get(host)
        if values is not None:
            values.append(value)
            self._count += 1


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
            if not found:
                return []
            return [Near(differ, self._page_with(host_fingerprint_key(host, each))) for differ, each in found]
        others: dict[int, int] = {}
        if self._blocks is None:  # one byte a block; empty where that would take long to find out
            values = fingerprints_of(self._keys(table_key(0, 0), table_key(1, 0), MAX_READ + 1))
            self._blocks = across.blocks_of(values) if len(values) <= MAX_READ else bytearray()
        if self._blocks and not any(map(self._blocks.__getitem__, across.blocks(value))):
            return []
        for table, turned, first, last in across.ranges(value):
            values = fingerprints_of(self._keys(table_key(table, first), table_key(table, last) + b"\0"))
            for place, differ in near(values, turned, bits):
                others[across.restored(values[place], table)] = differ
        return sorted(Near(bits_apart, self._page_with(table_key(0, each))) for each, bits_apart in others.items())

    def put(self, batch: WriteBatch, column: ColumnFamily | None, made: Fingerprint) -> None:
        """Add the rows of one fingerprint to a batch."""
        batch.put(host_fingerprint_key(made.host, made.value), made.key, column)
        for key, page in rows_of_all_hosts(made.value, made.key):
            batch.put(key, page, column)

    def stored(self, made: Fingerprint) -> None:
        """The batch with this one was written."""
        self._hosts.add(made.host, made.value)
        if self._blocks:
            for block in across.blocks(made.value):
                self._blocks[block] = 1

    def forget(self) -> None:
        """The database was opened again, or others have changed it: what it holds is not known."""
        self._blocks = None
        self._hosts = HostFingerprints(self._load)

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


class RocksTexts:
    """The texts that several processes share, in a folder, made when missing. Raises OperatorError when it is made."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        make_folder(self._folder)
        try:
            self._open()
        except Exception as error:  # rocksdict raises no narrower class
            raise opening_error(self._folder, str(error)) from error

    def _open(self) -> None:
        self._rows = Rdict(self._folder, database_options())
        self._index = RocksFingerprints(lambda: self._rows)
        self._failed = False  # a write has, and RocksDB takes no other before it is opened again

    def exchange(self, added: Sequence[Text], values: Sequence[int], bits: int) -> list[list[NearText]]:
        """Add texts, then for each value what is within ``bits`` of it, nearest first.

        Of a fingerprint the first page stays: what was answered once is answered always.
        """
        try:
            if self._failed:
                with suppress(Exception):  # closing repeats the error of the write
                    self.close()
                self._open()
            batch = WriteBatch(raw_mode=True)
            first = {text.value: text for text in reversed(added) if table_key(0, text.value) not in self._rows}
            for text in first.values():
                for key, value in rows_of_all_hosts(text.value, text.key + text.url.encode("utf-8", _ERRORS)):
                    batch.put(key, value)
            if first:
                self._rows.write(batch)
            for known in first:
                self._index.stored(Fingerprint("", known, b""))
            return [
                sorted(NearText(near.bits, *_unpacked(near.key)) for near in self._index.near("", value, bits))
                for value in values
            ]
        except Exception as error:  # rocksdict raises no narrower class
            self._failed = True
            raise StorageError(f"{self._folder} cannot be used: {error}") from error

    def is_of(self, stamp: bytes) -> bool:
        """Whether the texts are those of the workers that this stamp stands for."""
        return self._rows.get(_OF) == stamp

    def fill(self, stamp: bytes, frontiers: Iterable[Path]) -> int:
        """Take in the texts of workers' frontiers, which no process writes now; how many. Raises StorageError."""
        count = 0
        for folder in frontiers:
            texts = _texts_in(folder)
            while some := list(islice(texts, _AT_A_TIME)):
                self.exchange(some, [], 0)
                count += len(some)
        self._rows.put(_OF, stamp)
        return count

    def close(self) -> None:
        """Let the folder go; its lock falls with the last handle."""
        rows = self.__dict__.pop("_rows", None)
        if rows is not None:
            rows.close()


def _unpacked(page: bytes) -> tuple[bytes, str]:
    return page[:PAGE_KEY_BYTES], page[PAGE_KEY_BYTES:].decode("utf-8", _ERRORS)


def _texts_in(folder: Path) -> Iterator[Text]:
    """Those of a frontier. Raises OperatorError when it cannot be read."""
    tables = open_to_read(os.fspath(folder))
    try:
        for key, page in tables.rows(PRINTS, prefix=FIRST_TABLE):
            record = tables.pages.get(page)
            if record is not None:
                yield Text(int.from_bytes(key[-FINGERPRINT_BYTES:], "big"), page, unpack_record(record).url)
    finally:
        tables.close()
