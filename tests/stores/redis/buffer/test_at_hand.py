"""What is at hand of hosts: asked for once, never older than what was decided here."""

from __future__ import annotations

import pytest

from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.buffer.store import BufferedStore
from crawlerproject.stores.redis.store import RedisStore
from tests.stores.redis_crawls import LEASE_MS

HOSTS = [f"h{number}.example" for number in range(4)]


@pytest.fixture
def ahead(store: RedisStore) -> BufferedStore:
    """What a worker sees of a crawl in which each host is known a little."""
    before = BufferedStore(store)
    robots = [(f"https://{host}", b"rules of " + host.encode()) for host in HOSTS]
    before.apply(Changes(robots=robots, facts=[(f"traps/{host}", b"yields") for host in HOSTS]))
    before.sync()
    return BufferedStore(store)


def asked(ahead: BufferedStore) -> int:
    """What the worker has cost in round trips."""
    return ahead.store.link.round_trips


def test_one_round_trip_for_many_hosts_and_none_afterwards(ahead: BufferedStore) -> None:
    """Also for what a host does not have, and for a host that nothing is known of."""
    began = asked(ahead)
    ahead.at_hand([*HOSTS, "new.example"])
    assert asked(ahead) == began + 1

    for host in HOSTS:
        assert ahead.robots(f"https://{host}") == b"rules of " + host.encode()
        assert ahead.robots(f"http://{host}") is None
        assert ahead.fact(f"traps/{host}") == b"yields"
        assert ahead.fact(f"certificate/{host}") is None
    assert ahead.robots("http://new.example") is None
    ahead.at_hand(HOSTS)
    assert asked(ahead) == began + 1


def test_what_was_decided_here_stands(ahead: BufferedStore) -> None:
    """Before it is sent and after, empty values too; what has been forgotten is asked for again."""
    ahead.apply(Changes(robots=[("https://h0.example", b"newer")], facts=[("traps/h0.example", b"")]))
    ahead.at_hand(HOSTS)
    for _ in range(2):
        assert ahead.robots("https://h0.example") == b"newer"
        assert ahead.fact("traps/h0.example") == b""
        ahead.sync()
    fresh = BufferedStore(ahead.store)
    assert (fresh.robots("https://h0.example"), fresh.fact("traps/h0.example")) == (b"newer", b"")


def test_a_partition_that_goes_takes_its_fields_along(ahead: BufferedStore) -> None:
    """Another worker writes them from then on: they are asked for each time, until it comes back."""
    ahead.at_hand(HOSTS)
    partition = ahead.store.partition(HOSTS[0])
    ahead.give_back(partition)
    began = asked(ahead)
    ahead.at_hand(HOSTS[:1])
    assert asked(ahead) == began
    for times in (1, 2):
        assert ahead.fact(f"traps/{HOSTS[0]}") == b"yields"
        assert asked(ahead) == began + times
    assert ahead.store.acquire(partition, LEASE_MS)
    began = asked(ahead)
    ahead.at_hand(HOSTS[:1])
    assert asked(ahead) == began + 1
