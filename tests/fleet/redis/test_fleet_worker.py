"""A worker's life in a fleet: what it says of itself, and when all is done."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from crawlerproject.fleet.redis.fleet_worker import Fleet, FleetTimes, Identity, PageRate
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.stores.protocols import IN_MEMORY, Due
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.keys import fleet_keys
from crawlerproject.stores.redis.membership import RedisFleet
from crawlerproject.stores.rocks import giving_store
from crawlerproject.stores.rocks.journaled_store import JournaledStore
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
        store = JournaledStore(folder / name, PartitionJournals(link, crawl, name, PARTITIONS))
        times = FleetTimes(LEASE_MS / 1000, 1.0, 0.01)
        part = RedisFleet(link, crawl, name, LEASE_MS)
        self.fleet = Fleet(store, part, Identity(folder / f"{name}.json", crawl, name), times, random.Random(1))
        self.fleet.begin()
        self.bench = Bench(store, now=time.time(), ownership=self.fleet.held, domain_of=registered_domain)

    def turn(self, *, idle: bool) -> None:
        """As after a commit, when its next report is due."""
        self.fleet._reported_at = 0.0
        self.fleet.store.sync()
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


@pytest.mark.parametrize(("lease", "answer", "renew"), [(60.0, 3.0, 20.0), (60.0, 40.0, 10.0), (30.0, 20.0, 5.0)])
def test_leases_are_renewed_before_they_are_too_short_to_ask(lease: float, answer: float, renew: float) -> None:
    """Also of the shortest that are allowed, half as long again as an answer may take."""
    assert FleetTimes(lease, answer, 0.5).renew_seconds == renew


@pytest.mark.parametrize("free", [False, True])
def test_a_server_that_forgot_who_holds_what_is_told_again(server: RedisServer, tmp_path: Path, free: bool) -> None:
    """A replica may take over without the last reports: a partition has no holder there, or one that gave it back."""
    crawl = f"forgotten-{next(numbers)}"
    one, two = workers = [Worker(server, crawl, name, tmp_path) for name in ("one", "two")]
    run(workers, idle=False)
    assert [len(worker.fleet.held.all()) for worker in workers] == [PARTITIONS // 2] * 2
    windows = [worker.fleet.store._outboxes.window_bytes for worker in workers]
    assert windows == [giving_store._WINDOW_BYTES // 2] * 2

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


def test_hosts_go_from_worker_to_worker(server: RedisServer, tmp_path: Path) -> None:
    """With their queues, each to one of them; a worker that is alone has all of them again."""
    crawl = f"moves-{next(numbers)}"
    one = Worker(server, crawl, "one", tmp_path)
    for _ in range(_TURNS):
        one.turn(idle=False)
    hosts = [f"h{number}.test" for number in range(40)]
    assert one.bench.add(*(f"http://{host}/{page}" for host in hosts for page in range(2))) == 80
    one.bench.commit()
    two = Worker(server, crawl, "two", tmp_path)
    run([one, two], idle=False)
    both = [set(worker.fleet.store.hosts_with_work()) for worker in (one, two)]
    assert both[0] | both[1] == {*hosts}
    assert not both[0] & both[1]
    for worker, own in zip((one, two), both, strict=True):
        assert {host for host in hosts if worker.fleet.held.mine(host)} == own
        assert worker.bench.frontier.hosts.waiting_urls == 2 * len(own)
        listed = worker.fleet.store.due(99, Due(IN_MEMORY, ""))
        assert {place.host for place in listed} == own
    one.fleet.store.sync()
    one.fleet.close()
    one.fleet.store.close()
    run([two], idle=False)
    assert two.bench.frontier.hosts.waiting_urls == 80
    two.fleet.store.close()


def test_a_worker_leaves_while_nothing_else_is_written(
    server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that copies a partition may be at work, and journals are for one at a time."""
    one = Worker(server, f"leaves-{next(numbers)}", "one", tmp_path)
    run([one], idle=False)
    store, release, alone = one.fleet.store, one.fleet.leases.release, list[bool]()

    def released(partitions: Iterable[int]) -> None:
        alone.append(store._sending.locked())
        release(partitions)

    monkeypatch.setattr(one.fleet.leases, "release", released)
    one.fleet.close()
    assert alone == [True]
    assert not one.fleet.leases.held
    store.close()


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
