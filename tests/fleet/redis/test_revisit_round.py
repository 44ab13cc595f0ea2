"""Known pages of a fleet are chosen by partition: the best of the whole crawl, each once, also by a later holder."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from crawlerproject.fleet.link_exchange import FleetExchange
from crawlerproject.fleet.redis.leased_partitions import LeasedPartitions
from crawlerproject.fleet.redis.revisit_round import RevisitRound
from crawlerproject.frontier.learned.revisits import RevisitPolicy
from crawlerproject.rules.revisits.history import DAY_SECONDS, History
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, Inbox, PageRecord, RoundOptions
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.membership import Rounds
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from tests.frontier.conftest import Bench
from tests.stores.redis_crawls import LEASE_MS, PARTITIONS, numbers
from tests.stores.redis_servers import RedisServer

NOW = 1_800_000_000.0
URLS = [f"http://{host}.example/{path}" for host in "abcdefghijkl" for path in range(5)]


@pytest.fixture
def crawl(server: RedisServer, tmp_path: Path) -> str:
    """A crawl that knows sixty pages: the later in ``URLS``, the longer ago they were seen."""
    name = f"known-{next(numbers)}"
    with closing(opened(server, name, tmp_path / "first")) as first:
        for partition in range(PARTITIONS):
            assert first.take(partition, LEASE_MS)
        pages = [(parse(url).key, known(url, days)) for days, url in enumerate(URLS, start=3)]
        first.apply(Changes(pages=pages))
        for partition in range(PARTITIONS):
            first.give_back(partition)
    return name


def opened(server: RedisServer, crawl: str, folder: Path) -> JournaledStore:
    """That of a worker, which goes by its folder's name."""
    journals = PartitionJournals(RedisLink(server.url), crawl, folder.name, PARTITIONS)
    journals.begin(f"life-{next(numbers)}")
    return JournaledStore(folder, journals)


def known(url: str, days: float, queued_days_ago: float | None = None) -> PageRecord:
    """The record of a page that was seen so many days ago."""
    seen = NOW - days * DAY_SECONDS
    queued = 0.0 if queued_days_ago is None else NOW - queued_days_ago * DAY_SECONDS
    return PageRecord(url, "fetched", 200, seen, history=History(visits=1, seen_at=seen, queued_at=queued).pack())


class Worker:
    """One worker's store, frontier and part in the round."""

    def __init__(self, server: RedisServer, crawl: str, folder: Path, budget: int | None = None) -> None:
        self.store = opened(server, crawl, folder)
        self.held = LeasedPartitions(self.store.journals.partition, 1.0)
        self.bench = Bench(self.store, now=NOW, ownership=self.held, recrawl=True)
        self.frontier = self.bench.frontier
        rounds = Rounds(self.store.journals.link, crawl, LEASE_MS)
        self.round = rounds.begin(RoundOptions(recrawl=True, budget=budget, run="one"), NOW, 0)
        self.part = RevisitRound(rounds, self.round, self.store, self.held, RevisitPolicy(None, 2 * DAY_SECONDS))
        self.exchange = FleetExchange(self.held, self.store.messages, self._unread, self.store.read)

    async def _unread(self, partitions: Sequence[int]) -> dict[int, Inbox]:
        return self.store.unread(partitions, 100)

    def take(self, *partitions: int) -> None:
        """Hold these from now on."""
        for partition in partitions:
            taken = self.store.take(partition, LEASE_MS)
            assert taken is not None
            self.store.came(taken[1])
            self.held.take(partition, 1e12, 0.0)

    def turn(self) -> None:
        """One step, as after a commit."""
        asyncio.run(self.part.turn(self.frontier, lambda: self.bench.now))

    def commit(self) -> None:
        """What was decided reaches Redis."""
        self.bench.commit()
        self.store.sync()

    def run(self, turns: int = 4) -> None:
        """Some commits, each with its turn."""
        for _ in range(turns):
            self.turn()
            self.commit()

    def give_back(self) -> None:
        """In good order."""
        for partition in self.held.all():
            self.store.give_back(partition)
            self.held.drop(partition)

    def waiting(self) -> list[str]:
        """The URLs that wait in queues of hosts held."""
        return [row.url for host in sorted(self.store.hosts_with_work()) for row in self.store.queue(host)]


def test_all_that_is_due_is_queued_once(server: RedisServer, tmp_path: Path, crawl: str) -> None:
    """By two workers, each its own; then there is nothing to choose."""
    one, two = Worker(server, crawl, tmp_path / "one"), Worker(server, crawl, tmp_path / "two")
    one.take(*range(3))
    two.take(*range(3, PARTITIONS))
    one.run()
    two.run()

    assert sorted(one.waiting() + two.waiting()) == sorted(URLS)
    assert one.part.queued + two.part.queued == len(URLS)
    assert not (one.part.busy or two.part.busy)


def test_a_budget_is_for_the_whole_crawl(server: RedisServer, tmp_path: Path, crawl: str) -> None:
    """None queues before all partitions are counted; then the seven best of all are queued, wherever they are."""
    one, two = Worker(server, crawl, tmp_path / "one", budget=7), Worker(server, crawl, tmp_path / "two")
    one.take(*range(3))
    one.run()
    assert one.waiting() == []
    assert one.part.busy
    two.take(*range(3, PARTITIONS))
    two.run()
    one.run()

    assert sorted(one.waiting() + two.waiting()) == sorted(URLS[-7:])
    assert not (one.part.busy or two.part.busy)


def test_what_one_chose_another_goes_on_with(server: RedisServer, tmp_path: Path, crawl: str) -> None:
    """A worker is gone that had queued its visits and not said so, or has visited some: none is chosen beyond."""
    one, two = Worker(server, crawl, tmp_path / "one", budget=7), Worker(server, crawl, tmp_path / "two")
    one.take(*range(PARTITIONS))
    one.turn()
    one.commit()
    assert sorted(one.waiting()) == sorted(URLS[-7:])
    visited = parse(URLS[-1])
    old = History.unpack(known(URLS[-1], 1).history)
    again = known(URLS[-1], -0.01)._replace(history=old._replace(visits=2).pack())
    one.store.apply(Changes(pages=[(visited.key, again)], removed=one.store.head(visited.host, 9)))
    one.store.sync()
    one.give_back()
    left = set(URLS[-7:]) - {url for url in URLS if parse(url).host == visited.host}
    two.take(*range(PARTITIONS))
    two.run()

    assert set(two.waiting()) == left
    assert not two.part.busy


def test_a_partition_that_comes_later_is_chosen_from(server: RedisServer, tmp_path: Path, crawl: str) -> None:
    """Its holder died before it chose: who takes it over does."""
    two = Worker(server, crawl, tmp_path / "two")
    two.take(0, 1)
    two.run()
    two.take(*range(2, PARTITIONS))
    assert two.part.busy
    two.run()

    assert sorted(two.waiting()) == sorted(URLS)


def test_what_was_announced_meanwhile_is_queued_once(server: RedisServer, tmp_path: Path, crawl: str) -> None:
    """Its record was read before: as it is queued it is looked at again."""
    one = Worker(server, crawl, tmp_path / "one")
    one.take(*range(PARTITIONS))
    one.part._read = one.part._read_some()
    announced = parse(URLS[0])
    assert one.frontier.changed([(announced, NOW - DAY_SECONDS)], NOW) == 1
    one.run()

    assert sorted(one.waiting()) == sorted(URLS)


def test_known_pages_are_read_in_slices(
    server: RedisServer, tmp_path: Path, crawl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One commit waits for some of them and queues some, however many there are; no host is asked about twice."""
    monkeypatch.setattr("crawlerproject.fleet.redis.revisit_round._A_COMMIT", 7)
    one = Worker(server, crawl, tmp_path / "one")
    one.take(*range(PARTITIONS))
    counts = []
    while one.part.busy:
        one.turn()
        one.commit()
        counts.append(one.part.queued)

    steps = [after - before for before, after in zip([0, *counts], counts, strict=False)]
    assert max(steps) <= 14
    assert counts[-1] == len(URLS)


def test_a_page_of_anothers_is_announced_by_a_message(server: RedisServer, tmp_path: Path, crawl: str) -> None:
    """It is queued by the worker that holds its host, before others."""
    one, two = Worker(server, crawl, tmp_path / "one"), Worker(server, crawl, tmp_path / "two")
    one.take(*range(PARTITIONS))
    announced = parse(URLS[0])
    two.exchange.changed([(announced, NOW - DAY_SECONDS)], two.frontier, NOW)
    two.held.add_messages(two.frontier.state.changes)
    two.commit()
    asyncio.run(one.exchange.read(one.frontier, lambda: NOW))
    one.exchange.settle()
    one.commit()

    assert one.waiting() == [announced.url]
    assert one.frontier.state.announced == 1
    assert two.exchange.empty
    assert one.store.unread(list(range(PARTITIONS)), 9) == {}
