"""Hosts of one domain take turns at the resolver: as many as their addresses serve, and none is forgotten."""

from __future__ import annotations

import pytest

from crawlerproject.frontier.hosts.domain_turns import LINE, STANDING
from crawlerproject.frontier.hosts.host import Host, Stage
from crawlerproject.frontier.workbench import Workbench

MANY = 1_000
PAUSE = 0.5


def _bench(count: int, domain: str = "farm.com") -> tuple[Workbench, list[Host]]:
    bench = Workbench(ip_pause_seconds=PAUSE, domain_of=lambda name: name.partition(".")[2])
    hosts = [Host(f"h{number}.{domain}") for number in range(count)]
    for host in hosts:
        bench.add(host)
    return bench, hosts


def _lookups(bench: Workbench, now: float) -> list[Host]:
    """Hosts to be looked up now."""
    found = []
    while (turn := bench.take(now)) is not None:
        assert not turn.address
        found.append(turn.host)
    return found


def test_no_more_are_looked_up_than_may_stand_in_line() -> None:
    """Eight of a thousand; the next hundred wait in order, the others come back within their time."""
    bench, hosts = _bench(MANY)

    asked = _lookups(bench, 0.0)

    assert asked == hosts[:STANDING]
    assert [host.stage for host in hosts[STANDING : STANDING + LINE]] == [Stage.BEHIND] * LINE
    assert all(host.stage == Stage.WAITING and host.next_free >= 1.0 for host in hosts[STANDING + LINE :])
    assert max(host.next_free for host in hosts) < 20.0


def test_a_farm_costs_look_ups_at_the_pace_of_its_address() -> None:
    """One address: after each request one more name is looked up, for as long as names are left."""
    bench, _ = _bench(MANY)
    now, served, looked_up = 0.0, 0, 0
    flying: list[Host] = []
    while now < 120.0:
        while (turn := bench.take(now)) is not None:
            if not turn.address:
                looked_up += 1
                turn = bench.found(turn.host, "192.0.2.1", 1e9, now)
            if turn is not None:
                flying.append(turn.host)
        assert len(flying) <= 1
        for host in flying:
            bench.ended(host, now + 0.1, now + 1e6, work=False)
            served += 1
        flying.clear()
        now = max(now + 0.1, bench.wake_at() or 0.0)
        assert looked_up <= served + STANDING

    assert served >= 120.0 / (PAUSE + 0.1) * 0.95, "the address was free and hosts waited"


def test_another_domain_is_never_behind() -> None:
    """Its host is looked up in the same moment, however many of the farm's wait."""
    bench, _ = _bench(MANY)
    _lookups(bench, 0.0)
    innocent = Host("www.shop.org")
    bench.add(innocent)

    assert _lookups(bench, 0.0) == [innocent]


def test_hosts_with_addresses_of_their_own_hardly_wait() -> None:
    """A university's thousand hosts: all have had their turn soon, the line empties as fast as it is looked up."""
    bench, _ = _bench(MANY)
    done: set[str] = set()
    now = 0.0
    while len(done) < MANY:
        for host in _lookups(bench, now):
            turn = bench.found(host, f"address of {host.name}", 1e9, now)
            assert turn is not None
            bench.ended(host, now, now + 1e6, work=False)
            done.add(host.name)
        now = max(now + 0.01, min(bench.wake_at() or now, now + 1.0))

    assert now < 30.0


def test_hosts_that_found_no_place_come_as_soon_as_there_is_one() -> None:
    """A loop that was held while they came has sent them an hour away: an idle domain does not wait for that."""
    bench, _ = _bench(0)
    done: set[str] = set()
    now = 0.0
    for turn_of_the_loop in range(10):  # a second each, a tenth of the hosts in each
        for number in range(MANY // 10):
            bench.add(Host(f"h{turn_of_the_loop}-{number}.farm.com"))
        asked = _lookups(bench, now)
        now += 1.0
        for host in asked:
            _serve(bench, host, now, done)
    assert max(host.next_free for host in bench.hosts.values() if host.name not in done) > 60.0

    turns = 0
    while len(done) < MANY:
        for host in _lookups(bench, now):
            _serve(bench, host, now, done)
        now += 0.001
        turns += 1

    assert turns <= MANY / STANDING + 2, "each turn looks up as many as may stand"


def _serve(bench: Workbench, host: Host, now: float, done: set[str]) -> None:
    """The host is found at an address of its own and answers at once."""
    assert bench.found(host, f"address of {host.name}", 1e9, now) is not None
    bench.ended(host, now, now + 1e6, work=False)
    done.add(host.name)


@pytest.mark.parametrize("gone", ["dropped", "held", "waits longer"])
def test_only_what_still_waits_for_its_domain_comes_sooner(gone: str) -> None:
    """Not a host that is on disk meanwhile, nor one that the operator paused, nor one that has another moment."""
    bench, hosts = _bench(STANDING + LINE + 2)
    asked = _lookups(bench, 0.0)
    first, second = hosts[-2:]
    if gone == "dropped":
        bench.drop(first)
    else:
        bench.wait(first, first.next_free + (1e6 if gone == "waits longer" else 0.0), work=gone != "held")
    done: set[str] = set()
    while asked:
        for host in asked:
            _serve(bench, host, 0.5, done)
        asked = _lookups(bench, 0.5)

    assert second.name in done
    assert first.name not in done


def test_a_host_that_had_an_address_goes_before_those_that_never_had_one() -> None:
    """New names, however many, do not keep one waiting that is being crawled."""
    bench, hosts = _bench(MANY)
    asked = _lookups(bench, 0.0)
    known = hosts[-1]
    known.address, known.address_until = "192.0.2.7", 0.5
    assert _lookups(bench, known.next_free) == []

    bench.found(asked[0], "192.0.2.1", 1e9, 20.0)

    assert _lookups(bench, 20.0) == [known]


@pytest.mark.parametrize("stage", [Stage.LOOKED_UP, Stage.BEHIND])
def test_a_host_that_is_dropped_leaves_its_place(stage: Stage) -> None:
    """As when its partition goes to another worker: the next one has its turn."""
    bench, hosts = _bench(STANDING + 2)
    _lookups(bench, 0.0)
    gone = next(host for host in hosts if host.stage == stage)

    bench.drop(gone)

    others = [host for host in hosts[STANDING:] if host is not gone]
    assert _lookups(bench, 0.0) == (others[:1] if stage == Stage.LOOKED_UP else [])


def test_an_addresss_line_is_bounded_and_never_empty_while_hosts_wait() -> None:
    """Those that find no place come back no sooner than it could serve them, and no later than it has."""
    bench = Workbench(ip_pause_seconds=PAUSE)
    hosts = [Host(f"h{number}") for number in range(5 * LINE)]
    for host in hosts:
        host.address, host.address_until = "192.0.2.1", 1e9
        bench.add(host)
    now, served = 0.0, 0
    while served < len(hosts):
        turn = bench.take(now)
        assert sum(host.stage == Stage.IN_LINE for host in hosts) <= LINE
        if turn is not None:
            served += 1
            bench.ended(turn.host, now, 1e9, work=False)
        wake = bench.wake_at()
        assert wake is not None
        now = max(now, wake)

    assert now <= len(hosts) * PAUSE + 1.0
