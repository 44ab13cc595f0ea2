"""Places in flight: shared by domains while they are short."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.frontier.hosts.host import Host, Stage
from crawlerproject.frontier.workbench import Places, Workbench

PLACES = 100


def bench_of(**hosts: int) -> Workbench:
    """So many hosts of each domain, each at an address of its own; the greedy ones come first."""
    bench = Workbench(ip_pause_seconds=0.0, domain_of=lambda name: name.partition(".")[2], places=PLACES)
    for domain, count in hosts.items():
        for number in range(count):
            host = Host(f"h{number}.{domain}")
            host.address, host.address_until, host.domain = f"{domain} {number}", 1e12, domain
            bench.add(host)
    return bench


def in_flight(bench: Workbench, now: float = 0.0) -> list[Host]:
    """Take turns until there are as many as may be, or none is left."""
    taken = []
    while bench.in_flight < PLACES and (turn := bench.take(now)) is not None:
        taken.append(turn.host)
    return taken


def test_one_domain_leaves_half_of_the_places_to_others() -> None:
    """However many of its hosts are free; a site that comes later has its turn at once."""
    bench = bench_of(greedy=1_000)
    assert len(in_flight(bench)) == PLACES // 2
    late = Host("www.shop")
    late.address, late.address_until, late.domain = "shop", 1e12, "shop"
    bench.add(late)

    assert in_flight(bench) == [late]


def test_domains_share_what_there_is() -> None:
    """Four greedy ones have a fifth each, and a fifth is left."""
    bench = bench_of(a=500, b=500, c=500, d=500)
    taken = in_flight(bench)

    shares = [sum(host.domain == domain for host in taken) for domain in "abcd"]
    assert sum(shares) <= PLACES - min(shares) + 1
    assert min(shares) >= 1
    assert PLACES - len(taken) >= 1


def test_slow_hosts_of_all_domains_leave_a_quarter() -> None:
    """A hundred domains that each have one slow host: together they are as one that may have more."""
    bench = bench_of(**{f"slow{number}": 1 for number in range(PLACES)})
    for host in bench.hosts.values():
        host.took_seconds = 20.0
    assert len(in_flight(bench)) == PLACES * 3 // 4


def test_a_host_is_slow_by_what_its_turns_took() -> None:
    """One quick turn is not believed at once."""
    bench = bench_of(shop=1)
    (host,) = in_flight(bench)
    bench.ended(host, 10.0, 10.0, work=True)
    seen = []
    for now in (10.0, 20.0, 30.0, 40.0):
        seen.append(host.took_seconds)
        assert in_flight(bench, now) == [host]
        bench.ended(host, now + 0.1, now + 0.1, work=True)
    assert seen == [10.0, 5.0, 2.5, 1.25]


def test_who_stands_aside_comes_back_as_others_end() -> None:
    """One for one, and all of them once there are enough places."""
    bench = bench_of(greedy=60)
    taken = in_flight(bench)
    assert len([host for host in bench.hosts.values() if host.stage == Stage.ASIDE]) == 10

    bench.ended(taken[0], 1.0, 1e6, work=True)
    assert len(in_flight(bench, 1.0)) == 1
    for host in taken[1:30]:
        bench.ended(host, 1.0, 1e6, work=True)
    assert len(in_flight(bench, 1.0)) == 9
    assert not [host for host in bench.hosts.values() if host.stage == Stage.ASIDE]


def test_a_host_that_is_dropped_stands_aside_no_more() -> None:
    """As when its partition goes to another worker."""
    bench = bench_of(greedy=52)
    taken = in_flight(bench)
    gone, stays = [host for host in bench.hosts.values() if host.stage == Stage.ASIDE]
    bench.drop(gone)
    bench.ended(taken[0], 1.0, 1e6, work=True)

    assert in_flight(bench, 1.0) == [stays]


@given(st.integers(0, 2**32), st.integers(1, 20))
def test_law_none_is_forgotten_and_a_new_domain_finds_a_place(seed: int, places: int) -> None:
    """For any order of starts and ends: what stands aside comes back by the time that all has ended."""
    rng = random.Random(seed)
    shared = Places(places)
    flying: list[str] = []
    aside = 0
    for number in range(60):
        domain = rng.choice("aaaab")
        if len(flying) < places and rng.random() < 0.6:
            if len(flying) >= shared.short_from and not shared.room(domain, len(flying)):
                assert flying.count(domain) >= places - len(flying) > 0
                shared.wait(domain, Host(f"h{number}.{domain}"))
                aside += 1
            else:
                shared.take(domain)
                flying.append(domain)
        elif flying:
            gone = flying.pop(rng.randrange(len(flying)))
            aside -= len(shared.leave(gone, len(flying)))
    if not flying:
        shared.take("c")
        flying.append("c")
    while flying:
        aside -= len(shared.leave(flying.pop(), len(flying)))
    assert aside == 0
