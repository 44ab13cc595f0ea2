"""Sub-requests as leases: robots.txt, clocks and addresses hold for them as for pages."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from crawlerproject.frontier.frontier_state import HostOwnership
from crawlerproject.frontier.passage import Lease
from crawlerproject.frontier.subrequests import Subrequest
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import QueuedPage
from tests.frontier.conftest import Bench, next_of
from tests.stores.memory_store import MemoryStore

PAGE = QueuedPage("app.test", parse("http://app.test/").key, "http://app.test/", 10, 1, 3, "LLL", "")


class Heard:
    """What a page heard of its sub-request."""

    def __init__(self) -> None:
        self.refused: list[Reason] = []
        self.granted = 0
        self.answers: list[Any] = []

    def subrequest(self, url: str, until: float, *, own: bool = False) -> Subrequest:
        """A sub-request that reports here."""
        return Subrequest(
            parse(url),
            PAGE,
            until,
            own,
            {},
            "",
            10.0,
            self.refused.append,
            lambda: setattr(self, "granted", self.granted + 1),
            self.answers.append,
        )


def known(bench: Bench, *urls: str, rules: bytes = b"") -> Lease:
    """A host whose robots.txt and first page have been fetched."""
    bench.seed(*urls)
    bench.through_robots(rules)
    lease = next_of(bench)
    bench.answer(lease)
    bench.commit()
    return lease


def test_a_sub_request_waits_for_its_hosts_pause(bench: Bench) -> None:
    """It is leased no earlier than a page would be, with the pause that is promised, and starts the clock anew."""
    host, heard = known(bench, "http://cdn.test/").host, Heard()

    assert bench.frontier.subrequests.ask(heard.subrequest("http://cdn.test/a.js", bench.now + 30), bench.now) is None
    assert bench.next() is None
    lease = next_of(bench)

    assert bench.now >= host.pace_free
    assert (lease.row.url, lease.row.hops, lease.row.via, lease.row.depth) == ("http://cdn.test/a.js", "E", PAGE.url, 4)
    assert lease.delay_seconds == host.delay_seconds
    assert lease.subrequest is not None
    assert not lease.stored
    bench.answer(lease)
    assert host.next_free >= bench.now + host.delay_seconds
    assert bench.frontier.state.leased == 0


class ShortLease(HostOwnership):
    """Of a worker whose leases may end too soon for an answer."""

    sole = False
    soon = False

    def may_ask(self, host: str) -> bool:
        return not self.soon


def test_a_lease_that_is_soon_renewed_refuses_nothing() -> None:
    """Until then a sub-request waits, as pages do: without its script a page would lack links."""
    owner, heard = ShortLease(), Heard()
    bench = Bench(MemoryStore(), ownership=owner)
    known(bench, "http://cdn.test/")
    wait = heard.subrequest("http://cdn.test/a.js", bench.now + 60)

    owner.soon = True
    assert bench.frontier.subrequests.ask(wait, bench.now) is None
    bench.now += 30
    assert bench.next() is None
    owner.soon = False
    assert next_of(bench).subrequest is wait
    assert heard.refused == []


def test_robots_txt_comes_first_and_is_obeyed(bench: Bench) -> None:
    """Of a host that was never met; what it forbids is refused, before and after it is known."""
    heard = Heard()
    bench.frontier.subrequests.ask(heard.subrequest("http://cdn.test/private/a.js", bench.now + 60), bench.now)
    robots = next_of(bench)
    assert robots.row.kind.is_robots

    bench.answer(robots, body=b"User-agent: *\nDisallow: /private/\n")
    bench.commit()
    bench.now = robots.host.next_free

    assert bench.next() is None
    assert heard.refused == [Reason.ROBOTS]
    again = heard.subrequest("http://cdn.test/private/b.js", bench.now + 60)
    assert bench.frontier.subrequests.ask(again, bench.now) is Reason.ROBOTS


def test_a_robots_txt_that_cannot_be_had_means_no(bench: Bench) -> None:
    """Nothing else is asked of the host, and what is wanted of it later is refused at once."""
    heard = Heard()
    bench.frontier.subrequests.ask(heard.subrequest("http://cdn.test/a.js", bench.now + 20), bench.now)
    bench.answer(next_of(bench), 500)
    bench.commit()

    refusal = bench.frontier.subrequests.ask(heard.subrequest("http://cdn.test/b.js", bench.now + 20), bench.now)

    assert refusal is Reason.ROBOTS_UNREACHABLE
    assert bench.next() is None
    bench.now += 400
    assert bench.next() is None
    assert (heard.refused, heard.granted) == ([Reason.RENDER_PACE], 0)


def test_what_cannot_be_had_in_time_is_refused_at_once(bench: Bench) -> None:
    """At five seconds a request, ten seconds are enough for two of forty; the host is asked no faster for them."""
    host, heard = known(bench, "http://cdn.test/").host, Heard()
    bench.now = host.next_free
    until = bench.now + 10.4

    refusals = [
        bench.frontier.subrequests.ask(heard.subrequest(f"http://cdn.test/{number}.js", until), bench.now)
        for number in range(40)
    ]
    starts = []
    for _ in range(3):
        starts.append(bench.now)
        bench.answer(next_of(bench))
        bench.commit()
        bench.now = host.next_free

    assert refusals == [None] * 3 + [Reason.RENDER_PACE] * 37
    assert [later - sooner >= 5.0 for sooner, later in pairwise(starts)] == [True, True]


def test_what_comes_too_late_is_refused_in_its_turn(bench: Bench) -> None:
    """The host began to rest meanwhile."""
    host, heard = known(bench, "http://cdn.test/", "http://cdn.test/2").host, Heard()
    bench.now = host.next_free
    lease = next_of(bench)
    bench.frontier.subrequests.ask(heard.subrequest("http://cdn.test/a.js", bench.now + 20), bench.now)
    bench.answer(lease, 429, retry_after_seconds=500.0)
    bench.commit()

    assert bench.next() is None
    bench.now = host.next_free
    next_of(bench)

    assert heard.refused == [Reason.RENDER_PACE]
    late = heard.subrequest("http://cdn.test/b.js", bench.now - 1)
    assert bench.frontier.subrequests.ask(late, bench.now) is Reason.RENDER_PACE


def test_names_at_one_address_are_asked_one_at_a_time(bench: Bench) -> None:
    """Two hosts of one page and a plain page's, all at one address: never two at once, and its pause between them."""
    heard = Heard()
    for name in ("one", "two", "three"):
        bench.seed(f"http://{name}.test/")
    for name in ("one", "two"):
        bench.frontier.subrequests.ask(heard.subrequest(f"http://{name}.test/a.js", bench.now + 600), bench.now)
    flying: Lease | None = None
    ended, asked = 0.0, []
    for _ in range(400):
        turn = bench.frontier.leasing.next(bench.now)
        if turn is not None and not isinstance(turn, Lease):
            turn = bench.frontier.leasing.looked_up(turn.host, "192.0.2.7", 1e12, bench.now)
        if turn is not None:
            assert flying is None, "two requests at one address"
            assert bench.now >= ended + 0.5, "its pause was not kept"
            flying = turn
            asked.append(turn.row.url)
        bench.now += 0.1
        if flying is not None:
            bench.answer(flying)
            bench.commit()
            flying, ended = None, bench.now

    assert {url for url in asked if not url.endswith("robots.txt")} == {
        "http://one.test/",
        "http://two.test/",
        "http://three.test/",
        "http://one.test/a.js",
        "http://two.test/a.js",
    }


@pytest.mark.parametrize("own", [True, False])
def test_another_sites_page_comes_behind_the_hosts_own(bench: Bench, *, own: bool) -> None:
    """A host's own pages are not held up by pages elsewhere; what its own site's page needs goes first."""
    host, heard = known(bench, *(f"http://cdn.test/{number}" for number in range(5))).host, Heard()
    for number in range(3):
        subrequest = heard.subrequest(f"http://cdn.test/{number}.js", bench.now + 300, own=own)
        assert bench.frontier.subrequests.ask(subrequest, bench.now) is None

    kinds = ""
    for _ in range(6):
        lease = next_of(bench)
        kinds += lease.row.hops
        bench.answer(lease)
        bench.commit()
        bench.now = host.next_free

    assert kinds == ("EEELLL" if own else "LLLLEE")


def test_a_slow_file_of_another_site_does_not_cost_the_page_its_others(bench: Bench) -> None:
    """They wait for the pause that such an answer asks for, which is not the pause of the host's own pages."""
    host, heard = known(bench, "http://cdn.test/").host, Heard()
    for number in range(3):
        assert (
            bench.frontier.subrequests.ask(heard.subrequest(f"http://cdn.test/{number}.js", bench.now + 60), bench.now)
            is None
        )

    asked = []
    for _ in range(3):
        lease = next_of(bench)
        asked.append((lease.row.url, bench.now))
        bench.answer(lease, ttfb_seconds=1.2)

    assert [url for url, _ in asked] == [f"http://cdn.test/{number}.js" for number in range(3)]
    assert all(after - before >= 12.0 for (_, before), (_, after) in pairwise(asked))
    assert (heard.refused, host.delay_seconds) == ([], 5.0)


def test_a_closed_door_is_waited_for_by_pages_that_can(bench: Bench) -> None:
    """The others hear of it at once: as it closes, and when they ask; what the page's own site wants goes through."""
    host, short, long, own = known(bench, "http://cdn.test/").host, Heard(), Heard(), Heard()
    subrequests = bench.frontier.subrequests
    for heard, seconds in ((long, 200), (short, 30), (long, 200)):
        assert subrequests.ask(heard.subrequest("http://cdn.test/a.js", bench.now + seconds), bench.now) is None
    bench.answer(next_of(bench), 429, reason=Reason.RATE_LIMITED, retry_after_seconds=60.0)
    opens = host.door.until

    assert (short.refused, long.refused) == ([Reason.EXTERNAL_DOOR], [])
    bench.now = host.rest_until + 1
    host.door = host.door._replace(until=opens + 20)  # as after one more
    opens += 20
    assert subrequests.ask(short.subrequest("http://cdn.test/b.js", bench.now + 5), bench.now) is Reason.EXTERNAL_DOOR
    assert subrequests.ask(long.subrequest("http://cdn.test/c.js", bench.now + 200), bench.now) is None
    assert bench.next() is None
    assert subrequests.ask(own.subrequest("http://cdn.test/d.js", bench.now + 5, own=True), bench.now) is None
    first = next_of(bench)
    assert (first.row.url, bench.now < opens) == ("http://cdn.test/d.js", True)
    bench.answer(first)
    bench.commit()
    second = next_of(bench)
    assert second.row.url == "http://cdn.test/a.js"
    assert bench.now >= opens


def test_who_waits_at_a_door_holds_up_no_page_of_the_host(bench: Bench) -> None:
    """Its queue goes on at its pace, and one that comes later does not wait either."""
    host, heard = known(bench, *(f"http://cdn.test/{number}" for number in range(3))).host, Heard()
    host.door = host.door._replace(until=bench.now + 100)
    opens = host.door.until
    assert bench.frontier.subrequests.ask(heard.subrequest("http://cdn.test/a.js", bench.now + 200), bench.now) is None

    for _ in range(2):
        lease = next_of(bench)
        assert (lease.row.hops, bench.now <= opens - 80) == ("L", True)
        bench.answer(lease)
        bench.commit()
    assert bench.next() is None
    bench.now += 10
    assert bench.next() is None
    bench.seed("http://cdn.test/late")
    assert next_of(bench).row.url == "http://cdn.test/late"
    assert bench.now < opens


def test_what_is_withdrawn_is_never_asked(bench: Bench) -> None:
    """The host is as it was: without work it is forgotten when its clock is free."""
    host, heard = known(bench, "http://cdn.test/").host, Heard()
    subrequest = heard.subrequest("http://cdn.test/a.js", bench.now + 30)
    bench.frontier.subrequests.ask(subrequest, bench.now)

    bench.frontier.subrequests.withdraw(subrequest)
    bench.frontier.subrequests.withdraw(subrequest)
    bench.now = host.next_free

    assert bench.next() is None
    assert (host.subrequests, host.work) == (0, False)
    bench.now += 10
    assert bench.next() is None
    assert "cdn.test" not in bench.frontier.workbench.hosts


def test_a_lease_that_sent_nothing_waits_again(bench: Bench) -> None:
    """Its address is another worker's: it is first in its host's line. One that is put back is refused."""
    host, heard = known(bench, "http://cdn.test/").host, Heard()
    bench.frontier.subrequests.ask(heard.subrequest("http://cdn.test/a.js", bench.now + 30), bench.now)
    lease = next_of(bench)

    bench.frontier.postpone(lease, bench.now, bench.now + 0.25)
    again = next_of(bench)
    assert again.row.url == lease.row.url
    bench.frontier.requeue(again, bench.now)

    assert heard.refused == [Reason.RENDER_PACE]
    assert host.subrequests == 0
    assert bench.frontier.state.leased == 0
