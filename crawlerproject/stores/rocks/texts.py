"""Texts of all workers of one machine on disk: block-permuted tables in a RocksDB of their own.

Derived: each worker's frontier has the texts of its own pages. What is missing here is made again from there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from rocksdict import Rdict, WriteBatch

from crawlerproject.errors import StorageError
from crawlerproject.rules.duplicates import permuted_tables as across
from crawlerproject.stores.protocols import Fingerprint
from crawlerproject.stores.rocks.fingerprints import RocksFingerprints
from crawlerproject.stores.rocks.folder import make_folder, opening_error
from crawlerproject.stores.rocks.options import database_options
from crawlerproject.stores.rocks.tables import open_to_read
from crawlerproject.stores.row_codec import FINGERPRINT_BYTES, PAGE_KEY_BYTES, table_key, unpack_record
from crawlerproject.stores.texts import NearText, Text

_OF = b"of"
"""The name of the row that says of what the texts are; rows of texts begin with zeros."""
_AT_A_TIME = 1000
_ERRORS = "surrogatepass"


class RocksTexts:
    """A ``TextIndex`` in a folder, made when missing. Raises OperatorError when it is made."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        make_folder(self._folder)
        try:
            self._rows = Rdict(self._folder, database_options())
        except Exception as error:  # rocksdict raises no narrower class
            raise opening_error(self._folder, str(error)) from error
        self._index = RocksFingerprints(lambda: self._rows)

    def exchange(self, added: Sequence[Text], values: Sequence[int], bits: int) -> list[list[NearText]]:
        """Add texts, then for each value what is within ``bits`` of it, nearest first."""
        try:
            self._add(added)
            return [
                sorted(NearText(near.bits, *_unpacked(near.key)) for near in self._index.near("", value, bits))
                for value in values
            ]
        except Exception as error:  # rocksdict raises no narrower class
            self._index.forget()
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
        """Let the folder go."""
        self._rows.close()

    def _add(self, added: Sequence[Text]) -> None:
        batch = WriteBatch(raw_mode=True)
        for text in added:
            page = text.key + text.url.encode("utf-8", _ERRORS)
            for table in range(across.TABLES):
                batch.put(table_key(table, across.rotated(text.value, table)), b"" if table else page)
        if added:
            self._rows.write(batch)
        for text in added:
            self._index.stored(Fingerprint("", text.value, b""))


def _unpacked(page: bytes) -> tuple[bytes, str]:
    return page[:PAGE_KEY_BYTES], page[PAGE_KEY_BYTES:].decode("utf-8", _ERRORS)


def _texts_in(folder: Path) -> Iterator[Text]:
    """Those of a frontier. Raises OperatorError when it cannot be read."""
    tables = open_to_read(os.fspath(folder))
    try:
        end = table_key(1, 0)
        for key, page in tables.rows(tables.prints, table_key(0, 0)):
            if key >= end:
                return
            record = tables.pages.get(page)
            if record is not None:
                yield Text(int.from_bytes(key[-FINGERPRINT_BYTES:], "big"), page, unpack_record(record).url)
    finally:
        tables.close(failed=False)
