"""Copying a stopped crawl's frontier between RocksDB and Redis: what both directions share, and the comparison.

A copy that was interrupted goes on behind its last unit. A copy that is not whole cannot be crawled: the folder has
its name only at the end, and in Redis the crawl says that it is being copied until then.
"""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from crawlerproject.errors import OperatorError
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.protocols import ARCHIVE_FACT, DUE_FACT, PageRecord
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import fleet_keys, payloads_key
from crawlerproject.stores.redis.redis_queues import count_of
from crawlerproject.stores.redis.redis_store import RedisStore
from crawlerproject.stores.rocks.rocks_store import RocksReader
from crawlerproject.stores.rocks.rocks_tables import Tables
from crawlerproject.stores.row_codec import FORMAT_FACT, TEXT, unpack_record

COPIED_FACT = "copied"
"""How far a copy is."""
SOURCE_FACT = "copied from"
OWN_FACTS = frozenset({FORMAT_FACT, ARCHIVE_FACT, "clean", COPIED_FACT, SOURCE_FACT, DUE_FACT})
"""About a folder and its process, not about the crawl."""
PAYLOAD_HASHES = 256
ROWS = 1000
"""In one change."""

_WORKER = "state-copy"
# Longer than a change takes by far, short enough that a worker does not wait long for a copy that was killed.
_LEASE_SECONDS = 30.0
# Pages, and hosts, that are compared whole.
_SAMPLE = 1000

# What is counted, as it is named to the operator.
_WORDS = {
    tables.HOSTS: "hosts",
    tables.SEEN: "known URLs",
    tables.PAGES: "pages",
    tables.QUEUE: "queued URLs",
    tables.ROBOTS: "robots.txt and facts about hosts",
    tables.PRINTS: "fingerprints",
    tables.PAYLOADS: "payloads",
}

TableRow = tuple[str, bytes, bytes]  # table, key, value
Say = Callable[[str], None]


class RedisCrawl(NamedTuple):
    """A crawl in Redis: where, its name, how many partitions a new one gets, and how many texts it knows."""

    url: str
    name: str
    partitions: int = 0
    max_texts: int = 0


class Copied(NamedTuple):
    """A copy that was compared with its source: what both hold, and how many pages and hosts were looked at whole."""

    counts: dict[str, int]
    looked_at: int


class HeldStore(RedisStore):
    """Holds every partition of a crawl, so that no worker can write; what dead workers had decided is written."""

    def __init__(self, link: RedisLink, crawl: str, partitions: int, *, copying: bool = False) -> None:
        """Raises OperatorError while a worker is at work."""
        super().__init__(link, crawl, _WORKER, partitions, copying=copying)
        self.begin(uuid.uuid4().hex)
        for partition in range(self.partitions):
            if self.acquire(partition, int(_LEASE_SECONDS * 1000)) is None:
                raise OperatorError(
                    f"A worker is at work on the crawl {crawl!r}; stop all of them (Ctrl-C), then run this again."
                )
        self._kept_at = time.monotonic()

    def keep(self) -> None:
        """Renew the leases in time. Raises OperatorError when one was over."""
        if time.monotonic() - self._kept_at < _LEASE_SECONDS / 6:
            return
        self._kept_at = time.monotonic()
        if self.renew(int(_LEASE_SECONDS * 1000)):
            raise OperatorError(
                f"A worker began to work on the crawl {self.crawl!r} meanwhile; stop it, then run this again."
            )

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page, and its key; leases are renewed meanwhile."""
        for page in super().pages():
            self.keep()
            yield page

    def give_up(self, worker: str) -> None:
        """A worker that never comes back: its archive is asked for no more."""
        keys = fleet_keys(self.crawl)
        self.link.call("HDEL", [keys.incarnations], worker)
        self.link.call("ZREM", [keys.seen], worker)

    def fields(self, key: str) -> Iterator[tuple[bytes, bytes]]:
        """Every field of a hash that is not being written; some may come twice."""
        for some in self.scanned(key):
            self.keep()
            yield from some.items()

    def members(self, key: str | bytes) -> Iterator[bytes]:
        """The members of a sorted set, however many; leases are renewed meanwhile."""
        for member in self.queues.members(key):
            self.keep()
            yield member


class _Sample:
    """So many of the rows that pass, each with the same chance."""

    def __init__(self, chance: random.Random) -> None:
        self.rows: list[tuple[bytes, bytes]] = []
        self._passed = 0
        self._chance = chance

    def add(self, row: tuple[bytes, bytes]) -> None:
        self._passed += 1
        if len(self.rows) < _SAMPLE:
            self.rows.append(row)
        elif (place := self._chance.randrange(self._passed)) < _SAMPLE:
            self.rows[place] = row


def compare(rocks: Tables, store: HeldStore) -> Copied:
    """Count everything on both sides, and look at some pages and hosts whole. Raises OperatorError for a difference."""
    samples = {table: _Sample(random.Random()) for table in (tables.HOSTS, tables.PAGES)}
    left, right, queues = _count_rocks(rocks, samples), _count_redis(store), RocksReader(rocks)
    for what in left.keys() | right.keys():
        if left[what] != right[what]:
            raise _different(f"{left[what]:,} {what} in RocksDB, {right[what]:,} in Redis")
    for key, value in samples[tables.PAGES].rows:
        record, host = unpack_record(value), tables.HOST_OF[tables.PAGES](key, value)
        store.keep()
        if store.page(key, host) != record:  # where the workers keep it
            raise _different(record.url)
    for key, packed in samples[tables.HOSTS].rows:
        name = key.decode(*TEXT)
        store.keep()
        if store.host(name) != packed or store.head(name, ROWS) != queues.head(name, ROWS):
            raise _different(f"the host {name}")
    return Copied(dict(left), sum(len(sample.rows) for sample in samples.values()))


def _different(what: str) -> OperatorError:
    return OperatorError(f"The copy is not the same as what was copied: {what}. Remove it and copy again.")


def _count_rocks(rocks: Tables, samples: dict[str, _Sample]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for table in (tables.HOSTS, tables.SEEN, tables.PAGES, tables.QUEUE, tables.ROBOTS, tables.PAYLOADS):
        sample = samples.get(table)
        for row in rocks.rows(table):
            counts[_WORDS[table]] += 1
            if sample is not None:
                sample.add(row)
    of_host = tables.HOST_OF[tables.FACTS]
    counts[_WORDS[tables.ROBOTS]] += sum(bool(of_host(*row)) for row in rocks.rows(tables.FACTS))
    counts[_WORDS[tables.PRINTS]] = sum(not key.startswith(tables.OF_ALL_HOSTS) for key, _ in rocks.rows(tables.PRINTS))
    return counts


def _count_redis(store: HeldStore) -> Counter[str]:
    counts: Counter[str] = Counter()
    link = store.link
    for partition in range(store.partitions):
        store.keep()
        keys = store.keys_of(partition)
        counts[_WORDS[tables.HOSTS]] += link.call("HLEN", [keys.hosts])
        counts[_WORDS[tables.SEEN]] += link.call("HLEN", [keys.pages])
        counts[_WORDS[tables.PAGES]] += sum(bool(record) for _, record in store.fields(keys.pages))
        counts[_WORDS[tables.ROBOTS]] += link.call("HLEN", [keys.robots])
        counts[_WORDS[tables.PRINTS]] += link.call("ZCARD", [keys.prints])
        hosts = link.call("SMEMBERS", [keys.work])
        for host in hosts:
            counts[_WORDS[tables.QUEUE]] += sum(map(count_of, store.members(keys.queue_prefix.encode() + host)))
    payloads = [Call("HLEN", [payloads_key(store.crawl, bytes([number]))]) for number in range(PAYLOAD_HASHES)]
    counts[_WORDS[tables.PAYLOADS]] = sum(link.many(payloads))
    return counts


def changed(what: str) -> OperatorError:
    """The source is another than when the copy was begun."""
    return OperatorError(f"What is copied was crawled since {what} was begun; remove that and copy again.")
