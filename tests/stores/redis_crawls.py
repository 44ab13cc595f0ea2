"""Crawls in Redis that tests begin, each one of its own."""

from __future__ import annotations

import itertools

from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.redis_store import RedisStore

PARTITIONS = 8
LEASE_MS = 60_000
numbers = itertools.count()


def opened(url: str, worker: str = "one", crawl: str = "", *, take: bool = True) -> RedisStore:
    """A store of a crawl of its own; with ``take`` it holds every partition."""
    store = RedisStore(RedisLink(url), crawl or f"crawl-{next(numbers)}", worker, PARTITIONS)
    store.begin(f"life-{next(numbers)}")
    if take:
        assert all(store.acquire(number, LEASE_MS) for number in range(store.partitions))
    return store
