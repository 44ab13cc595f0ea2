"""A host's packed state."""

from __future__ import annotations

import json
import math

import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.inspection.host_table import host_row, host_state, outlook, pace_source
from crawlerproject.rules.politeness.clock_set_back import Longest
from crawlerproject.rules.politeness.pauses import LEAVE_ALONE_SECONDS, OPEN_DOOR, Door
from crawlerproject.rules.printable import human_seconds, moment


def test_round_trip() -> None:
    """Every stored field comes back."""
    host = Host("a.example:81", 5.0)
    host.samples = (0.1, 0.25)
    host.next_free, host.floor_seconds, host.rest_until, host.last_trouble = 12.5, 30.0, 99.0, 90.0
    host.robots_until_http, host.robots_until_https = 1e9, -5.0
    host.rows, host.known, host.fetched, host.failures, host.escalation = 7, 9, 3, 2, 4
    host.arrival = 1_700_000_000_000_000
    host.name_free, host.other_ports = 13.5, (81, 8080, 65535)

    back = Host.unpack("a.example:81", host.pack())

    names = [
        name
        for name in Host.__slots__
        if name not in ("taken", "robots_unstored", "unstored", "held_until", "pace_free", "asked_until")
    ]
    assert [getattr(back, name) for name in names] == [getattr(host, name) for name in names]
    assert back.next_free == 12.5


def test_a_state_of_before_arrivals_were_kept() -> None:
    """Version 2, as a frontier of an earlier release has it."""
    host = Host("a.example", 5.0)
    host.samples, host.rows = (0.1, 0.25), 7

    back = Host.unpack("a.example", b"\x02" + host.pack()[1:-40])

    assert (back.samples, back.rows, back.arrival) == ((0.1, 0.25), 7, 0)


def test_a_state_of_before_ports_shared_a_clock() -> None:
    """Version 3: its name is free when the host itself is."""
    host = Host("a.example", 5.0)
    host.samples, host.next_free, host.arrival = (0.1,), 77.0, 12

    back = Host.unpack("a.example", b"\x03" + host.pack()[1:-32])

    assert (back.samples, back.arrival, back.name_free, back.other_ports) == ((0.1,), 12, 77.0, ())


def test_a_state_of_before_pages_were_counted() -> None:
    """Version 4: of its answers none is forgotten, so that a limit is not exceeded by what came before."""
    host = Host("a.example", 5.0)
    host.fetched, host.pages, host.received_bytes, host.other_ports = 9, 7, 700, (81,)
    packed = host.pack()

    now, before = Host.unpack("a.example", packed), Host.unpack("a.example", b"\x04" + packed[1:-26] + packed[-2:])

    assert (now.pages, now.received_bytes, now.other_ports) == (7, 700, (81,))
    assert (before.pages, before.received_bytes, before.other_ports) == (9, 0, (81,))


def test_a_state_of_before_doors_were_kept() -> None:
    """Version 5 ends as one whose door is open."""
    host = Host("a.example", 5.0)
    host.other_ports = (81, 8080)
    packed = host.pack()
    host.door, host.absent = Door(3, 5_000.0, 4_000.0, True, "rate-limited"), True

    now, before = Host.unpack("a.example", host.pack()), Host.unpack("a.example", b"\x05" + packed[1:])

    assert (now.door, now.absent, now.other_ports) == (host.door, True, (81, 8080))
    assert (before.door, before.absent, before.other_ports) == (OPEN_DOOR, False, (81, 8080))


def test_a_door_is_closed_no_longer_than_a_rest_lasts() -> None:
    """Its moments were stored under a clock that was set back since."""
    host = Host("a.example", 5.0)
    host.door = Door(3, 900_000.0, 890_000.0, True, "rate-limited")

    assert host.clamp_to_now(1_000.0, Longest(rest_seconds=3_600.0))

    assert host.door == Door(3, 4_600.0, 1_000.0, True, "rate-limited")
    assert not host.clamp_to_now(1_000.0, Longest(rest_seconds=3_600.0))


def test_an_uncommitted_robots_answer_is_not_stored() -> None:
    """Its capture may yet be cut away by a crash."""
    host = Host("a.example", 5.0)
    host.robots_until_http = host.robots_until_https = 1e9
    host.robots_unstored = frozenset({"http"})

    back = Host.unpack("a.example", host.pack())

    assert (back.robots_until_http, back.robots_until_https) == (0.0, 1e9)


def test_a_hold_is_not_stored() -> None:
    """A new start asks for a redirected robots.txt again, at the host's own pace."""
    host = Host("a.example", 5.0)
    host.next_free, host.held_until, host.pace_free = 500.0, 500.0, 20.0

    assert Host.unpack("a.example", host.pack()).next_free == 20.0


def test_a_pause_of_an_earlier_release_that_never_ends() -> None:
    """Its host is left alone, its URLs need not wait to be refused, and all of it can be shown."""
    for pause in (1.79e308, math.inf, 1e12):
        host = Host("a.example", 1.0)
        host.floor_seconds = host.delay_seconds = pause
        host.next_free, host.rows, host.rest_until = 1e9 + pause, 7, 5.0

        back = Host.unpack("a.example", host.pack())

        assert back.left_alone
        assert host_state(back, 1e9) == "left-alone"
        assert "left alone" in pace_source(back)
        assert back.next_free == 5.0
        assert back.delay_seconds <= LEAVE_ALONE_SECONDS


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1.79e308, -1.79e308, 1e15])
def test_any_stored_number_can_be_shown(value: float) -> None:
    """Whatever an old frontier holds: tables, sums and dates survive it."""
    for name in ("next_free", "delay_seconds", "rest_until", "last_trouble", "robots_until_http", "floor_seconds"):
        host = Host("a.example", 1.0)
        host.rows = 3
        setattr(host, name, value)
        back = Host.unpack("a.example", host.pack())
        row = host_row(back, 1e9)
        ahead = outlook([row])
        for seconds in (row.pace_seconds, row.free_in_seconds, row.eta_seconds or 0.0, ahead.eta_seconds or 0.0):
            assert human_seconds(seconds)
        assert moment(back.next_free)
        assert moment(back.rest_until)
        json.loads(json.dumps(row._asdict(), allow_nan=False))
