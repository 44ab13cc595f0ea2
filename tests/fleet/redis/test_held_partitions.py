"""Which hosts a worker decides about, and until when it may ask them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from crawlerproject.fleet.redis import held_partitions
from crawlerproject.fleet.redis.held_partitions import HeldPartitions
from crawlerproject.frontier.other_workers import Links, unpack_message
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

ANSWER_SECONDS = 10.0
LEASE_SECONDS = 60.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Seconds since boot, in the test's hand."""
    now = [1000.0]
    monkeypatch.setattr(held_partitions, "since_boot", lambda: now[0])
    return lambda seconds: now.__setitem__(0, seconds)


def held(posted: list[tuple[int, bytes]] | None = None) -> HeldPartitions:
    """Of a store with ten partitions; a host's is its last digit."""
    outbox = SimpleNamespace(
        crowded=False, post=lambda *message: (posted if posted is not None else []).append(message)
    )
    store = SimpleNamespace(store=SimpleNamespace(partition=lambda host: int(host[-1])), outbox=outbox)
    return HeldPartitions(cast("Any", store), ANSWER_SECONDS)


def test_a_host_is_asked_only_while_its_answer_comes_within_the_lease(clock: Callable[[float], None]) -> None:
    """Ten seconds for an answer: the last ones of a lease begin nothing, and a renewal goes on."""
    ours = held()
    ours.take(1, 1000.0 + LEASE_SECONDS, 0.0)
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
    ours = held()
    for partition in (1, 2):
        ours.take(partition, 2000.0, 0.0)
    ours.leaving.add(1)

    assert (ours.mine("host1"), ours.may_ask("host1"), 1 in ours, ours.all()) == (False, False, True, [1, 2])
    assert ours.staying() == [2]
    ours.drop(1)
    assert (1 in ours, ours.leaving, ours.all()) == (False, set(), [2])
    assert ours.ask_until("host1") == 0.0


def test_what_a_former_holder_may_have_asked_is_known_by_host() -> None:
    """Epoch seconds; 0 where it left in good order, and of hosts of others."""
    ours = held()
    ours.take(1, 2000.0, 1_800_000_000.0)
    ours.take(2, 2000.0, 0.0)

    assert [ours.unsure_until(f"host{number}") for number in (1, 2, 3)] == [1_800_000_000.0, 0.0, 0.0]


def test_a_message_goes_to_the_hosts_partition() -> None:
    """And is remembered as work, so that no worker takes the crawl for finished."""
    posted: list[tuple[int, bytes]] = []
    ours = held(posted)

    ours.send("host7", Links([]))

    assert [(partition, unpack_message(packed)) for partition, packed in posted] == [(7, Links([]))]
    assert ours.sent


def test_a_frontier_without_a_partition_owns_no_host() -> None:
    """As at the start of a worker: it is not the only process of its crawl."""
    nothing = held()

    bench = Bench(MemoryStore(), ownership=nothing)

    assert bench.frontier.hosts.ownership is nothing
    assert not bench.frontier.hosts.ownership.mine("host1")
