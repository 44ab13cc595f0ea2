"""Crawls in Redis that tests begin, each one of its own."""

from __future__ import annotations

import itertools

from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journals import Append, PartitionJournals
from crawlerproject.stores.redis.keys import partition_keys

PARTITIONS = 8
LEASE_MS = 60_000
numbers = itertools.count()


def opened(url: str, worker: str = "one", crawl: str = "", *, take: bool = True) -> PartitionJournals:
    """What Redis has of a crawl of its own; with ``take`` it holds every partition."""
    store = PartitionJournals(RedisLink(url), crawl or f"crawl-{next(numbers)}", worker, PARTITIONS)
    store.begin(f"life-{next(numbers)}")
    if take:
        assert all(store.acquire(number, LEASE_MS) for number in range(store.partitions))
    return store


def add(store: PartitionJournals, number: int) -> None:
    """Add change ``number`` to the journal of partition 0."""
    store.append([Append(0, number, [b"%d" % number])], {})


def added(store: PartitionJournals) -> list[bytes]:
    """What that journal has."""
    tag = partition_keys(store.crawl, 0).queue_prefix.removesuffix("q:")
    found: list[bytes] = store.link.call("LRANGE", [f"{tag}journal"], 0, -1)
    return found
