"""Looking at the hosts in memory: the states, the first ones of each order, in slices as in one piece."""

from __future__ import annotations

import random

import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.watch.host_sampler import FIRST_ROWS, ORDERS, Survey, Surveyed

NOW = 1_800_000_000.0


def host(name: str, rows: int = 1, pace: float = 5.0, fetched: int = 0, failures: int = 0) -> Host:
    """One that may be asked now."""
    made = Host(name, pace)
    made.rows, made.fetched, made.failures = rows, fetched, failures
    return made


def surveyed(hosts: list[Host], slice_hosts: int = 7, leased: tuple[str, ...] = ()) -> Surveyed:
    """A whole look, some at a time."""
    survey = Survey()
    for at in range(0, len(hosts), slice_hosts):
        survey.look(hosts[at : at + slice_hosts], NOW, leased)
    return survey.result(NOW)


def test_it_counts_states() -> None:
    """Those of ``scrapy hosts``."""
    resting, waiting, done = host("rests"), host("waits"), host("done", rows=0)
    resting.rest_until, waiting.next_free = NOW + 60, NOW + 5

    found = surveyed([resting, waiting, done, host("asked"), host("free")], leased=("asked",))

    assert found.hosts == {"resting": 1, "waiting": 1, "done": 1, "in-flight": 1, "free": 1}


@pytest.mark.parametrize("order", ORDERS)
def test_the_first_of_each_order_are_those_of_all(order: str) -> None:
    """However the hosts lie in the slices, and never more of them than a page shows."""
    rng = random.Random(order)
    hosts = [
        host(f"h{n}", rng.randrange(90), rng.uniform(1, 60), rng.randrange(5000), rng.randrange(4)) for n in range(400)
    ]

    found, whole = surveyed(hosts), surveyed(hosts, slice_hosts=1000)

    key = ORDERS[order]
    assert list(map(key, found.first[order])) == list(map(key, whole.first[order]))
    assert list(map(key, found.first[order])) == sorted(map(key, whole.first[order]), reverse=True)
    assert 0 < len(found.first[order]) <= FIRST_ROWS


def test_what_has_nothing_of_it_is_in_no_order() -> None:
    """A host without failures is not among the failing."""
    found = surveyed([host("good"), host("bad", failures=2)])

    assert [row.host for row in found.first["failing"]] == ["bad"]
    assert found.first["done"] == []
