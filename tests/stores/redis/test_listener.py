"""One worker of a crawl is reached by hubs, and what the others write to it is there until it has read it."""

from __future__ import annotations

import pytest

from crawlerproject.stores.redis import store as redis_store
from crawlerproject.stores.redis.keys import worker_keys
from crawlerproject.stores.redis.membership import RedisFleet
from crawlerproject.stores.redis.store import TO_LISTENER, RedisStore
from tests.stores.redis_crawls import LEASE_MS, PARTITIONS


def fleet_of(store: RedisStore, worker: str) -> RedisFleet:
    """A worker that has joined."""
    fleet = RedisFleet(store.link, store.crawl, worker, LEASE_MS)
    fleet.begin(f"life of {worker}", [], PARTITIONS)
    return fleet


def test_the_first_that_joins_listens_until_it_leaves(store: RedisStore) -> None:
    """Then the next that asks, and it finds the facts of the one before."""
    one, two = fleet_of(store, "one"), fleet_of(store, "two")
    assert one.listener() == ("one", "")
    assert two.listener() == ("one", "one")
    assert one.listener() == ("one", "one")
    store.link.call("HSET", [worker_keys(store.crawl, "one").state], "fact:websub", b"[]")
    one.leave()

    assert two.listener() == ("two", "one")
    assert two.facts_of("one", ["websub", "websub-hubs"]) == [("websub", b"[]")]
    one.begin("life of one again", ["life of one"], PARTITIONS)
    assert one.listener() == ("two", "two")


def test_what_is_written_to_it_waits(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, beside messages to partitions; read is what was committed; without a reader the last are kept."""
    one = fleet_of(store, "one")
    store.post([(TO_LISTENER, b"first"), (3, b"a partition's"), (TO_LISTENER, b"second")])
    assert one.to_listener(1) == [b"first"]
    assert one.to_listener(9) == [b"first", b"second"]
    one.listener_read(1)
    assert one.to_listener(9) == [b"second"]
    assert store.link.call("LRANGE", [store.keys_of(3).inbox], 0, -1) == [b"a partition's"]

    monkeypatch.setattr(redis_store, "_MOST_TO_LISTENER", 3)
    store.post([(TO_LISTENER, b"%d" % number) for number in range(5)])
    assert one.to_listener(9) == [b"2", b"3", b"4"]
