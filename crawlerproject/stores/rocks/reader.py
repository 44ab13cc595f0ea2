"""What a frontier in RocksDB answers, whether its process may write it or only reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.protocols import Near, PageRecord, QueuedPage
from crawlerproject.stores.rocks.fingerprints import RocksFingerprints
from crawlerproject.stores.rocks.queues import RocksQueues
from crawlerproject.stores.rocks.tables import Tables
from crawlerproject.stores.row_codec import unpack_original, unpack_record


class RocksReader:
    """The questions of a ``FrontierStore``. Raises FrontierDamaged where a table cannot be read to its end."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._queues = RocksQueues(lambda: self._tables)
        self._fingerprints = RocksFingerprints(lambda: self._tables.prints)

    def known(self, keys: Sequence[bytes], hosts: Sequence[str] | None = None) -> list[bool]:
        """For each key, whether the page is queued or was decided before."""
        if not keys:
            return []
        values: list[bytes | None] = self._tables.seen.get(list(keys)) or []
        return [value is not None for value in values]

    def head(self, host: str, limit: int, after: tuple[int, int] | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        return self._queues.head(host, limit, after)

    def queue(self, host: str) -> Iterator[QueuedPage]:
        """The host's whole queue in order."""
        return self._queues.whole(host)

    def page(self, key: bytes, host: str | None = None) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first. ``host`` is not needed."""
        value = self._tables.pages.get(key)
        return None if value is None else unpack_record(value)

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page and its key, in order of key; as they were when the iteration began."""
        for key, value in self._tables.rows(self._tables.pages):
            yield key, unpack_record(value)

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        return self._tables.hosts.get(host.encode())

    def hosts(self) -> Iterator[tuple[str, bytes]]:
        """Every host ever met and its packed state, in order of name."""
        for name, packed in self._tables.rows(self._tables.hosts):
            yield name.decode(), packed

    def hosts_with_work(self) -> Iterator[str]:
        """Every host with at least one queued row, each once; it may see changes made meanwhile."""
        return self._queues.hosts()

    def robots(self, origin: str) -> bytes | None:
        """The packed robots record of the origin."""
        return self._tables.robots.get(origin.encode())

    def fact(self, name: str) -> bytes | None:
        """A crawl-wide fact."""
        return self._tables.database.get(name.encode())

    def facts(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every crawl-wide fact whose name begins with ``prefix``, in order of name."""
        for name, value in self._tables.rows(self._tables.database, prefix.encode()):
            if not name.startswith(prefix.encode()):
                return
            yield name.decode(), value

    def near(self, host: str, value: int, bits: int) -> list[Near]:
        """The host's fingerprints within ``bits`` of ``value``, nearest first; "": of all hosts, three at most."""
        return self._fingerprints.near(host, value, bits)

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1."""
        value = self._tables.payloads.get(digest)
        return None if value is None else unpack_original(value)
