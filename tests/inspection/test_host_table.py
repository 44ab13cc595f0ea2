"""Rows and sums over hosts: honest about what is left, rests apart."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crawlerproject.frontier.hosts.host import Host, HostState
from crawlerproject.inspection.host_table import host_rows, host_state, outlook, with_addresses

NOW = 1000.0


def packed(name: str, **state: Any) -> tuple[str, bytes]:
    """A host as the store has it."""
    host = Host(name, 5.0)
    for field, value in state.items():
        setattr(host, field, value)
    return name, host.pack()


def test_the_eta_is_the_queue_at_its_pace() -> None:
    """Three URLs of a host free in 2 s, 5 s apart, half a second each: 2 + 3 x 5.5 - 5 seconds."""
    (row,) = host_rows([packed("a.test", rows=3, next_free=NOW + 2, samples=(0.5,))], NOW)

    assert (row.state, row.eta_seconds) == ("waiting", 2 + 3 * 5.5 - 5)


def test_rests_and_parked_hosts_are_counted_apart() -> None:
    """The ETA is of hosts that can be asked; what a rest or a park holds back is said beside it."""
    hosts = [
        packed("a.test", rows=2, next_free=NOW),
        packed("b.test", rows=10, rest_until=NOW + 3600),
        packed("c.test", rows=4, state=HostState.PARKED),
        packed("d.test", fetched=7),
        packed("e.test", rows=1, next_free=NOW - 1),
    ]

    sums = outlook(host_rows(hosts, NOW, leased={"e.test"}))

    assert dict(sums.hosts) == {"free": 1, "resting": 1, "parked": 1, "done": 1, "in-flight": 1}
    assert (sums.queued, sums.eta_seconds) == (3, 5.0)
    assert [row.host for row in sums.slowest] == ["a.test", "e.test"]
    assert (sums.resting_queued, sums.rests_end_in_seconds, sums.parked_queued) == (10, 3600.0, 4)
    assert sums.ceiling == 2 / 5


def test_names_at_one_address_share_what_it_allows() -> None:
    """Forty names allow 8.0 answers a second, their one address 2; what the running process knows of it counts."""
    rows = [
        row._replace(address="192.0.2.1") for row in host_rows([packed(f"n{n}.test", rows=10) for n in range(40)], NOW)
    ]

    assert outlook(rows).ceiling == pytest.approx(8.0)
    assert outlook(rows, ip_pause_seconds=0.5).ceiling == pytest.approx(2.0)
    assert outlook(rows, ip_pause_seconds=0.5).eta_seconds == pytest.approx(400 * 0.5 - 0.5)
    said = with_addresses(outlook(rows), {"ceiling_per_second": 2.0, "eta_seconds": 199.5})
    assert (said.ceiling, said.eta_seconds) == (2.0, 199.5)
    assert with_addresses(outlook(rows), {}) == outlook(rows)


@pytest.mark.parametrize("state", list(HostState))
def test_states_are_plain_words(state: HostState) -> None:
    """As names of counts they are written by orjson, which takes no other kind of text there."""
    host = Host("a.test", 1.0)
    host.state, host.rows = state, 1

    assert orjson.dumps({host_state(host, 0.0): 1})
