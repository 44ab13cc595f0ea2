"""Hosts that come from another worker, whose clock may have been behind ours."""

from __future__ import annotations

from crawlerproject.frontier.frontier_state import HostOwnership
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.stores.protocols import Changes
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore


class Doubting(HostOwnership):
    """Not sure of the time by half a second."""

    doubt_seconds = 0.5


def test_a_stored_clock_is_doubted() -> None:
    """The pause that it promises is kept by ours too; a host that was never asked has none."""
    bench = Bench(MemoryStore(), ownership=Doubting())
    hosts = bench.frontier.hosts
    known = Host("known.example", 5.0)
    known.next_free = bench.now + 3.0
    bench.store.apply(Changes(hosts=[(known.name, known.pack())]))

    assert hosts.of("known.example").next_free == known.next_free + 0.5
    assert hosts.of("new.example").next_free <= bench.now
