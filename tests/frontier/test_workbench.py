"""The workbench: nobody before their time, nobody kept waiting for nothing."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject.frontier.hosts.host import Host, Stage
from crawlerproject.frontier.hosts.ip_clocks import UNRESOLVED
from crawlerproject.frontier.workbench import Workbench
from tests.frontier.conftest import gives_way_until


def _free(bench: Workbench, name: str, address: str, now: float = 0.0) -> Host:
    host = Host(name, next_free=now)
    bench.add(host)
    turn = bench.take(now)
    assert turn is not None
    assert turn.host is host
    assert turn.address == ""
    bench.found(host, address, 1e12, now)
    return host


def test_a_host_without_an_address_is_looked_up_first() -> None:
    """Its turn carries no address until the resolver has answered."""
    bench = Workbench()
    host = Host("a")
    bench.add(host)

    turn = bench.take(0.0)

    assert turn is not None
    assert (turn.host, turn.address, host.stage) == (host, "", Stage.LOOKED_UP)
    assert bench.take(0.0) is None


def test_the_clock_starts_when_the_answer_ends() -> None:
    """A host is not handed out again before the moment given at its answer's end."""
    bench = Workbench(ip_pause_seconds=0.5)
    host = _free(bench, "a", "10.0.0.1")
    assert host.stage == Stage.IN_FLIGHT

    bench.ended(host, 3.0, 8.0, work=True)

    assert bench.take(7.999) is None
    turn = bench.take(8.0)
    assert turn is not None
    assert turn.host is host


def test_hosts_of_one_address_are_served_one_at_a_time() -> None:
    """The second waits in the address's line until the first has ended and the address has rested."""
    bench = Workbench(ip_pause_seconds=0.5)
    first = _free(bench, "a", "10.0.0.1")
    second = _free(bench, "b", "10.0.0.1")
    assert second.stage == Stage.IN_LINE
    assert bench.take(100.0) is None

    bench.ended(first, 100.0, 105.0, work=True)

    assert bench.take(100.4) is None
    assert bench.wake_at() == 100.5
    turn = bench.take(100.5)
    assert turn is not None
    assert turn.host is second


def test_a_host_without_work_is_kept_until_its_clock_is_free() -> None:
    """Dropping it at once would forget its delay (NUTCH-2947)."""
    bench = Workbench()
    host = _free(bench, "a", "10.0.0.1")
    bench.ended(host, 1.0, 6.0, work=False)
    assert "a" in bench.hosts

    bench.add(host)

    assert bench.take(5.9) is None
    turn = bench.take(6.0)
    assert turn is not None
    bench.ended(host, 6.0, 11.0, work=False)
    assert bench.take(11.0) is None
    assert bench.hosts == {}


def test_a_turn_that_sent_nothing_frees_the_address_at_once() -> None:
    """Another host of the address need not wait for a request that never was."""
    bench = Workbench(ip_pause_seconds=0.5)
    first = _free(bench, "a", "10.0.0.1")
    second = _free(bench, "b", "10.0.0.1")

    bench.release(first, 0.0, 0.0, work=False)

    turn = bench.take(0.0)
    assert turn is not None
    assert turn.host is second


def test_after_a_restart_every_address_rests_once() -> None:
    """What the process before us asked in its last moment is unknown."""
    bench = Workbench(ip_pause_seconds=0.5, ips_free_from=10.5)
    host = _free(bench, "a", "10.0.0.1", now=10.0)

    assert host.stage == Stage.IN_LINE
    assert bench.take(10.4) is None
    assert bench.take(10.5) is not None


def test_a_host_without_an_address_ends_its_turn_at_once() -> None:
    """Also right after a restart: from a line it would come back as if it had an address."""
    bench = Workbench(ip_pause_seconds=0.5, ips_free_from=10.5)
    host = _free(bench, "a", f"{UNRESOLVED}a", now=10.0)

    assert host.stage == Stage.IN_FLIGHT
    host.address_until = 0.0
    bench.ended(host, 10.0, 10.1, work=True)
    again = bench.take(10.1)
    assert again is not None
    assert again.address == ""
    assert bench.found(host, f"{UNRESOLVED}a", 0.0, 10.1) is not None


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), hosts=st.integers(1, 12), addresses=st.integers(1, 5))
def test_law_no_turn_before_its_time_and_no_idle_wait(seed: int, hosts: int, addresses: int) -> None:
    """For any schedule of answers, failures and moved addresses: both clocks hold, and what is free is served."""
    rng = random.Random(seed)
    bench = Workbench(ip_pause_seconds=0.5)
    now = 0.0
    host_free: dict[str, float] = {}
    ip_free: dict[str, float] = {}
    flying: dict[str, Host] = {}
    everyone = [Host(f"h{i}") for i in range(hosts)]
    for host in everyone:
        bench.add(host)
    for _ in range(120):
        while (turn := bench.take(now)) is not None:
            started = turn.host if turn.address else None
            if started is None:
                address = f"ip{rng.randrange(addresses)}"
                found = bench.found(turn.host, address, now + rng.choice([1.0, 1e9]), now)
                started = found.host if found else None
            if started is not None:
                assert now >= host_free.get(started.name, 0.0)
                assert now >= ip_free.get(started.address, 0.0)
                assert started.address not in {other.address for other in flying.values()}
                flying[started.name] = started
        busy = {host.address for host in flying.values()}
        for host in everyone:
            if host.name not in flying and host.work:
                wakes_later = host.next_free > now
                blocked = host.address in busy or ip_free.get(host.address, 0.0) > now
                assert wakes_later or blocked or gives_way_until(bench.ips, host) > now, "a free host waits for nothing"
        if flying and rng.random() < 0.7:
            host = flying.pop(rng.choice(sorted(flying)))
            delay = rng.choice([0.0, 0.1, 1.0, 5.0])
            if rng.random() < 0.2:
                bench.release(host, now, now + delay, work=True)
                host_free[host.name] = now + delay
            else:
                bench.ended(host, now, now + delay, work=True)
                host_free[host.name] = now + delay
                ip_free[host.address] = now + 0.5
        else:
            wake = bench.wake_at()
            now = max(now, wake) if wake is not None else now
            now += rng.choice([0.0, 0.0, 0.05, 0.7])
