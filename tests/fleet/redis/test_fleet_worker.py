"""A worker's life in a fleet: what it says of itself, and when all is done."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from crawlerproject.fleet.redis.fleet_worker import Fleet, FleetTimes, Identity, PageRate
from crawlerproject.stores.redis.buffer.buffered_store import BufferedStore
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.keys import fleet_keys
from crawlerproject.stores.redis.membership import RedisFleet
from crawlerproject.stores.redis.redis_store import RedisStore
from tests.frontier.conftest import Bench
from tests.stores.redis_crawls import LEASE_MS, PARTITIONS, numbers
from tests.stores.redis_servers import RedisServer

# A worker that has nothing to do takes its partitions in one turn and says so in a few more.
_TURNS = 12


class Learned:
    """Nothing that would have to be stored."""

    def forget(self, mine: Any) -> None:
        """Of hosts that leave."""

    def unstored(self) -> list[str]:
        """Hosts."""
        return []


class Worker:
    """One of two, without work."""

    def __init__(self, server: RedisServer, crawl: str, name: str, folder: Path) -> None:
        link = RedisLink(server.url)
        store = BufferedStore(RedisStore(link, crawl, name, PARTITIONS))
        times = FleetTimes(LEASE_MS / 1000, 1.0, 0.01)
        part = RedisFleet(link, crawl, name, LEASE_MS)
        self.fleet = Fleet(store, part, Identity(folder / f"{name}.json", crawl, name), times, random.Random(1))
        self.fleet.begin()
        self.bench = Bench(store, ownership=self.fleet.held)  # type: ignore[arg-type]

    def turn(self, *, idle: bool) -> None:
        """As after a commit, when its next report is due."""
        self.fleet._reported_at = 0.0
        asyncio.run(self.fleet.turn(self.bench.frontier, Learned(), idle=idle, counts={}, paused=""))  # type: ignore[arg-type]

    def lose(self, partition: int) -> None:
        """Hold it no more, and say nothing of that."""
        self.fleet.store.give_back(partition)
        self.fleet.held.drop(partition)


def run(workers: list[Worker], *, idle: bool) -> None:
    """Turn by turn."""
    for _ in range(_TURNS):
        for worker in workers:
            worker.turn(idle=idle)


@pytest.mark.parametrize("free", [False, True])
def test_a_server_that_forgot_who_holds_what_is_told_again(server: RedisServer, tmp_path: Path, free: bool) -> None:
    """A replica may take over without the last reports: a partition has no holder there, or one that gave it back."""
    crawl = f"forgotten-{next(numbers)}"
    one, two = workers = [Worker(server, crawl, name, tmp_path) for name in ("one", "two")]
    run(workers, idle=False)
    assert [len(worker.fleet.held.all()) for worker in workers] == [PARTITIONS // 2] * 2

    partition, owners = one.fleet.held.all()[0], fleet_keys(crawl).owners
    with Redis.from_url(server.url) as client:
        if free:
            one.lose(partition)
            client.hset(owners, str(partition), "two")
        else:
            client.hdel(owners, str(partition))
    run(workers, idle=True)

    assert one.fleet.done
    assert two.fleet.done


def test_what_was_remembered_last_is_known(tmp_path: Path) -> None:
    """The latest first; nothing before the first start; for this user's eyes alone."""
    path = tmp_path / "worker.json"
    identity = Identity(path, "web", "one")

    assert identity.incarnations() == []
    identity.remember(["b", "a"])
    identity.remember(["c", "b", "a"])
    assert Identity(path, "web", "one").incarnations() == ["c", "b", "a"]
    assert path.stat().st_mode & 0o077 == 0


def test_a_rate_is_of_some_seconds() -> None:
    """Reports in quick succession repeat it; it follows what was done since; a count that begins anew is no rate."""
    rate = PageRate(100.0)

    assert rate.of(40, 104.0) == 0.0
    assert rate.of(50, 110.0) == 5.0
    assert rate.of(90, 114.0) == 5.0
    assert rate.of(90, 130.0) == 2.0
    assert rate.of(3, 140.0) == 0.0
