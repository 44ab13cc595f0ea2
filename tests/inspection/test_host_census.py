"""Hosts summed up in columns are what they are row by row."""

from __future__ import annotations

import random

import pytest

from crawlerproject.frontier.hosts.host import Host, HostState
from crawlerproject.inspection import host_table
from crawlerproject.inspection.host_table import HostRow, census, host_rows, outlook
from crawlerproject.rules.politeness.pauses import LEAVE_ALONE_SECONDS, Door

NOW = 1_800_000_000.0


def hosts_of_all_kinds(count: int) -> list[tuple[str, bytes]]:
    """As a store has them: plain ones, held and given up, with doors, ports and a pause of years."""
    rng, hosts = random.Random(7), list[tuple[str, bytes]]()
    for number in range(count):
        host = Host(f"h{number:05}.test" + rng.choice(["", "", "", ":8080"]), rng.choice([0.5, 1.0, 7.25]))
        host.rows, host.known, host.fetched = rng.choice([0, 1, 2, 900]), rng.randrange(9), rng.randrange(9)
        host.next_free = NOW + rng.choice([-1e6, -3.0, 0.0, 4.5, 80.0])
        host.rest_until = rng.choice([0.0, 0.0, NOW - 5, NOW + 3600.0 + number])
        host.samples = tuple(rng.random() for _ in range(rng.randrange(6)))
        host.failures = rng.randrange(4)
        host.state = rng.choice([HostState.ASKED] * 8 + [HostState.PARKED, HostState.PAUSED, HostState.LIMITED])
        host.floor_seconds = rng.choice([0.0] * 9 + [LEAVE_ALONE_SECONDS * 2])
        if number % 9 == 0:
            host.door = Door(2, NOW + 50.0, NOW - 9.0, False, "timeout")
        if number % 11 == 0 and ":" not in host.name:
            host.other_ports = (81, 8080)
        hosts.append((host.name, host.pack()))
    return sorted(hosts)


@pytest.mark.parametrize("column", HostRow._fields)
def test_columns_say_what_rows_say(column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All sums and the first rows in any order, of a crawl that is read in four parts."""
    hosts = hosts_of_all_kinds(400)
    leased = {hosts[17][0], hosts[230][0]}
    state = None if column in ("host", "queued", "eta_seconds") else "resting"
    rows = list(host_rows(hosts, NOW, leased, lambda *_: []))
    queued = column == "pace_seconds"
    chosen = [row for row in rows if state in (None, row.state) and (row.queued or not queued)]
    first = sorted(chosen, key=lambda row: (host_table._rank(row, column), row.host))[:30]
    monkeypatch.setattr(host_table, "_AT_ONCE", 100)

    found = census(hosts, NOW, leased, lambda *_: [], column=column, limit=30, state=state, queued=queued)

    expected = outlook(rows)
    assert (found.chosen, found.rows) == (len(chosen), first)
    assert found.ahead._replace(ceiling=0.0, eta_seconds=None) == expected._replace(ceiling=0.0, eta_seconds=None)
    assert found.ahead[2] == pytest.approx(expected.eta_seconds)
    assert found.ahead.ceiling == pytest.approx(expected.ceiling)


def test_a_small_crawl_has_its_rows_made() -> None:
    """The same answer by the other way, without numpy."""
    hosts = hosts_of_all_kinds(50)
    found = census(hosts, NOW, (), lambda *_: [], column="queued", limit=3)

    assert found.ahead == outlook(host_rows(hosts, NOW, (), lambda *_: []))
    assert [row.queued for row in found.rows] == [900, 900, 900]
