"""The rows of one partition in a worker's frontier: what it changes, all of them, and how they come and go.

A row means the same in any frontier: a partition is what its rows are. A *change* is rows put and removed, in their
order; applied again in that order from any point on it leads to the same rows. So a copy of a partition that was made
while it changed, and the changes since the copy was begun, are the partition.

Which hosts a partition has is kept in rows of their own (HOST_ROW), for the tables that know hosts by a hash alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from operator import attrgetter

from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.rules.url.urls import host_key, host_name
from crawlerproject.stores import row_codec
from crawlerproject.stores.protocols import OF_DOMAINS, OF_NAMES, Changes, HostFact, host_of_fact
from crawlerproject.stores.rocks.rocks_queues import RocksQueues
from crawlerproject.stores.rocks.rocks_tables import Tables
from crawlerproject.stores.rocks.row_packing import Row, pack_rows

_OF_HOSTS = tuple(str(kind) for kind in HostFact if kind not in OF_NAMES and kind not in OF_DOMAINS)
_FACT_KINDS = tuple(kind.encode() for kind in HostFact)

MARK_FACT = "partition/"
"""And a number: the crawl's id, the token under which the partition's rows here are whole, its last change in Redis."""
# Keys and fingerprints of one host that are remembered, some 100 bytes each: a copy has a key in SEEN once, and a
# fingerprint beside its page.
_MOST_GIVEN = 200_000
# Rows of one write: some 250 KB.
ROWS_AT_A_TIME = 1000
_ROWS_OF_PART = 4 * ROWS_AT_A_TIME


def hosts_changed(changes: Changes, of_pages: Iterable[str]) -> dict[str, None]:
    """The hosts that may have rows after a change; ``of_pages``: of its pages, in their order."""
    return dict.fromkeys(
        chain(
            map(attrgetter("host"), changes.queued),
            of_pages,
            (name for name, _ in changes.hosts),
            (origin.rpartition("://")[2] for origin, _ in changes.robots),
            (host_of_fact(name) for name, _ in changes.facts if name.startswith(_OF_HOSTS)),
        )
    )


def rows_removed(changes: Changes) -> Iterator[tuple[str, Row]]:
    """The rows that a change takes from partitions, each with the host that tells which."""
    return ((row.host, (row_codec.QUEUE, row_codec.queue_key(row), None)) for row in changes.removed)


def rows_changed(changes: Changes, of_pages: Iterable[str]) -> Iterator[tuple[str, Row]]:
    """What it puts into them then, but for rows that are queued, messages, and what both imply."""
    for host, (key, record) in zip(of_pages, changes.pages, strict=True):
        yield host, (row_codec.PAGES, key, row_codec.pack_record(record))
    for name, packed in changes.hosts:
        yield name, (row_codec.HOSTS, name.encode(), packed)
    for origin, packed in changes.robots:
        yield origin.rpartition("://")[2], (row_codec.ROBOTS, origin.encode(), packed)
    for made in changes.fingerprints:
        yield made.host, (row_codec.PRINTS, row_codec.host_fingerprint_key(made.host, made.value), made.key)
    for name, packed in changes.facts:
        if host := host_of_fact(name):
            yield host, (row_codec.FACTS, name.encode(), packed)


def read_marks(changes: Changes) -> Iterator[tuple[int, Row]]:
    """How far the messages of partitions were read with a change, by partition."""
    for box, up_to in dict(changes.read).items():
        mark = row_codec.box_key(row_codec.READ_ROW, box)
        yield box.partition, (row_codec.MESSAGES, mark, row_codec.pack_number(up_to))


def hosts_of(tables: Tables, partition: int) -> Iterator[str]:
    """The hosts that a partition has, by name."""
    prefix = row_codec.partition_key(row_codec.HOST_ROW, partition)
    for key, _ in tables.rows(row_codec.MESSAGES, prefix=prefix):
        yield key[len(prefix) :].decode(*row_codec.TEXT)


def list_hosts(tables: Tables, partition: Callable[[str], int]) -> Iterator[tuple[int, Row]]:
    """The rows that say which hosts each partition has, some twice, for a frontier that does not keep them.

    Those that are there from before are removed first. ``put`` writes what comes of it. StorageError.
    """
    listed = tables.rows(row_codec.MESSAGES, prefix=bytes((row_codec.HOST_ROW,)))
    put(tables, ((row_codec.MESSAGES, key, None) for key, _ in listed))
    given = set[str]()
    for host in _hosts_with_rows(tables):
        if host not in given:
            number = partition(host)
            yield number, (row_codec.MESSAGES, row_codec.host_row_key(number, host), b"")
            if len(given) == _MOST_GIVEN:
                given.clear()
            given.add(host)


def _hosts_with_rows(tables: Tables) -> Iterator[str]:
    """Every host that a row is about, most of them several times."""
    yield from (row_codec.HOST_OF[row_codec.HOSTS](*row) for row in tables.rows(row_codec.HOSTS))
    yield from RocksQueues(tables).hosts_with_work()
    hashed = b""
    for key, value in tables.rows(row_codec.PAGES):
        if not hashed or not key.startswith(hashed):
            host = host_key(row_codec.unpack_record(value).url)
            # That of a robots.txt may have the key of another host, which was sent there for it.
            hashed = own if key.startswith(own := row_codec.host_prefix(host)[: row_codec.HASH_BYTES]) else b""
            yield host
    yield from (row_codec.HOST_OF[row_codec.ROBOTS](*row) for row in tables.rows(row_codec.ROBOTS))
    yield from filter(None, (row_codec.HOST_OF[row_codec.FACTS](*row) for row in tables.rows(row_codec.FACTS)))


def of_all_hosts(key: bytes, page: bytes) -> list[tuple[bytes, bytes]]:
    """The rows in the tables of all hosts that go with a row of a host's fingerprint."""
    return row_codec.rows_of_all_hosts(int.from_bytes(key[row_codec.HASH_BYTES :], "big"), page)


def all_rows(tables: Tables, partition: int) -> Iterator[Row]:
    """Every row of a partition, as of some moment of the reading."""
    names, domains = set[str](), set[str]()
    for host in hosts_of(tables, partition):
        name = host.encode(*row_codec.TEXT)
        yield row_codec.MESSAGES, row_codec.host_row_key(partition, host), b""
        if (state := tables.get(row_codec.HOSTS, name)) is not None:
            yield row_codec.HOSTS, name, state
        yield from _pages_of(tables, host)
        for origin in (b"http://" + name, b"https://" + name):
            if (record := tables.get(row_codec.ROBOTS, origin)) is not None:
                yield row_codec.ROBOTS, origin, record
        facts = [kind + host for kind in _OF_HOSTS]
        if (bare := host_name(host)) not in names:
            names.add(bare)
            facts += [kind + bare for kind in OF_NAMES]
        if (domain := registered_domain(host)) not in domains:
            domains.add(domain)
            facts += [kind + domain for kind in OF_DOMAINS]
        for fact in facts:
            if (packed := tables.get(row_codec.FACTS, fact.encode(*row_codec.TEXT))) is not None:
                yield row_codec.FACTS, fact.encode(*row_codec.TEXT), packed
    for key, value in tables.rows(row_codec.MESSAGES, prefix=row_codec.partition_key(row_codec.READ_ROW, partition)):
        yield row_codec.MESSAGES, key, value


def _pages_of(tables: Tables, host: str) -> Iterator[Row]:
    prefix, hashed = row_codec.host_prefix(host), row_codec.host_prefix(host)[: row_codec.HASH_BYTES]
    given, prints = set[bytes](), defaultdict[bytes, list[bytes]](list)
    fingerprints = tables.rows(row_codec.PRINTS, prefix=hashed)
    for key, page in islice(fingerprints, _MOST_GIVEN):
        prints[page].append(key)
    for key, page in fingerprints:
        yield row_codec.PRINTS, key, page
    for table, start in ((row_codec.QUEUE, prefix), (row_codec.PAGES, hashed)):
        for key, value in tables.rows(table, prefix=start):
            yield table, key, value
            # Of a robots.txt: at another host, maybe.
            page = value[: row_codec.PAGE_KEY_BYTES] if table == row_codec.QUEUE else key
            yield row_codec.SEEN, page, b""
            if len(given) < _MOST_GIVEN:
                given.add(page)
            if table == row_codec.QUEUE:
                continue
            for made in prints.pop(key, ()):
                yield row_codec.PRINTS, made, key
            digest = row_codec.digest_of(value)
            if digest and (original := tables.get(row_codec.PAYLOADS, digest)) is not None:
                yield row_codec.PAYLOADS, digest, original
    for key, _ in tables.rows(row_codec.SEEN, prefix=hashed):
        if key not in given:
            yield row_codec.SEEN, key, b""
    for page, several in prints.items():
        for key in several:
            yield row_codec.PRINTS, key, page


def all_parts(tables: Tables, partition: int) -> Iterator[bytes]:
    """The same, some rows at a time, as ``pack_rows`` packs them."""
    rows = all_rows(tables, partition)
    while some := list(islice(rows, _ROWS_OF_PART)):
        yield pack_rows(some)


def read_up_to(tables: Tables, partition: int) -> list[tuple[bytes, int]]:
    """How far the messages of each outbox to a partition were read."""
    rows = tables.rows(row_codec.MESSAGES, prefix=row_codec.partition_key(row_codec.READ_ROW, partition))
    return [(row_codec.box_of(key).outbox, row_codec.number_of(packed)) for key, packed in rows]


def clear(tables: Tables, partition: int) -> None:
    """Remove every row of a partition, and what its journal lacks. May be done again. StorageError."""
    batch = tables.batch()
    last: list[bytes] = []  # they tell what else there is: they go when that has gone
    for table, key, value in all_rows(tables, partition):
        if table == row_codec.MESSAGES and key[0] == row_codec.HOST_ROW:
            last.append(key)
            continue
        if table == row_codec.PAYLOADS:  # true of whatever pages have it
            continue
        batch.delete(table, key)
        if table == row_codec.PRINTS:
            for print_key, page in of_all_hosts(key, value or b""):
                if not page or tables.get(row_codec.PRINTS, print_key) == page:
                    batch.delete(row_codec.PRINTS, print_key)
        if batch.rows >= ROWS_AT_A_TIME:
            tables.write(batch)
            batch = tables.batch()
    for key, _ in tables.rows(row_codec.MESSAGES, prefix=row_codec.partition_key(row_codec.JOURNAL_ROW, partition)):
        batch.delete(row_codec.MESSAGES, key)
    for key in last:
        batch.delete(row_codec.MESSAGES, key)
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
        for name, packed in tables.rows(row_codec.FACTS, behind=start):
            if (kind := next((kind for kind in _FACT_KINDS if name.startswith(kind)), None)) is not None:
                behind = kind + b"\xff"  # no name of a host begins so
                break
            found[name.decode(*row_codec.TEXT)] = packed
    return found


def clear_lists(tables: Tables) -> None:
    """Forget which hosts are due when: none of them is of a partition that is held. StorageError."""
    batch = tables.batch()
    for key, _ in tables.rows(row_codec.DUE):
        batch.delete(row_codec.DUE, key)
        if batch.rows >= ROWS_AT_A_TIME:
            tables.write(batch)
            batch = tables.batch()
    tables.write(batch)
