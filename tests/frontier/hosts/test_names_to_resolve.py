"""Hosts that other domains name: looked up in that domain's turn, in memory no sooner, refused beyond its budget."""

from __future__ import annotations

import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.ip_clocks import UNRESOLVED
from crawlerproject.frontier.leasing import Lookup
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_SEED
from crawlerproject.rules.traps import budgets
from crawlerproject.rules.url.urls import parse
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

AT_ONCE = 100
BUDGET = 400


def names(bench: Bench, *hosts: str, by: str = "evil.test") -> int:
    """A page of another domain links to the front pages of these hosts; how many were queued."""
    via = f"http://www.{by}/"
    found = [DiscoveredUrl(parse(f"http://{host}/"), 1, "L", via, 10, FLAG_EXTERNAL) for host in hosts]
    return bench.frontier.add(found, bench.now)


def invented(count: int, first: int = 0) -> list[str]:
    """Domains that do not exist."""
    return [f"invented{number}.example" for number in range(first, first + count)]


def look_up(bench: Bench, *live: str) -> list[str]:
    """Look up all hosts whose turn it is, and fetch what they have: those in ``live`` exist."""
    asked = []
    while (turn := bench.frontier.leasing.next(bench.now)) is not None:
        if not isinstance(turn, Lookup):  # of a host that was found before
            bench.answer(turn)
            continue
        host: Host = turn.host
        asked.append(host.name)
        found = host.name in live
        address = f"address of {host.name}" if found else UNRESOLVED + host.name
        lease = bench.frontier.leasing.looked_up(host, address, 1e12 if found else 0.0, bench.now)
        assert lease is not None
        bench.answer(lease, 200 if found else None, reason=Reason.FETCHED if found else Reason.DNS_NOT_FOUND)
    return asked


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer names than ten thousand."""
    monkeypatch.setattr(budgets, "FIRST_NAMES", BUDGET)


def test_names_that_must_wait_are_on_disk() -> None:
    """Of a thousand a hundred are in memory; the others come from the disk at their pace, and none is lost."""
    bench = Bench(MemoryStore())
    assert names(bench, *invented(1_000)) == 1_000

    assert len(bench.frontier.workbench.hosts) == AT_ONCE + 1
    asked = look_up(bench)
    assert len(asked) == AT_ONCE + 1
    bench.commit()
    began = bench.now
    while len(asked) < 1_000:
        bench.now += 1.0
        asked += look_up(bench)
        assert len(asked) <= AT_ONCE + 2 + 8.5 * (bench.now - began)
        assert bench.now - began < 150.0
    assert len(set(asked)) == 1_000


def test_live_names_come_as_fast_as_they_are_looked_up() -> None:
    """After the first ones a long list of sites that exist is in no line."""
    bench, sites = Bench(MemoryStore()), [f"site{number}.example" for number in range(1_000)]
    asked = []
    for first in range(0, 1_000, 200):
        names(bench, *sites[first : first + 200], by="directory.test")
        asked += look_up(bench, *sites)
        bench.commit()
    began = bench.now
    while len(asked) < 1_000:
        bench.now += 0.5
        asked += look_up(bench, *sites)
    assert bench.now - began < 20.0


@pytest.mark.usefixtures("small_budget")
def test_beyond_its_budget_a_domain_names_no_host_more() -> None:
    """Other domains do, hosts that are known stay so, and what is found later earns new ones."""
    bench = Bench(MemoryStore())
    assert names(bench, *invented(BUDGET + 50)) == BUDGET
    assert names(bench, *invented(50, first=BUDGET)) == 0
    assert bench.frontier.state.refused.take() == {Reason.TOO_MANY_NAMES: 100}

    assert names(bench, f"invented{BUDGET}.example", by="good.test") == 1
    assert bench.add("http://invented0.example/page") == 1
    live = invented(5)
    assert set(look_up(bench, *live)) > set(live)
    assert names(bench, *invented(80, first=BUDGET + 1)) == 5 * (budgets.EARNED_NAMES + 1)


@pytest.mark.usefixtures("small_budget")
def test_a_budget_survives_a_restart() -> None:
    """It is stored once there is something to store."""
    store = MemoryStore()
    bench = Bench(store)
    names(bench, *invented(BUDGET))
    bench.frontier.state.apply(bench.frontier.state.take_changes(), bench.frontier.names.facts())

    again = Bench(store, now=bench.now + 10)

    assert names(again, *invented(10, first=BUDGET)) == 0
    again.now += 60.0
    live = invented(BUDGET)
    assert look_up(again, *live)
    assert names(again, *invented(10, first=BUDGET)) == 10, "hosts of the run before that are found earn new ones"


@pytest.mark.parametrize("by", ["another domain", "a seed", "its own page"])
def test_a_host_that_waits_comes_at_once_when_another_names_it(by: str) -> None:
    """A site is not held up by a stranger who named it first, among many that do not exist."""
    bench = Bench(MemoryStore())
    names(bench, *invented(1_000), "shop.example")
    look_up(bench)
    bench.commit()
    assert "shop.example" not in bench.frontier.workbench.hosts

    if by == "another domain":
        names(bench, "shop.example", by="good.test")
    else:
        flags = FLAG_SEED if by == "a seed" else 0
        found = DiscoveredUrl(parse("http://shop.example/"), 1, "L", "http://shop.example/a", 10, flags)
        bench.frontier.add([found], bench.now)

    assert look_up(bench, "shop.example") == ["shop.example"]


def test_naming_again_does_not_help_who_has_named_too_much() -> None:
    """The same domain's further links to a host that waits leave it where it is."""
    bench = Bench(MemoryStore())
    names(bench, *invented(1_000), "shop.example")
    look_up(bench)
    bench.commit()

    names(bench, "shop.example")
    bench.frontier.add(
        [DiscoveredUrl(parse("http://shop.example/2"), 1, "L", "http://evil.test/", 10, FLAG_EXTERNAL)], bench.now
    )

    assert look_up(bench) == []
