"""Crawls in Redis that tests begin, each one of its own."""

from __future__ import annotations

import itertools

from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.worker_log import Append
from tests.stores.journaled_crawls import changes_in_redis

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
    """What that journal has, or will have."""
    return changes_in_redis(store, 0)
