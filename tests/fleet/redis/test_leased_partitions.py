"""Which hosts a worker over Redis may ask, and until when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlerproject.fleet.redis import leased_partitions
from crawlerproject.fleet.redis.leased_partitions import LeasedPartitions
from crawlerproject.frontier.other_workers import Links, pack_message
from crawlerproject.stores.protocols import Changes
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

ANSWER_SECONDS = 10.0
LEASE_SECONDS = 60.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Seconds since boot, in the test's hand."""
    now = [1000.0]
    monkeypatch.setattr(leased_partitions, "since_boot", lambda: now[0])
    return lambda seconds: now.__setitem__(0, seconds)


def held(*partitions: int) -> LeasedPartitions:
    """Some of ten partitions; a host's is its last digit."""
    ours = LeasedPartitions(lambda host: int(host[-1]), ANSWER_SECONDS)
    for partition in partitions:
        ours.take(partition, 1000.0 + LEASE_SECONDS, 0.0)
    return ours


def test_a_host_is_asked_only_while_its_answer_comes_within_the_lease(clock: Callable[[float], None]) -> None:
    """Ten seconds for an answer: the last ones of a lease begin nothing, and a renewal goes on."""
    ours = held(1)
    assert ours.may_ask("host1")
    assert not ours.may_ask("host2")

    clock(1000.0 + LEASE_SECONDS - ANSWER_SECONDS + 0.1)
    assert not ours.may_ask("host1")
    assert ours.mine("host1")
    ours.renewed(1050.0 + LEASE_SECONDS)
    assert ours.may_ask("host1")
    assert ours.ask_until("host1") == 1050.0 + LEASE_SECONDS


def test_a_partition_that_leaves_is_decided_about_no_more(clock: Callable[[float], None]) -> None:
    """It is held until it is dropped, so that what is unfinished can be stored."""
    ours = held(1, 2)
    ours.leaving.add(1)

    assert (ours.mine("host1"), ours.may_ask("host1"), 1 in ours, ours.all()) == (False, False, True, [1, 2])
    assert ours.staying() == [2]
    ours.drop(1)
    assert (1 in ours, ours.leaving, ours.all()) == (False, set(), [2])
    assert ours.ask_until("host1") == 0.0


def test_what_a_former_holder_may_have_asked_is_known_by_host() -> None:
    """Epoch seconds; 0 where it left in good order, and of hosts of others."""
    ours = held(2)
    ours.take(1, 2000.0, 1_800_000_000.0)

    assert [ours.unsure_until(f"host{number}") for number in (1, 2, 3)] == [1_800_000_000.0, 0.0, 0.0]


def test_a_message_goes_to_the_hosts_partition() -> None:
    """And is remembered as work, so that no worker takes the crawl for finished."""
    ours, changes = held(), Changes()
    assert not ours.writing
    ours.send("host7", Links([]))
    assert (ours.sent, ours.writing) == (True, True)
    ours.add_messages(changes)
    assert changes.messages == [(7, pack_message(Links([])))]
    assert not ours.writing


def test_a_frontier_without_a_partition_owns_no_host() -> None:
    """As at the start of a worker: it is not the only process of its crawl."""
    nothing = held()

    bench = Bench(MemoryStore(), ownership=nothing)

    assert bench.frontier.hosts.ownership is nothing
    assert not bench.frontier.hosts.ownership.mine("host1")
