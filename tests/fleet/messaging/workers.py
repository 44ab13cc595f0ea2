"""A worker of a local fleet as far as messages go: a frontier, its commits, its mailbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from crawlerproject.fleet.messaging.peer_links import PeerLinks
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import FleetPlan, alone, shared_out
from crawlerproject.stores.protocols import FrontierStore
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

PARTITIONS = 64


def plan_of(*workers: str) -> FleetPlan:
    """Each has its share."""
    return shared_out(alone(PARTITIONS), workers)


def hosts_of(plan: FleetPlan, worker: str, count: int) -> list[str]:
    """So many hosts that the worker decides about."""
    found: list[str] = []
    number = 0
    while len(found) < count:
        host = f"site-{number}.example"
        if plan.holder(host) == worker:
            found.append(host)
        number += 1
    return found


def hosts_by_partition(plan: FleetPlan) -> list[str]:
    """A host of each partition."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < plan.partitions:
        host = f"site-{number}.example"
        found.setdefault(partition_of(host, plan.partitions), host)
        number += 1
    return [found[partition] for partition in range(plan.partitions)]


def links(*urls: str, via: str = "http://via.example/") -> list[DiscoveredUrl]:
    """Links of one page."""
    return [DiscoveredUrl(parse(url), 1, "L", via, 10) for url in urls]


class Worker:
    """One of them, in this process."""

    def __init__(self, crawl: CrawlDir, name: str, plan: FleetPlan, store: FrontierStore | None = None) -> None:
        self.name = name
        self.store = store or MemoryStore()
        self.box = PeerLinks(self.store, crawl, name, plan)
        self.bench = Bench(cast("MemoryStore", self.store), ownership=self.box.hosts, max_urls=1_000_000)
        (crawl / name).mkdir(parents=True, exist_ok=True)

    def find(self, *urls: str, via: str = "http://via.example/") -> None:
        """A page names these."""
        self.box.exchange.take(links(*urls, via=via), self.bench.frontier, self.bench.now)

    async def commit(self) -> None:
        """As crawl/commits.py does it."""
        await self.box.exchange.read(self.bench.frontier, lambda: self.bench.now)
        self.bench.commit()
        self.box.exchange.settle()
        await asyncio.to_thread(self.store.sync)
        self.box.synced()

    def knows(self, urls: Iterable[str]) -> list[bool]:
        """Whether each URL is queued here."""
        return self.store.known([parse(url).key for url in urls])


async def until(workers: Sequence[Worker], done: Callable[[], bool]) -> None:
    """Let all of them commit until it is done. Fails after a minute."""
    async with asyncio.timeout(60):
        while not done():
            for worker in workers:
                await worker.commit()
            await asyncio.sleep(0.002)


def idle(workers: Sequence[Worker]) -> bool:
    """Whether nothing is on its way any more."""
    return all(worker.box.quiet and not worker.box.unread() and not worker.store.messages.holds() for worker in workers)
