"""Hosts that come from another worker, whose clock may have been behind ours."""

from __future__ import annotations

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.ownership import SoleOwner
from crawlerproject.stores.protocols import Changes
from tests.frontier.conftest import Bench


class Doubting(SoleOwner):
    """Not sure of the time by half a second."""

    doubt_seconds = 0.5


def test_a_stored_clock_is_doubted(bench: Bench) -> None:
    """The pause that it promises is kept by ours too; a host that nobody asked has none."""
    state = bench.frontier.state
    state.ownership = Doubting()
    known = Host("known.example", 5.0)
    known.next_free = bench.now + 3.0
    state.store.apply(Changes(hosts=[(known.name, known.pack())]))

    assert state.host("known.example").next_free == known.next_free + 0.5
    assert state.host("new.example").next_free <= bench.now
