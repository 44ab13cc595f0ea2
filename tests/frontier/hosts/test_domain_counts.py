"""Hosts of one registered domain."""

from __future__ import annotations

from crawlerproject.frontier.hosts.names_and_domains import DomainHostCounts
from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import FLAG_SEED
from crawlerproject.rules.traps.budgets import PAGES_A_HOST
from crawlerproject.stores.protocols import Changes, HostFact
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore


def bench_of(store: MemoryStore, max_hosts: int = 20) -> Bench:
    """A frontier that takes up so many hosts of a domain."""
    bench = Bench(store)
    bench.frontier.domains._max_hosts = max_hosts
    return bench


def commit(bench: Bench) -> None:
    """One commit, with the counts of domains."""
    bench.frontier.state.apply(bench.frontier.state.take_changes(), bench.frontier.domains.facts())
    bench.frontier.domains.stored(Changes(), [])


def test_a_farm_is_cut_off_and_an_innocent_domain_is_not() -> None:
    """One page names 500 hosts of one domain, and ten of others; none of the refused is in memory."""
    bench = bench_of(MemoryStore())
    farm = [f"http://h{number}.farm.example/p" for number in range(500)]

    assert bench.add(*farm, *(f"http://www.site{number}.example/p" for number in range(10))) == 30
    assert bench.frontier.state.refused.take() == {Reason.TOO_MANY_HOSTS: 480}
    assert len(bench.frontier.workbench.hosts) == 30


def test_pages_of_hosts_that_were_taken_up_are_queued() -> None:
    """The bound is one of hosts: what is known goes on, over other ports too."""
    bench = bench_of(MemoryStore())
    bench.add(*(f"http://h{number}.farm.example/p" for number in range(30)))

    assert bench.add("http://h3.farm.example/more", "http://h3.farm.example:8080/", "http://h29.farm.example/") == 2


def test_a_name_counts_once_whatever_its_ports() -> None:
    """The ports of a name are bounded by themselves."""
    bench = bench_of(MemoryStore())
    bench.add(*(f"http://h{number}.farm.example:{port}/p" for number in range(4) for port in (81, 82, 83)))
    bench.add(*(f"http://h{number}.farm.example/p" for number in range(4)))

    assert bench.frontier.domains.of("farm.example").hosts == 4


def test_the_operators_seeds_are_taken_up() -> None:
    """Whatever their number; they count."""
    bench = bench_of(MemoryStore())
    assert bench.seed(*(f"http://h{number}.farm.example/p" for number in range(30))) == 30

    assert bench.add("http://more.farm.example/", flags=0) == 0
    assert bench.add("http://more.farm.example/", flags=FLAG_SEED) == 1


def test_new_texts_earn_hosts() -> None:
    """A site that shows pages of its own on its names grows with them."""
    bench = bench_of(MemoryStore())
    bench.add(*(f"http://h{number}.site.example/p" for number in range(30)))
    for number in range(3 * PAGES_A_HOST):
        bench.frontier.domains.yielded(f"h{number % 20}.site.example")

    assert bench.add(*(f"http://n{number}.site.example/p" for number in range(30))) == 3


def test_a_restart_forgets_no_big_domain() -> None:
    """The counts are facts of the store; hosts that are known there are known."""
    store = MemoryStore()
    bench = bench_of(store)
    bench.add(*(f"http://h{number}.farm.example/p" for number in range(30)))
    commit(bench)

    again = bench_of(store)

    assert again.add(*(f"http://x{number}.farm.example/p" for number in range(30))) == 0
    assert again.add("http://h7.farm.example/more") == 1


def test_small_domains_cost_no_write() -> None:
    """Nearly all domains have a handful of hosts."""
    counts = DomainHostCounts(MemoryStore(), 1000)
    for number in range(10):
        counts.taken_up(f"h{number}.small.example")
    assert counts.facts() == []

    for number in range(10, 20):
        counts.taken_up(f"h{number}.small.example")
    assert [name for name, _ in counts.facts()] == [HostFact.DOMAIN + "small.example"]
