"""Hosts that are paused or have had their share: never asked, never lost, and asked again when that is over."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from crawlerproject.frontier.hosts.host import Host, HostState
from crawlerproject.frontier.hosts.table import HostSuspensions
from crawlerproject.frontier.leasing import Lookup
from crawlerproject.inspection.host_table import host_state
from crawlerproject.reasons import Reason
from crawlerproject.rules.limits import Limits
from tests.frontier.conftest import Bench, drain
from tests.frontier.test_subrequests import Heard, known
from tests.stores.memory_store import MemoryStore

A, B = "http://a.test/", "http://b.test/"


def test_a_paused_host_keeps_its_queue_and_others_go_on(bench: Bench) -> None:
    """Nothing of it is counted as waiting, so that a crawl can end; let go on, all of it is fetched."""
    bench.seed(A, B)
    bench.add(*(f"{A}{number}" for number in range(3)))

    bench.frontier.pause_hosts({"a.test": "since now"}, bench.now)
    while_paused = drain(bench)
    waiting = bench.frontier.hosts.waiting_urls
    bench.add(f"{A}found-meanwhile")
    nothing = drain(bench)
    bench.frontier.pause_hosts({}, bench.now)

    assert (while_paused, waiting, nothing) == ([B], 0, [])
    assert sorted(drain(bench)) == sorted([A, *(f"{A}{number}" for number in range(3)), f"{A}found-meanwhile"])


def test_a_pause_between_the_look_up_and_the_answer(bench: Bench) -> None:
    """The resolver's answer leads to no request; a request that is on its way ends, and none follows."""
    bench.seed(A, B)
    first, second = bench.frontier.leasing.next(bench.now), bench.frontier.leasing.next(bench.now)
    assert isinstance(first, Lookup)
    assert isinstance(second, Lookup)
    bench.frontier.pause_hosts({first.host.name: "now"}, bench.now)

    assert bench.frontier.leasing.looked_up(first.host, "192.0.2.1", 1e12, bench.now) is None
    lease = bench.frontier.leasing.looked_up(second.host, "192.0.2.2", 1e12, bench.now)
    assert lease is not None
    bench.frontier.pause_hosts({first.host.name: "now", second.host.name: "now"}, bench.now)
    bench.answer(lease)

    assert drain(bench) == []
    bench.frontier.pause_hosts({}, bench.now)
    assert sorted(drain(bench)) == [A, B]


def test_all_ports_of_a_name_are_paused(bench: Bench) -> None:
    """The name is what the operator says, and one server stands behind it."""
    bench.seed(A, "http://a.test:8080/", "http://a.test:8081/", B)
    bench.frontier.pause_hosts({"a.test": "now"}, bench.now)
    assert drain(bench) == [B]

    bench.frontier.pause_hosts({}, bench.now)

    assert sorted(drain(bench)) == [A, "http://a.test:8080/", "http://a.test:8081/"]


def test_a_page_in_the_browser_gets_nothing_of_a_paused_host(bench: Bench) -> None:
    """What waits is refused with the word, and so is what is asked for then."""
    known(bench, A)
    waits, late = Heard(), Heard()
    assert bench.frontier.subrequests.ask(waits.subrequest(f"{A}x.js", bench.now + 60), bench.now) is None

    bench.frontier.pause_hosts({"a.test": "now"}, bench.now)
    bench.now += 30
    assert bench.next() is None

    assert waits.refused == [Reason.PAUSED]
    assert bench.frontier.subrequests.ask(late.subrequest(f"{A}y.js", bench.now + 60), bench.now) is Reason.PAUSED


@pytest.mark.parametrize(
    ("holds", "spent", "said"),
    [
        (HostSuspensions(Limits(pages=5)), {"pages": 5}, "max_pages_per_host=5"),
        (HostSuspensions(Limits(bytes=1000)), {"received_bytes": 1000}, "max_bytes_per_host=1000"),
        (HostSuspensions(Limits(seconds=60)), {"busy_seconds": 61.5}, "max_time_per_host=60"),
        (HostSuspensions(Limits(pages=9), {"a.test": Limits(pages=5)}), {"pages": 5}, "max_pages=5 of its seed"),
        (HostSuspensions(Limits(pages=9), {"b.test": Limits(pages=5)}), {"pages": 8}, ""),
        (HostSuspensions(), {"pages": 10**6}, ""),
    ],
)
def test_a_limit_is_named_as_it_was_written(holds: HostSuspensions, spent: dict[str, float], said: str) -> None:
    """That of every host, or that of its seed."""
    host = Host("a.test", 5.0)
    for name, value in spent.items():
        setattr(host, name, value)

    assert holds.limit_of(host) == said
    assert holds.why(host) == (HostState.LIMITED if said else "")


def test_a_host_that_has_had_its_share_waits_for_a_higher_one(bench: Bench) -> None:
    """Exactly so many pages; its state says so, over a restart too; a start with a higher limit goes on."""
    bench.frontier.hosts.suspensions = HostSuspensions(Limits(pages=2))
    bench.seed(*(f"{A}{number}" for number in range(5)))
    first = drain(bench)
    packed = bench.store.host("a.test")
    assert packed is not None
    kept = Host.unpack("a.test", packed)

    again = Bench(bench.store, now=bench.now + 10)
    again.frontier.hosts.suspensions = HostSuspensions(Limits(pages=2))
    nothing = drain(again)
    higher = Bench(bench.store, now=again.now + 10)
    higher.frontier.hosts.suspensions = HostSuspensions(Limits(pages=4))

    assert (len(first), nothing, len(drain(higher))) == (2, [], 2)
    assert host_state(kept, bench.now) == HostState.LIMITED
    assert (kept.pages, kept.rows) == (2, 3)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_paused_when_nothing_is_lost(seed: int) -> None:
    """Pauses, resumes, links, restarts and crashes in any order, with more hosts than memory has room for."""
    rng = random.Random(seed)
    store = MemoryStore()
    bench = Bench(store, max_hosts_in_memory=3)
    urls, paused, fetched = set[str](), dict[str, str](), Counter[str]()
    for step in range(120):
        act = rng.random()
        if act < 0.15:
            more = [f"http://h{rng.randrange(8)}.test/{step}-{number}" for number in range(3)]
            bench.add(*more)
            urls.update(more)
        elif act < 0.35:
            name = f"h{rng.randrange(8)}.test"
            paused = dict.fromkeys({*paused} ^ {name}, "now")
            bench.frontier.pause_hosts(paused, bench.now)
        elif act < 0.4:
            crashed = rng.random() < 0.5
            if not crashed:
                bench.commit()
            bench = Bench(store, now=bench.now + 1, clean=not crashed, max_hosts_in_memory=3)
            bench.frontier.pause_hosts(paused, bench.now)
        lease = bench.next()
        if lease is not None:
            assert lease.host.name not in paused
            fetched[lease.row.url] += 1
            bench.answer(lease)
        if rng.random() < 0.5:
            bench.commit()
        bench.now += rng.random() * 4
    bench.frontier.pause_hosts({}, bench.now)
    fetched.update(drain(bench))

    assert {url for url in fetched if not url.endswith("/robots.txt")} == urls
    assert bench.frontier.hosts.waiting_urls == bench.frontier.state.leased == 0
    assert HostState.PAUSED not in {host.state for host in bench.frontier.workbench.hosts.values()}


def test_a_pause_that_ends_while_the_queue_is_loaded_counts_each_url_once(
    bench: Bench, again: Callable[..., Bench]
) -> None:
    """The host is taken up for it before the loading comes to it."""
    bench.seed(A, B)
    bench.frontier.pause_hosts({"a.test": "now"}, bench.now)
    bench.commit()
    later = again(bench.store, load=False)
    later.frontier.hosts.suspensions.paused = {"a.test": "now"}
    assert later.frontier.hosts.loading

    later.frontier.pause_hosts({}, later.now)
    while later.frontier.load_some(100):
        pass

    assert later.frontier.hosts.waiting_urls == 2
    assert +later.frontier.hosts.held == {}
    assert later.frontier.hosts.held.total() == 0
    assert sorted(drain(later)) == sorted([A, B])
