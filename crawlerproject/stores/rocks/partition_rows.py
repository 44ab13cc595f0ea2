"""The rows of one partition in a worker's frontier: what it changes, all of them, and how they come and go.

A row means the same in any frontier: a partition is what its rows are. A *change* is rows put and removed, in their
order; applied again in that order from any point on it leads to the same rows. So a copy of a partition that was made
while it changed, and the changes since the copy was begun, are the partition.

Which hosts a partition has is kept in rows of their own (HOST_ROW), for the tables that know hosts by a hash alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from struct import Struct

from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.rules.url.urls import host_key, host_name
from crawlerproject.stores.protocols import OF_DOMAINS, OF_NAMES, Changes, HostFact, host_of_fact
from crawlerproject.stores.rocks.rocks_queues import RocksQueues
from crawlerproject.stores.rocks.rocks_tables import Tables
from crawlerproject.stores.row_codec import (
    DUE,
    FACTS,
    HASH_BYTES,
    HOST_OF,
    HOST_ROW,
    HOSTS,
    JOURNAL_ROW,
    MESSAGES,
    PAGE_KEY_BYTES,
    PAGES,
    PAYLOADS,
    PRINTS,
    QUEUE,
    READ_ROW,
    ROBOTS,
    SEEN,
    TABLES,
    TEXT,
    box_key,
    box_of,
    host_fingerprint_key,
    host_prefix,
    host_row_key,
    number_of,
    pack_number,
    pack_queued,
    pack_record,
    partition_key,
    queue_key,
    rows_of_all_hosts,
    unpack_record,
)

_OF_HOSTS = tuple(str(kind) for kind in HostFact if kind not in OF_NAMES and kind not in OF_DOMAINS)
_FACT_KINDS = tuple(kind.encode() for kind in HostFact)

MARK_FACT = "partition/"
"""And a number: the crawl's id, the token under which the partition's rows here are whole, its last change in Redis."""
Row = tuple[str, bytes, bytes | None]
"""Table, key, value; None: the row is removed."""

# Table by its place in TABLES, bytes of the key, bytes of the value.
_ROW = Struct("<BHI")
_REMOVED = 0xFFFFFFFF
# With the table: the page's key in SEEN is the next row, which is not written out.
_AND_SEEN = 0x80
_NUMBERS = {name: number for number, name in enumerate(TABLES)}
# The fastest: rows are short, and shrink by half with it.
_LEVEL = 1
# Keys of one host that are remembered, some 100 bytes each, so that SEEN has them once in a copy.
_MOST_GIVEN = 200_000
# Rows of one part of a copy, or of one write: some 250 KB.
ROWS_AT_A_TIME = 1000


def pack_rows(rows: Iterable[Row]) -> bytes:
    """As the bytes that Redis has."""
    return zlib.compress(join_rows(rows), _LEVEL)


def pack_changes(joined: Sequence[bytes]) -> list[bytes]:
    """Changes that follow each other, each as ``join_rows`` has it: the rows of all stand in the first."""
    return [zlib.compress(b"".join(joined), _LEVEL), *([b""] * (len(joined) - 1))] if joined else []


def join_rows(rows: Iterable[Row]) -> bytes:
    """As the bytes that wait on this disk: to compress them one by one would cost more than all else of a change."""
    parts: list[bytes] = []
    implied: bytes | None = None
    for table, key, value in rows:
        if implied is not None and table == SEEN and key == implied and value == b"":
            parts[-3] = bytes((parts[-3][0] | _AND_SEEN,)) + parts[-3][1:]
            implied = None
            continue
        parts += (_ROW.pack(_NUMBERS[table], len(key), _REMOVED if value is None else len(value)), key, value or b"")
        implied = None if value is None else _page_key(table, key, value)
    return b"".join(parts)


def _page_key(table: str, key: bytes, value: bytes) -> bytes | None:
    """Of a row whose page is known by it."""
    return value[:PAGE_KEY_BYTES] if table == QUEUE else key if table == PAGES else None


def unpack_rows(packed: bytes) -> Iterator[Row]:
    """What ``pack_rows`` or ``pack_changes`` packed."""
    data, at = zlib.decompress(packed) if packed else b"", 0
    while at < len(data):
        number, key_bytes, value_bytes = _ROW.unpack_from(data, at)
        table = TABLES[number & ~_AND_SEEN]
        at += _ROW.size
        key, at = data[at : at + key_bytes], at + key_bytes
        if value_bytes == _REMOVED:
            yield table, key, None
            continue
        value, at = data[at : at + value_bytes], at + value_bytes
        yield table, key, value
        if number & _AND_SEEN and (page := _page_key(table, key, value)) is not None:
            yield SEEN, page, b""


def hosts_changed(changes: Changes) -> Iterator[str]:
    """The hosts that may have rows after a change, some of them more than once."""
    yield from (row.host for row in changes.queued)
    yield from (host_key(record.url) for _, record in changes.pages)
    yield from (name for name, _ in changes.hosts)
    yield from (origin.rpartition("://")[2] for origin, _ in changes.robots)
    yield from (host_of_fact(name) for name, _ in changes.facts if name.startswith(_OF_HOSTS))


def rows_changed(changes: Changes) -> Iterator[tuple[str, Row]]:
    """What a change does to the rows of partitions, each with the host that tells which; messages aside."""
    for row in changes.removed:
        yield row.host, (QUEUE, queue_key(row), None)
    for row in changes.queued:
        yield row.host, (QUEUE, queue_key(row), pack_queued(row))
        yield row.host, (SEEN, row.key, b"")
    for key, record in changes.pages:
        host = host_key(record.url)
        yield host, (PAGES, key, pack_record(record))
        yield host, (SEEN, key, b"")
    for name, packed in changes.hosts:
        yield name, (HOSTS, name.encode(), packed)
    for origin, packed in changes.robots:
        yield origin.rpartition("://")[2], (ROBOTS, origin.encode(), packed)
    for made in changes.fingerprints:
        yield made.host, (PRINTS, host_fingerprint_key(made.host, made.value), made.key)
    for name, packed in changes.facts:
        if host := host_of_fact(name):
            yield host, (FACTS, name.encode(), packed)


def read_marks(changes: Changes) -> Iterator[tuple[int, Row]]:
    """How far the messages of partitions were read with a change, by partition."""
    for box, up_to in dict(changes.read).items():
        yield box.partition, (MESSAGES, box_key(READ_ROW, box), pack_number(up_to))


def hosts_of(tables: Tables, partition: int) -> Iterator[str]:
    """The hosts that a partition has, by name."""
    prefix = partition_key(HOST_ROW, partition)
    for key, _ in tables.rows(MESSAGES, prefix=prefix):
        yield key[len(prefix) :].decode(*TEXT)


def list_hosts(tables: Tables, partition: Callable[[str], int]) -> Iterator[tuple[int, Row]]:
    """The rows that say which hosts each partition has, some twice, for a frontier that does not keep them.

    Those that are there from before are removed first. ``put`` writes what comes of it. StorageError.
    """
    put(tables, ((MESSAGES, key, None) for key, _ in tables.rows(MESSAGES, prefix=bytes((HOST_ROW,)))))
    given = set[str]()
    for host in _hosts_with_rows(tables):
        if host not in given:
            number = partition(host)
            yield number, (MESSAGES, host_row_key(number, host), b"")
            if len(given) == _MOST_GIVEN:
                given.clear()
            given.add(host)


def _hosts_with_rows(tables: Tables) -> Iterator[str]:
    """Every host that a row is about, most of them several times."""
    yield from (HOST_OF[HOSTS](*row) for row in tables.rows(HOSTS))
    yield from RocksQueues(tables).hosts_with_work()
    hashed = b""
    for key, value in tables.rows(PAGES):
        if not hashed or not key.startswith(hashed):
            host = host_key(unpack_record(value).url)
            # That of a robots.txt may have the key of another host, which was sent there for it.
            hashed = own if key.startswith(own := host_prefix(host)[:HASH_BYTES]) else b""
            yield host
    yield from (HOST_OF[ROBOTS](*row) for row in tables.rows(ROBOTS))
    yield from filter(None, (HOST_OF[FACTS](*row) for row in tables.rows(FACTS)))


def of_all_hosts(key: bytes, page: bytes) -> list[tuple[bytes, bytes]]:
    """The rows in the tables of all hosts that go with a row of a host's fingerprint."""
    return rows_of_all_hosts(int.from_bytes(key[HASH_BYTES:], "big"), page)


def all_rows(tables: Tables, partition: int) -> Iterator[Row]:
    """Every row of a partition, as of some moment of the reading."""
    names, domains = set[str](), set[str]()
    for host in hosts_of(tables, partition):
        name = host.encode(*TEXT)
        prefix, hashed = host_prefix(host), host_prefix(host)[:HASH_BYTES]
        yield MESSAGES, host_row_key(partition, host), b""
        if (state := tables.get(HOSTS, name)) is not None:
            yield HOSTS, name, state
        given = set[bytes]()
        for table, start in ((QUEUE, prefix), (PAGES, hashed), (SEEN, hashed), (PRINTS, hashed)):
            for key, value in tables.rows(table, prefix=start):
                if table == SEEN and key in given:
                    continue
                yield table, key, value
                if (page := _page_key(table, key, value)) is not None:  # of a robots.txt: at another host, maybe
                    yield SEEN, page, b""
                    if len(given) < _MOST_GIVEN:
                        given.add(page)
                digest = unpack_record(value).digest if table == PAGES else b""
                if digest and (original := tables.get(PAYLOADS, digest)) is not None:
                    yield PAYLOADS, digest, original
        for origin in (b"http://" + name, b"https://" + name):
            if (record := tables.get(ROBOTS, origin)) is not None:
                yield ROBOTS, origin, record
        facts = [kind + host for kind in _OF_HOSTS]
        if (bare := host_name(host)) not in names:
            names.add(bare)
            facts += [kind + bare for kind in OF_NAMES]
        if (domain := registered_domain(host)) not in domains:
            domains.add(domain)
            facts += [kind + domain for kind in OF_DOMAINS]
        for fact in facts:
            if (packed := tables.get(FACTS, fact.encode(*TEXT))) is not None:
                yield FACTS, fact.encode(*TEXT), packed
    for key, value in tables.rows(MESSAGES, prefix=partition_key(READ_ROW, partition)):
        yield MESSAGES, key, value


def all_parts(tables: Tables, partition: int) -> Iterator[bytes]:
    """The same, some rows at a time, as ``pack_rows`` packs them."""
    rows = all_rows(tables, partition)
    while some := list(islice(rows, ROWS_AT_A_TIME)):
        yield pack_rows(some)


def read_up_to(tables: Tables, partition: int) -> list[tuple[bytes, int]]:
    """How far the messages of each outbox to a partition were read."""
    rows = tables.rows(MESSAGES, prefix=partition_key(READ_ROW, partition))
    return [(box_of(key).outbox, number_of(packed)) for key, packed in rows]


def clear(tables: Tables, partition: int) -> None:
    """Remove every row of a partition, and what its journal lacks. May be done again. StorageError."""
    batch = tables.batch()
    last: list[bytes] = []  # they tell what else there is: they go when that has gone
    for table, key, value in all_rows(tables, partition):
        if table == MESSAGES and key[0] == HOST_ROW:
            last.append(key)
            continue
        if table == PAYLOADS:  # true of whatever pages have it
            continue
        batch.delete(table, key)
        if table == PRINTS:
            for print_key, page in of_all_hosts(key, value or b""):
                if not page or tables.get(PRINTS, print_key) == page:
                    batch.delete(PRINTS, print_key)
        if batch.rows >= ROWS_AT_A_TIME:
            tables.write(batch)
            batch = tables.batch()
    for key, _ in tables.rows(MESSAGES, prefix=partition_key(JOURNAL_ROW, partition)):
        batch.delete(MESSAGES, key)
    for key in last:
        batch.delete(MESSAGES, key)
    tables.write(batch)


def put(tables: Tables, rows: Iterable[Row]) -> None:
    """Apply changes of a partition. StorageError."""
    batch = tables.batch()
    for table, key, value in rows:
        if value is None:
            batch.delete(table, key)
        else:
            batch.put(table, key, value)
        if batch.rows >= ROWS_AT_A_TIME:
            tables.write(batch)
            batch = tables.batch()
    tables.write(batch)


def facts_of(tables: Tables) -> dict[str, bytes]:
    """The facts of a frontier that are of no host."""
    found, behind = dict[str, bytes](), b"\0"
    while behind:
        start, behind = behind, b""
        for name, packed in tables.rows(FACTS, behind=start):
            if (kind := next((kind for kind in _FACT_KINDS if name.startswith(kind)), None)) is not None:
                behind = kind + b"\xff"  # no name of a host begins so
                break
            found[name.decode(*TEXT)] = packed
    return found


def clear_lists(tables: Tables) -> None:
    """Forget which hosts are due when: none of them is of a partition that is held. StorageError."""
    batch = tables.batch()
    for key, _ in tables.rows(DUE):
        batch.delete(DUE, key)
        if batch.rows >= ROWS_AT_A_TIME:
            tables.write(batch)
            batch = tables.batch()
    tables.write(batch)
