"""Addresses: one request at a time, a rest between two, a line that has an end."""

from __future__ import annotations

from crawlerproject.frontier.hosts.domain_turns import BACK_AFTER_SECONDS, LINE
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.ip_clocks import IN_LINE, IpClocks
from tests.frontier.conftest import gives_way_until

IP = "192.0.2.1"


def host(name: str, address: str = IP) -> Host:
    """A host that lives there."""
    made = Host(name)
    made.address = address
    return made


def test_an_address_serves_one_and_rests() -> None:
    """The second stands in line until the rest after the first is over."""
    clocks: IpClocks = IpClocks(0.5, 0.0)
    first, second = host("a"), host("b")
    assert clocks.line_up(first, 10.0) is None
    assert clocks.line_up(second, 10.0) == IN_LINE
    assert clocks.waiting.wake_at() is None

    clocks.ended(IP, 11.5, 11.0)

    assert clocks.waiting.wake_at() == 11.5
    assert clocks.serve(99.0) is second


def test_a_turn_that_sent_nothing_leaves_the_address_free() -> None:
    """As free as it was, and forgotten when its line is empty."""
    clocks: IpClocks = IpClocks(0.5, 0.0)
    assert clocks.line_up(host("a"), 10.0) is None
    clocks.ended(IP, None, 10.1)

    assert clocks.waiting.wake_at() == 10.1
    assert clocks.serve(99.0) is None
    assert not clocks._clocks


def test_after_a_start_every_address_rests_once() -> None:
    """What the process before asked of it is not known."""
    clocks: IpClocks = IpClocks(0.5, 12.0)

    assert clocks.line_up(host("a"), 10.0) == IN_LINE
    assert clocks.waiting.wake_at() == 12.0


def test_a_full_line_sends_hosts_away_for_as_long_as_it_takes() -> None:
    """One pause further apart each, and never before a second has passed."""
    clocks: IpClocks = IpClocks(0.5, 0.0)
    for number in range(LINE + 1):
        clocks.line_up(host(str(number)), 10.0)

    back = [clocks.line_up(host(f"late{number}"), 10.0) for number in range(3)]

    assert back[0] is not None
    assert back[0] >= 10.0 + max(LINE // 2 * 0.5, BACK_AFTER_SECONDS)
    assert back == [back[0], back[0] + 0.5, back[0] + 1.0]


def test_the_least_busy_address_is_the_one_with_the_shortest_line() -> None:
    """Then the one that is free first, then the one that the host has."""
    clocks: IpClocks = IpClocks(0.5, 0.0)
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
    clocks: IpClocks = IpClocks(0.5, 12.0)
    gone, stays = host("a"), host("b")
    for each in (gone, stays):
        clocks.line_up(each, 10.0)
    clocks.leave(gone)

    assert clocks.serve(99.0) is stays


def test_without_a_clock_for_addresses_all_are_free() -> None:
    """PACE_PER_IP is off."""
    clocks: IpClocks = IpClocks(None, 99.0)

    assert [clocks.line_up(host(str(number)), 10.0) for number in range(3)] == [None] * 3


def _domain(name: str) -> str:
    return name.partition(".")[2]


def ends(clocks: IpClocks, name: str, now: float, seconds: float) -> None:
    """A host's request ends that took so long."""
    clocks.took(host(name), seconds, now)
    clocks.ended(IP, now + 0.5, now)


def clocks_with(*waiting: str, holder: str, seconds: float) -> IpClocks:
    """An address whose holder's request took so long while these waited; its next turn is at 100.5."""
    clocks: IpClocks = IpClocks(0.5, 0.0, _domain)
    assert clocks.line_up(host(holder), 100.0 - seconds) is None
    for name in waiting:
        assert clocks.line_up(host(name), 100.0 - seconds) == IN_LINE
    ends(clocks, holder, 100.0, seconds)
    return clocks


def served(clocks: IpClocks, now: float) -> str:
    """Whose turn it is; the request ends at once."""
    found = None
    while found is None and clocks.waiting.heap and clocks.waiting.heap[0][0] <= now:
        found = clocks.serve(now)
    assert found is not None
    ends(clocks, found.name, now, 0.0)
    return found.name


def test_domains_take_turns_however_many_hosts_each_has() -> None:
    """The single host of one is not behind all hosts of another."""
    clocks = clocks_with(*(f"h{number}.farm" for number in range(1, 9)), "www.shop", holder="h0.farm", seconds=0.1)

    assert [served(clocks, 100.5 + 0.5 * turn) for turn in range(4)] == ["h1.farm", "www.shop", "h2.farm", "h3.farm"]


def test_who_held_the_address_for_long_gives_way_for_many_times_as_long() -> None:
    """All of the slow ones do, the others have their turns meanwhile; then the one that used it least is first."""
    clocks = clocks_with("h1.slow", "www.shop", holder="h0.slow", seconds=10.0)
    assert served(clocks, 100.5) == "www.shop"
    assert clocks.line_up(host("www.shop"), 106.0) is None, "nothing of a slow domain is under way"
    ends(clocks, "www.shop", 106.1, 0.1)
    assert clocks.waiting.wake_at() == 100.0 + 15 * 10.0
    assert clocks.line_up(host("h2.slow"), 110.0) == IN_LINE
    assert served(clocks, 250.0) == "h1.slow"


def test_a_slow_site_that_is_alone_or_among_slow_ones_waits_for_none() -> None:
    """Nothing is gained by keeping an address idle."""
    alone = clocks_with(holder="www.slow", seconds=10.0)
    assert alone.line_up(host("www.slow"), 101.0) is None

    clocks = clocks_with("www.late", holder="www.slow", seconds=10.0)
    late = clocks.serve(100.5)
    assert late is not None
    clocks.line_up(host("www.slow"), 260.0)
    ends(clocks, "www.late", 260.5, 160.0)
    assert served(clocks, 261.0) == "www.slow", "it kept a slow one waiting, that is all"


def test_quick_answers_make_up_for_a_long_one_by_and_by() -> None:
    """Not one for one: else every second answer could be long."""
    clocks = clocks_with("www.shop", holder="www.slow", seconds=10.0)
    assert served(clocks, 100.5) == "www.shop"
    assert gives_way_until(clocks, host("www.slow")) == 250.0
    for turn in range(9):
        assert gives_way_until(clocks, host("www.slow")) > 0.0
        assert clocks.line_up(host("www.slow"), 300.0 + 2 * turn) is None
        clocks.line_up(host("www.shop"), 300.0 + 2 * turn)
        ends(clocks, "www.slow", 300.1 + 2 * turn, 0.1)
        assert served(clocks, 300.6 + 2 * turn) == "www.shop"
    assert gives_way_until(clocks, host("www.slow")) == 0.0


def test_a_full_line_has_room_for_a_domain_with_fewer_hosts_or_an_older_wish() -> None:
    """The last host of the domain with the most gives its place; among equals the one that has waited longest stays."""
    clocks = clocks_with(*(f"h{number}.farm" for number in range(LINE)), holder="h.farm", seconds=0.1)
    assert clocks.line_up(host("www.shop"), 100.1) == IN_LINE
    ((gone, back_at),) = clocks.displaced
    assert gone.name == f"h{LINE - 1}.farm"
    assert back_at >= 100.1 + BACK_AFTER_SECONDS

    clocks = clocks_with(*(f"www.site{number}" for number in range(LINE)), holder="www.first", seconds=0.1)
    assert clocks.line_up(host("www.new"), 100.1) not in (None, IN_LINE)
    old = host("www.old")
    old.wants_address_since = 50.0
    assert clocks.line_up(old, 100.1) == IN_LINE
    assert len(clocks.displaced) == 1


def test_slow_domains_do_not_fill_the_line() -> None:
    """A quarter of it, however many they are."""
    clocks = clocks_with("www.shop", holder="www.slow", seconds=10.0)
    line = clocks._clocks[IP].line
    assert line is not None
    line.long.used.update({f"slow{number}": 10.0 for number in range(LINE)})
    places = [clocks.line_up(host(f"www.slow{number}"), 101.0) for number in range(LINE)]

    assert places.count(IN_LINE) == LINE // 4
    assert min(place for place in places if place not in (None, IN_LINE)) >= 250.0
    assert clocks.line_up(host("www.other"), 101.0) == IN_LINE
