"""Addresses: one request at a time, a rest between two, a line that has an end."""

from __future__ import annotations

from crawlerproject.frontier.hosts.domain_turns import BACK_AFTER_SECONDS, LINE
from crawlerproject.frontier.hosts.ip_clocks import IN_LINE, IpClocks
from crawlerproject.frontier.workbench import HostClock

IP = "192.0.2.1"


def host(name: str, address: str = IP) -> HostClock:
    """A host that lives there."""
    made = HostClock(name)
    made.address = address
    return made


def test_an_address_serves_one_and_rests() -> None:
    """The second stands in line until the rest after the first is over."""
    clocks: IpClocks[HostClock] = IpClocks(0.5, 0.0)
    first, second = host("a"), host("b")
    assert clocks.line_up(first, 10.0) is None
    assert clocks.line_up(second, 10.0) == IN_LINE
    assert not clocks.waiting.due(99.0)

    clocks.ended(IP, 11.5, 11.0)

    assert not clocks.waiting.due(11.4)
    assert clocks.waiting.due(11.5)
    assert clocks.serve() is second


def test_a_turn_that_sent_nothing_leaves_the_address_free() -> None:
    """As free as it was, and forgotten when its line is empty."""
    clocks: IpClocks[HostClock] = IpClocks(0.5, 0.0)
    assert clocks.line_up(host("a"), 10.0) is None
    clocks.ended(IP, None, 10.1)

    assert clocks.waiting.wake_at() == 10.1
    assert clocks.serve() is None
    assert not clocks._clocks


def test_after_a_start_every_address_rests_once() -> None:
    """What the process before asked of it is not known."""
    clocks: IpClocks[HostClock] = IpClocks(0.5, 12.0)

    assert clocks.line_up(host("a"), 10.0) == IN_LINE
    assert clocks.waiting.wake_at() == 12.0


def test_a_full_line_sends_hosts_away_for_as_long_as_it_takes() -> None:
    """One pause further apart each, and never before a second has passed."""
    clocks: IpClocks[HostClock] = IpClocks(0.5, 0.0)
    for number in range(LINE + 1):
        clocks.line_up(host(str(number)), 10.0)

    back = [clocks.line_up(host(f"late{number}"), 10.0) for number in range(3)]

    assert back[0] is not None
    assert back[0] >= 10.0 + max(LINE // 2 * 0.5, BACK_AFTER_SECONDS)
    assert back == [back[0], back[0] + 0.5, back[0] + 1.0]


def test_the_least_busy_address_is_the_one_with_the_shortest_line() -> None:
    """Then the one that is free first, then the one that the host has."""
    clocks: IpClocks[HostClock] = IpClocks(0.5, 0.0)
    other = "192.0.2.2"
    assert clocks.least_busy([other, IP], IP, 10.0) == IP
    clocks.line_up(host("a"), 10.0)
    assert clocks.least_busy([IP, other], IP, 10.0) == other
    clocks.line_up(host("b", other), 10.0)
    clocks.ended(other, 30.0, 10.0)
    clocks.ended(IP, 20.0, 10.0)
    assert clocks.least_busy([other, IP], "", 10.0) == IP


def test_who_leaves_the_line_is_not_served() -> None:
    """The host went to another worker."""
    clocks: IpClocks[HostClock] = IpClocks(0.5, 12.0)
    gone, stays = host("a"), host("b")
    for each in (gone, stays):
        clocks.line_up(each, 10.0)
    clocks.leave(gone)

    assert clocks.serve() is stays


def test_without_a_clock_for_addresses_all_are_free() -> None:
    """PACE_PER_IP is off."""
    clocks: IpClocks[HostClock] = IpClocks(None, 99.0)

    assert [clocks.line_up(host(str(number)), 10.0) for number in range(3)] == [None] * 3
