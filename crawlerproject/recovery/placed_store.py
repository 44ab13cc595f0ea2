"""The new frontier while it is made: a RocksDB store that also finds a queued row by its URL, and payloads by digest.

A frontier never asks for either: it goes by host. Both lists are in a folder of their own, which goes when all is done.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from struct import Struct

from rocksdict import Options, Rdict
from xxhash import xxh3_128_digest

from crawlerproject.errors import StorageError
from crawlerproject.rules.row_kinds import ROW_KINDS
from crawlerproject.stores.protocols import Changes, QueuedPage
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import MIB, make_folder

LISTS_SUFFIX = ".lists"
_PLACE = Struct("<BQ")  # priority, arrival
_SPAN = Struct("<IQQ")  # number of the file, offset, length
_BUFFER_BYTES = 16 * MIB

Span = tuple[int, int, int]
"""Of a record: the number of its file in the order of writing, its first byte, its length."""


class PlacedStore(RocksStore):
    """Changes are applied to the store first, then to the lists: what is lost of these by a crash is made again."""

    def __init__(self, folder: Path) -> None:
        """Begin in an empty ``folder``: what is there goes."""
        self._lists_folder = folder.with_name(folder.name + LISTS_SUFFIX)
        for left in (folder, self._lists_folder):
            shutil.rmtree(left, ignore_errors=True)
        super().__init__(folder)
        make_folder(str(self._lists_folder))
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(_BUFFER_BYTES)
        self._lists = Rdict(str(self._lists_folder), options)

    def apply(self, changes: Changes) -> None:
        """Apply all of it to the store, then to the lists. StorageError."""
        super().apply(changes)
        try:
            for row in changes.removed:
                self._lists.delete(_row_key(row.url, row.flags))
            for row in changes.queued:
                place = _PLACE.pack(row.priority, row.arrival) + row.host.encode()
                self._lists.put(_row_key(row.url, row.flags), place)
        except Exception as error:  # rocksdict raises no narrower class
            raise StorageError(f"{self._lists_folder} cannot be written: {error}") from error

    def row(self, url: str, flags: int = 0) -> QueuedPage | None:
        """The row that waits for a URL; FLAG_ROBOTS: of a robots.txt that was redirected there, FLAG_REQUISITE: so."""
        packed = self._lists.get(_row_key(url, flags))
        if packed is None:
            return None
        priority, arrival = _PLACE.unpack_from(packed)
        host = packed[_PLACE.size :].decode()
        found = self.head(host, 1, (priority, arrival - 1))
        return found[0] if found and found[0].url == url and found[0].arrival == arrival else None

    def keep_payload(self, digest: bytes, span: Span) -> None:
        """Remember where a payload is archived. StorageError."""
        try:
            self._lists.put(b"d" + digest, _SPAN.pack(*span))
        except Exception as error:
            raise StorageError(f"{self._lists_folder} cannot be written: {error}") from error

    def payload(self, digest: bytes) -> Span | None:
        """Where a payload was archived first."""
        packed = self._lists.get(b"d" + digest)
        return None if packed is None else _SPAN.unpack(packed)

    def close(self) -> None:
        """Let go of both, and remove the lists."""
        super().close()
        self._lists.close()
        shutil.rmtree(self._lists_folder, ignore_errors=True)


def _row_key(url: str, flags: int) -> bytes:
    kind = ROW_KINDS[flags]
    letter = b"p" if kind.is_robots else b"e" if kind.is_requisite else b"r"
    return letter + xxh3_128_digest(url.encode("utf-8", "surrogatepass"))
