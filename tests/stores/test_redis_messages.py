"""Messages between workers: removed from the inbox only together with their effect."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any, cast

from crawlerproject.fleet.redis.fleet_worker import Fleet, FleetTimes, Identity
from crawlerproject.frontier.other_workers import RobotsWanted, pack_message
from crawlerproject.stores.redis.buffer.buffered_store import BufferedStore
from crawlerproject.stores.redis.membership import RedisFleet
from crawlerproject.stores.redis.redis_store import RedisStore
from tests.frontier.conftest import Bench
from tests.stores.redis_crawls import LEASE_MS, opened
from tests.stores.redis_servers import RedisServer

HOST = "files.test"
WANTED = RobotsWanted("http://a.test", f"http://{HOST}/a-robots.txt", "PR", "http://a.test/robots.txt")


class Worker:
    """One worker that holds every partition, without the crawl around it."""

    def __init__(self, store: RedisStore, folder: Path) -> None:
        self.store = store
        self.ahead = BufferedStore(store)
        part = RedisFleet(store.link, store.crawl, store.worker, LEASE_MS)
        seconds = LEASE_MS / 1000
        self.fleet = Fleet(
            self.ahead,
            part,
            Identity(folder / "life.json", store.crawl, store.worker),
            FleetTimes(seconds, 1.0, 0.5),
            random.Random(1),
        )
        self.fleet.begin()
        self.bench = Bench(cast("Any", self.ahead), ownership=self.fleet.held)
        self.frontier = self.bench.frontier

    async def take_all(self) -> None:
        """Report until every partition is held."""
        while len(self.store.held) < self.store.partitions:
            await self.fleet.turn(self.frontier, cast("Any", self.frontier.domains), idle=False, counts={}, paused="")

    async def read(self) -> None:
        """What a batch does before its commit begins."""
        await self.fleet.exchange.read(self.frontier, lambda: self.bench.now)

    def commit(self) -> None:
        """What a batch does in the end, but for sending it."""
        self.frontier.state.apply(self.frontier.state.take_changes(), [])
        self.fleet.exchange.settle()

    def inbox(self) -> list[bytes]:
        """The letters that would be there for the next holder."""
        partition = self.store.partition(HOST)
        found: list[bytes] = self.store.link.call("LRANGE", [self.store.keys_of(partition).inbox], 0, 8)
        return found


def test_a_letter_stays_until_what_came_of_it_is_stored(server: RedisServer, tmp_path: Path) -> None:
    """Whatever is sent in between: killed at any moment, a worker leaves the letter or the page that it asks for."""

    async def batches() -> None:
        worker = Worker(opened(server.url, take=False), tmp_path)
        await worker.take_all()
        worker.store.post([(worker.store.partition(HOST), pack_message(WANTED))])

        await worker.read()
        worker.ahead.sync()
        assert worker.inbox() == [pack_message(WANTED)]
        assert worker.store.head(HOST, 9) == []
        await worker.read()  # not once more

        worker.commit()
        worker.ahead.sync()
        assert worker.inbox() == []
        assert [row.url for row in worker.store.head(HOST, 9)] == [WANTED.target]
        worker.store.close()

    asyncio.run(batches())
