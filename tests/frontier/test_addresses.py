"""Hosts with several addresses, with addresses that change, and with a port that takes no connection."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlerproject.frontier.leasing import Lookup
from crawlerproject.frontier.passage import Lease
from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import FLAG_SEED
from crawlerproject.rules.url.scope import Scope
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

ONE, TWO = "192.0.2.1", "192.0.2.2"


def lease_at(bench: Bench, *addresses: str, seconds: float = 60.0) -> Lease | None:
    """The next lease, while every name has these addresses."""
    while isinstance(turn := bench.frontier.leasing.next(bench.now), Lookup):
        address = bench.frontier.leasing.address_for(turn.host, addresses, bench.now)
        lease = bench.frontier.leasing.looked_up(turn.host, address, bench.now + seconds, bench.now)
        if lease is not None:
            return lease
    return turn


def test_hosts_take_the_least_busy_of_their_addresses(bench: Bench) -> None:
    """Two hosts that share two addresses do not wait for each other; the third does."""
    bench.add("http://a.example/", "http://b.example/", "http://c.example/")

    first, second = lease_at(bench, ONE, TWO), lease_at(bench, ONE, TWO)

    assert first is not None
    assert second is not None
    assert {first.address, second.address} == {ONE, TWO}
    assert lease_at(bench, ONE, TWO) is None


def test_an_address_that_takes_no_connection_is_left_for_the_next(bench: Bench) -> None:
    """The host is asked again at its other address after its usual pause, its page not lost and its hour not begun."""
    bench.add("http://a.example/1")
    robots = lease_at(bench, ONE, TWO)
    assert robots is not None
    bench.answer(robots, None, reason=Reason.CONNECT_REFUSED)
    assert robots.host.next_free - bench.now < 6
    assert robots.host.failures == 0

    bench.now = robots.host.next_free
    again = lease_at(bench, ONE, TWO)

    assert again is not None
    assert again.row.url == "http://a.example/robots.txt"
    assert again.address != robots.address


def test_when_no_address_takes_a_connection_the_host_rests(bench: Bench) -> None:
    """All were tried once: then it is the host's failure, and it rests its hour."""
    bench.add("http://a.example/1")
    for _ in range(2):
        lease = lease_at(bench, ONE, TWO)
        assert lease is not None
        bench.answer(lease, None, reason=Reason.CONNECT_TIMEOUT)
        free, bench.now = lease.host.next_free - bench.now, lease.host.next_free

    assert free >= 3600
    assert lease is not None
    assert lease.host.failures == 1


def test_a_page_is_tried_at_the_next_address_too(bench: Bench) -> None:
    """A page whose connection was refused keeps its place in the queue's count."""
    bench.add("http://a.example/1")
    robots = lease_at(bench, ONE, TWO, seconds=1)
    assert robots is not None
    bench.answer(robots)
    bench.commit()
    bench.now = robots.host.next_free
    page = lease_at(bench, ONE, TWO)
    assert page is not None
    bench.answer(page, None, reason=Reason.CONNECT_REFUSED)
    bench.commit()

    bench.now = page.host.next_free
    again = lease_at(bench, ONE, TWO)

    assert again is not None
    assert again.row.url == page.row.url
    assert again.address != page.address


def test_an_address_that_changes_is_followed(bench: Bench) -> None:
    """When the name's time is over it is looked up again, and the new address's clock holds."""
    bench.add("http://a.example/1", "http://b.example/1")
    first = lease_at(bench, ONE, seconds=3)
    assert first is not None
    bench.answer(first)
    bench.commit()
    bench.now += 0.51
    other = lease_at(bench, TWO)
    assert other is not None
    bench.now = first.host.next_free

    assert lease_at(bench, TWO) is None
    bench.answer(other)
    bench.now += 0.51
    moved = lease_at(bench, TWO)
    assert moved is not None
    assert (moved.host, moved.address) == (first.host, TWO)


@pytest.mark.parametrize("reason", [Reason.CONNECT_REFUSED, Reason.CONNECT_TIMEOUT, Reason.TLS_FAILED])
def test_a_fresh_host_with_a_dead_https_is_asked_over_http(bench: Bench, reason: Reason) -> None:
    """Its first URL is https, the port is dead: its http pages are next after its usual pause, not after an hour."""
    bench.add("https://a.example/1", "https://a.example/2")
    bench.add("http://a.example/3")
    dead = bench.next()
    assert dead is not None
    assert dead.row.url == "https://a.example/robots.txt"
    bench.answer(dead, None, reason=reason)
    bench.commit()
    assert dead.host.next_free - bench.now < 6

    bench.now = dead.host.next_free
    robots = bench.next()
    assert robots is not None
    assert robots.row.url == "http://a.example/robots.txt"
    bench.answer(robots)
    bench.now = robots.host.next_free
    page = bench.next()
    assert page is not None
    assert page.row.url == "http://a.example/3"


def test_a_host_that_is_dead_on_both_ports_rests(bench: Bench) -> None:
    """One request over each, then the hour."""
    bench.add("https://a.example/1")
    bench.add("http://a.example/3")
    asked = []
    for _ in range(2):
        lease = bench.next()
        assert lease is not None
        asked.append(lease.row.url)
        bench.answer(lease, None, reason=Reason.CONNECT_REFUSED)
        bench.commit()
        free, bench.now = lease.host.next_free - bench.now, lease.host.next_free

    assert asked == ["https://a.example/robots.txt", "http://a.example/robots.txt"]
    assert free >= 3600


def test_a_seed_that_moves_takes_the_scope_along(again: Callable[..., Bench]) -> None:
    """example.com leads to www.example.com: its links belong to the crawl, also after a restart."""
    store = MemoryStore()
    bench = again(store, scope=Scope("host", ["example.com"]))
    assert bench.add("http://www.example.com/early") == 0

    bench.add("http://www.example.com/", depth=0, flags=FLAG_SEED)

    assert bench.add("http://www.example.com/a", "http://elsewhere.example/") == 1
    assert store.fact("scope") == b"www.example.com"
