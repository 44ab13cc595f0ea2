"""Hosts summed up in columns are what they are row by row."""

from __future__ import annotations

import random
import struct
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject import native
from crawlerproject.frontier.hosts.host import Host, HostState
from crawlerproject.inspection import host_table
from crawlerproject.inspection.host_table import HostRow, census, host_rows, outlook
from crawlerproject.rules.politeness.pauses import LEAVE_ALONE_SECONDS, OPEN_DOOR, Door
from crawlerproject.rules.printable import LATEST

NOW = 1_800_000_000.0
native_only = pytest.mark.skipif(native.reader is None, reason="the native reader has not been built")


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


@pytest.mark.parametrize("reader", ["native", "Python"])
@pytest.mark.parametrize("column", HostRow._fields)
def test_slices_say_what_rows_say(column: str, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All sums and the first rows in any order, of a crawl that is read in four parts."""
    if reader == "Python":
        monkeypatch.setattr(native, "reader", None)
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


@native_only
def test_the_native_reader_counts_whatever_is_plain() -> None:
    """Hosts as this version packs them; otherwise each would be a row again, and nothing but the time would show it."""
    hosts = [(name, packed) for name, packed in hosts_of_all_kinds(400) if ":" not in name]
    odd = {name for name, packed in hosts if not _is_plain(Host.unpack(name, packed))}

    assert {name for name, _ in _counted(hosts)[0]} == odd
    assert 0 < len(odd) < len(hosts) / 3


def _is_plain(host: Host) -> bool:
    return host.door == OPEN_DOOR and not host.other_ports and not host.left_alone


def _counted(hosts: list[tuple[str, bytes]], column: int = 0) -> tuple[Any, ...]:
    page = native.reader
    assert page is not None
    no_limit = (0.0, None)
    return page.census(hosts, frozenset(), NOW, LATEST, LEAVE_ALONE_SECONDS, column, -1, False, no_limit, no_limit)


MOMENTS = st.one_of(
    st.floats(), st.floats(NOW - 100, NOW + 100), st.sampled_from([0.0, NOW, LATEST, LEAVE_ALONE_SECONDS])
)
COUNTS = st.integers(0, 2**32 - 1)


@st.composite
def packed_hosts(draw: st.DrawFn) -> bytes:
    """As some version packed one, or a damaged disk has it: any flags, moments and counts."""
    fixed = struct.pack(
        "<BdddddddIIIHHHBB", draw(st.sampled_from([6] * 5 + [5, 4])), *(draw(MOMENTS) for _ in range(7)),
        *(draw(COUNTS) for _ in range(3)), *(draw(st.integers(0, 0xFFFF)) for _ in range(3)),
        draw(st.sampled_from([0, 0, 1, 2, 6, 8, 17, 33, 64, 128])), times := draw(st.integers(0, 3)),
    )  # fmt: skip
    samples = struct.pack(f"<{times}d", *(draw(st.floats(0.0, 100.0)) for _ in range(times)))
    return fixed + samples + bytes(40) + draw(st.sampled_from([b"", b"", b"\x51\x00"]))


@native_only
@given(packed_hosts(), st.sampled_from(["a.test", "a.test:81", "ä.test"]), st.sampled_from(range(1, 11)))
def test_a_plain_host_is_counted_as_its_row_is(packed: bytes, name: str, column: int) -> None:
    """State, rank and sums of one host, whatever its bytes are."""
    odd, first, slowest, chosen, states, *sums = _counted([(name, packed)], column)
    if odd:
        return
    (row,) = host_rows([(name, packed)], NOW)
    expected = outlook([row])

    assert [host_table._WORDS[place] for place, count in enumerate(states) if count] == [row.state]
    assert (chosen, first) == (1, [(host_table._rank(row, HostRow._fields[column]), name, packed)])
    assert bool(slowest) == bool(expected.slowest)
    queued, eta, resting, rests, parked, ceiling = sums
    assert (queued, resting, rests, parked) == (
        expected.queued, expected.resting_queued, expected.rests_end_in_seconds, expected.parked_queued
    )  # fmt: skip
    assert eta == pytest.approx(expected.eta_seconds)
    assert (0.0 if ceiling == inf else ceiling) == pytest.approx(expected.ceiling)


@native_only
@pytest.mark.parametrize("host", [("a.test",), ("a.test", "state"), (b"a.test", b"state"), ["a.test", b"state"], None])
def test_what_is_no_host_is_an_error(host: Any) -> None:
    """The extension does not read what it was not promised."""
    with pytest.raises(TypeError):
        _counted([host])


@native_only
def test_short_states_are_left_to_python() -> None:
    """Bytes that end anywhere are never read beyond their end."""
    packed = Host("a.test", 1.0).pack()
    cut = [(f"{size}.test", packed[:size]) for size in range(len(packed))]

    assert _counted(cut)[0] == cut
