"""Of each row of each table: which partition it belongs to, as a worker that holds that one would look for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from xxhash import xxh3_64_digest

from crawlerproject.fleet.repartition.journal import Journal, Partitions, partitions_of
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.rocks.rocks_tables import Tables
from crawlerproject.stores.row_codec import (
    FINGERPRINT_BYTES,
    FIRST_TABLE,
    HASH_BYTES,
    MESSAGE_ROW,
    OF_ALL_HOSTS,
    PAGE_KEY_BYTES,
    PLACE_BYTES,
    READ_ROW,
    TEXT,
    box_of,
    host_of,
    rows_of_all_hosts,
    table_key,
    unpack_record,
)

# Places that are written down together.
_PLACES_AT_A_TIME = 1000
# What comes behind the first of the tables of all hosts, and behind all of them.
_SECOND_TABLE = table_key(1, 0)
_LAST_OF_ALL = OF_ALL_HOSTS + b"\xff" * (1 + FINGERPRINT_BYTES)


class PartitionedRow(NamedTuple):
    """A row, with the partitions that it belongs to: one, nearly always; none when its host is not known."""

    key: bytes
    value: bytes
    partitions: Partitions


class RowPartitioner:
    """Finds the partitions of the rows of one worker's frontier.

    The tables of hosts, queues and pages must have been gone through before those that know hosts by a hash alone.
    """

    def __init__(self, source: Tables, journal: Journal, partitions: int) -> None:
        self._source = source
        self._journal = journal
        self._partitions = partitions
        self._by_number: dict[int, Partitions] = {}
        self._found: list[tuple[bytes, Partitions]] = []  # places that are not in the journal yet

    def write_places(self) -> None:
        """Put the places found so far into the journal, where the tables that need them look."""
        self._journal.add_places(self._found)
        self._found = []

    def _of(self, host: str) -> Partitions:
        """One object for each partition: what is asked of it is found by it."""
        number = partition_of(host, self._partitions)
        return self._by_number.get(number) or self._by_number.setdefault(number, (number,))

    def _place(self, key: bytes, partitions: Partitions) -> None:
        self._found.append((key, partitions))
        if len(self._found) >= _PLACES_AT_A_TIME:
            self.write_places()

    # --- tables that know their hosts' names ----------------------------------------------------

    def hosts(self, behind: bytes) -> Iterator[PartitionedRow]:
        """By name; where each host is, is written down for the tables that have only its hash."""
        for name, packed in self._source.rows(tables.HOSTS, behind):
            partitions = self._of(name.decode(*TEXT))
            self._place(xxh3_64_digest(name), partitions)
            yield PartitionedRow(name, packed, partitions)

    def queue(self, behind: bytes) -> Iterator[PartitionedRow]:
        """By the host in whose queue the row stands. A robots.txt may wait at another host than its key tells of."""
        queue, partitions = b"", Partitions()
        for key, value in self._source.rows(tables.QUEUE, behind):
            if key[:-PLACE_BYTES] != queue:
                queue, partitions = key[:-PLACE_BYTES], self._of(host_of(key))
            if value[:HASH_BYTES] != key[:HASH_BYTES]:
                self._place(value[:PAGE_KEY_BYTES], partitions)
            yield PartitionedRow(key, value, partitions)

    def pages(self, behind: bytes) -> Iterator[PartitionedRow]:
        """By the host of the page's URL, whatever its key says."""
        origin, head, partitions = " ", b"", Partitions()
        for key, value in self._source.rows(tables.PAGES, behind):
            url = unpack_record(value).url
            if key[:HASH_BYTES] != head or not url.startswith(origin):
                host = host_key(url)
                origin, head, partitions = _origin(url), key[:HASH_BYTES], self._of(host)
                if xxh3_64_digest(host.encode(*TEXT)) == head:
                    self._place(head, partitions)
                else:
                    origin = " "  # no URL begins so: the next page is looked at itself
            if origin == " ":
                self._place(key, partitions)
            yield PartitionedRow(key, value, partitions)

    def named(self, behind: bytes, table: str) -> Iterator[PartitionedRow]:
        """Of a table whose rows name their hosts. What is known of the crawl as a whole is no row: ``crawl_facts``."""
        for key, value in self._source.rows(table, behind):
            if host := tables.HOST_OF[table](key, value):
                yield PartitionedRow(key, value, self._of(host))

    def of_boxes(self, behind: bytes, kind: int) -> Iterator[PartitionedRow]:
        """Messages, or how far they were read, by the partition that they are for."""
        for key, value in self._source.rows(tables.MESSAGES, behind, prefix=bytes([kind])):
            yield PartitionedRow(key, value, (box_of(key).partition,))

    # --- tables that have hosts by their hash ---------------------------------------------------

    def seen(self, behind: bytes) -> Iterator[PartitionedRow]:
        """By the hash of the host, but for pages that are elsewhere."""
        self.write_places()
        places = _Places(self._journal, behind)
        for key, value in self._source.rows(tables.SEEN, behind):
            yield PartitionedRow(key, value, places.of(key))

    def prints(self, behind: bytes) -> Iterator[PartitionedRow]:
        """Those of all hosts by the page that has the text, then those of each host by its hash.

        A row of the first of the tables of all hosts stands for those of the others: ``all_rows``.
        """
        self.write_places()
        if behind < _SECOND_TABLE:
            for key, page in self._source.rows(tables.PRINTS, behind, prefix=FIRST_TABLE):
                yield PartitionedRow(key, page, self._journal.places_of(page[:HASH_BYTES]))
        places = _Places(self._journal, behind)
        for key, page in self._source.rows(tables.PRINTS, max(behind, _LAST_OF_ALL)):
            yield PartitionedRow(key, page, places.of(key[:HASH_BYTES]))


class MoveRule(Enum):
    """Where a row goes to when its partition does."""

    WITH_HOST = auto()  # from the holder to the next one
    TRUE_ANYWHERE = auto()  # to the next holder, whichever frontier has it
    WITH_SENDER = auto()  # nowhere, unless its worker holds nothing any more: then to the holder


class Step(NamedTuple):
    """One table, or a part of one."""

    table: str
    find: Callable[[RowPartitioner, bytes], Iterator[PartitionedRow]]
    goes: MoveRule = MoveRule.WITH_HOST


STEPS = (
    Step(tables.HOSTS, RowPartitioner.hosts),
    Step(tables.QUEUE, RowPartitioner.queue),
    Step(tables.PAGES, RowPartitioner.pages),
    # That a URL is known is so wherever it stands.
    Step(tables.SEEN, RowPartitioner.seen, MoveRule.TRUE_ANYWHERE),
    Step(tables.PRINTS, RowPartitioner.prints),
    *(
        Step(table, partial(RowPartitioner.named, table=table))
        for table in (tables.ROBOTS, tables.PAYLOADS, tables.DUE, tables.FACTS)
    ),
    # A message stays with its sender, who sends it to the new holder. There the mark says whether it was read. Which
    # outbox a frontier has is its own matter.
    Step(tables.MESSAGES, partial(RowPartitioner.of_boxes, kind=READ_ROW)),
    Step(tables.MESSAGES, partial(RowPartitioner.of_boxes, kind=MESSAGE_ROW), MoveRule.WITH_SENDER),
)
"""All tables, in the order in which they are gone through."""


class _Places:
    """The journal's places beside a table whose keys begin with the hash of a host, both in order."""

    def __init__(self, journal: Journal, behind: bytes) -> None:
        self._found = journal.places()
        self._found.seek(behind[:HASH_BYTES])
        self._next = self._found.key() if self._found.valid() else None
        self._host, self._of_host = b"", Partitions()
        self._page, self._of_page = b"", Partitions()

    def of(self, key: bytes) -> Partitions:
        """Of a key that is not before the one that was asked about last."""
        while self._next is not None and self._next <= key:
            partitions = partitions_of(self._found.value())
            if len(self._next) == HASH_BYTES:
                self._host, self._of_host = self._next, partitions
            else:
                self._page, self._of_page = self._next, partitions
            self._found.next()
            self._next = self._found.key() if self._found.valid() else None
        if key == self._page:
            return self._of_page
        return self._of_host if key[:HASH_BYTES] == self._host else ()


def all_rows(table: str, row: PartitionedRow) -> list[tuple[bytes, bytes]]:
    """The rows that a row of a ``Step`` stands for, itself the last: one, but for fingerprints of all hosts."""
    if table != tables.PRINTS or not row.key.startswith(OF_ALL_HOSTS):
        return [(row.key, row.value)]
    return rows_of_all_hosts(int.from_bytes(row.key[-FINGERPRINT_BYTES:], "big"), row.value)


def _origin(url: str) -> str:
    """What all URLs of one host and scheme begin with."""
    return url[: url.find("/", url.find("://") + 3) + 1] or " "
