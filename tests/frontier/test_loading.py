"""A start on an earlier run's frontier: hosts are taken up some at a time, while the crawl goes on already."""

from __future__ import annotations

import random

import pytest

from crawlerproject.stores.protocols import FrontierStore
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

HOSTS, PAGES = 12, 3


def _urls(host: int, pages: int = PAGES) -> list[str]:
    return [f"http://h{host:02d}.example/{page}" for page in range(pages)]


@pytest.fixture
def store() -> FrontierStore:
    """What an earlier run left: twelve hosts with three pages each."""
    bench = Bench(MemoryStore())
    bench.add(*[url for host in range(HOSTS) for url in _urls(host)])
    return bench.store


def test_the_first_are_fetched_before_the_last_are_taken_up(store: FrontierStore) -> None:
    """One host is enough to begin with; until all are there nothing is over."""
    bench = Bench(store, now=2000.0, load=False)
    assert bench.frontier.hosts.loading
    assert bench.frontier.load_some(1)

    bench.now += 1.0  # an earlier run may have asked any address just before
    assert bench.next() is not None
    while bench.frontier.load_some(5):
        pass
    assert not bench.frontier.hosts.loading
    assert bench.frontier.hosts.waiting_urls == HOSTS * PAGES  # a robots.txt is leased, which nothing waited for


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_meanwhile_nothing_is_lost_or_counted_twice(store: FrontierStore, seed: int) -> None:
    """Links to hosts that are there, that are still to come, and to new ones; leases, ends and commits in between."""
    chance = random.Random(seed)
    bench = Bench(store, now=2000.0, load=False)
    expected, fetched = {url for host in range(HOSTS) for url in _urls(host)}, list[str]()

    def fetch_one() -> bool:
        lease = bench.next()
        if lease is None:
            bench.now += 1.0
            return False
        if not lease.row.kind.is_robots:
            fetched.append(lease.row.url)
        bench.answer(lease)
        return True

    loading = True
    while loading:
        loading = bench.frontier.load_some(chance.randrange(1, 4))
        more = _urls(chance.randrange(HOSTS + 4), chance.randrange(1, PAGES + 3))
        expected.update(more)
        bench.add(*more)
        for _ in range(chance.randrange(6)):
            fetch_one()
        if chance.random() < 0.5:
            bench.commit()
    idle = 0
    while idle < 20 and (bench.frontier.hosts.waiting_urls or bench.frontier.state.leased):
        idle = 0 if fetch_one() else idle + 1
    bench.commit()

    assert sorted(fetched) == sorted(expected)
    assert bench.frontier.hosts.waiting_urls == 0
    assert not list(bench.store.hosts_with_work())
