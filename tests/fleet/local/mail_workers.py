"""A worker of a local fleet as far as messages go: a frontier, its commits, its mail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import orjson

from crawlerproject.fleet.local.fleet_tables import InboxTable
from crawlerproject.fleet.local.local_mail import LocalExchange, LocalHosts, LocalMail
from crawlerproject.fleet.local.supervisor_link import Ask, json_line
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.rules.url.urls import parse
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


def over_wire(values: Any) -> Any:
    """As it arrives at the other end of a connection."""
    return orjson.loads(json_line(values))


def supervised(inboxes: InboxTable) -> Ask:
    """A connection to a supervisor that answers at once."""

    async def ask(name: str, *question: Any) -> Any:
        await asyncio.sleep(0)
        return over_wire(inboxes.exchange(*over_wire(question)))

    return ask


class Worker:
    """One of them, in this process."""

    def __init__(self, name: str, plan: FleetPlan, ask: Ask, store: FrontierStore | None = None) -> None:
        self.name = name
        self.store = store or MemoryStore()
        self.store.sync()
        self.hosts = LocalHosts(plan, name)
        self.mail = LocalMail(self.store, ask, plan)
        self.exchange = LocalExchange(self.hosts, self.store.messages, self.mail)
        self.bench = Bench(cast("MemoryStore", self.store), ownership=self.hosts, max_urls=1_000_000)

    @property
    def quiet(self) -> bool:
        """Whether it has nothing to do with messages."""
        return self.exchange.empty and self.mail.quiet

    def find(self, *urls: str, via: str = "http://via.example/") -> None:
        """A page names these."""
        self.exchange.take(links(*urls, via=via), self.bench.frontier, self.bench.now)

    async def commit(self) -> None:
        """As crawl/commits.py and the worker's role do it."""
        await self.exchange.read(self.bench.frontier, lambda: self.bench.now)
        self.bench.commit()
        self.exchange.settle()
        await asyncio.to_thread(self.store.sync)
        self.mail.turn()

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
    return all(each.quiet and not each.mail.unread() and not each.store.messages.boxes() for each in workers)
