"""URLs that only other domains name: kept apart, asked last, the host's own once it names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crawlerproject.frontier.discovered import DiscoveredUrl, inventor
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.learned.learner import Visit
from crawlerproject.frontier.learned.traps import TrapModel
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.messages import Links, pack, unpack
from crawlerproject.frontier.politeness import FetchOutcome
from crawlerproject.parse.links import linked, navigated, redirected
from crawlerproject.reasons import Reason
from crawlerproject.rules.page.links import Link
from crawlerproject.rules.page.page import PageFacts
from crawlerproject.rules.traps.strangers import FIRST_NAMED, stranger_key
from crawlerproject.rules.traps.template_yield import FIRST_PAGES
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.memory import MemoryStore
from crawlerproject.stores.protocols import (
    FLAG_LISTED,
    FLAG_RENDER,
    FLAG_SEED,
    FLAG_SITEMAP,
    FLAG_STRANGER,
    QueuedPage,
)
from tests.frontier.conftest import Bench

SITE = "http://a.org"
EVIL = "http://www.evil.org/page"


@pytest.fixture
def bench() -> Bench:
    """A frontier that learns."""
    store = MemoryStore()
    return Bench(store, traps=TrapModel(store))


def strange(bench: Bench, *paths: str, via: str = EVIL, priority: int = 10) -> int:
    """Queue links of a page of another domain."""
    found = [DiscoveredUrl(parse(SITE + path), 1, "L", via, priority, FLAG_STRANGER) for path in paths]
    return bench.frontier.add(found, bench.now)


def own(bench: Bench, *paths: str, priority: int = 10) -> int:
    """Queue links of the host's own page."""
    return bench.frontier.add(
        [DiscoveredUrl(parse(SITE + path), 9, "L", SITE + "/", priority) for path in paths], bench.now
    )


def crawl(bench: Bench, status: int = 200) -> list[str]:
    """Answer all that is leased; the paths, robots.txt left out."""
    paths = []
    while bench.frontier.hosts.waiting_urls:
        lease = bench.next()
        if lease is None:
            wake = bench.frontier.workbench.wake_at()
            bench.now = max(bench.now + 0.1, wake or 0.0)
        else:
            if not lease.is_robots:
                paths.append(lease.row.url.removeprefix(SITE))
            bench.answer(lease, 200 if lease.is_robots else status)
        bench.commit()
    return paths


def test_what_the_host_names_comes_first(bench: Bench) -> None:
    """However deep, and whenever it was found."""
    strange(bench, "/evil", priority=1)
    own(bench, "/deep", priority=190)
    assert crawl(bench) == ["/deep", "/evil"]


def test_the_front_page_does_not_wait(bench: Bench) -> None:
    """What the host names begins there: with a query, or below it, a stranger may have made it up."""
    strange(bench, "/?q=1", "/evil", "/", priority=10)
    own(bench, "/deep", priority=190)
    assert crawl(bench) == ["/", "/deep", "/?q=1", "/evil"]


def test_a_url_is_queued_once_by_strangers(bench: Bench) -> None:
    """And not at all when the host has named it."""
    assert strange(bench, "/1", "/2", "/1") == 2
    assert strange(bench, "/1", via="http://other.org/") == 0
    own(bench, "/3")
    assert strange(bench, "/3") == 0


def test_what_the_host_names_later_is_its_own(bench: Bench) -> None:
    """Counted to the host, asked for once, and in its own turn."""
    strange(bench, "/1", "/2")
    assert own(bench, "/2", "/4") == 2
    host = bench.frontier.workbench.hosts["a.org"]
    assert host.known == 2
    assert crawl(bench) == ["/2", "/4", "/1"]
    assert not bench.frontier.state.refused.counts


def test_both_in_one_batch(bench: Bench) -> None:
    """In a fleet links of many pages come together: the host's own word counts, whichever comes first."""
    address = parse(SITE + "/1")
    both = [DiscoveredUrl(address, 1, "L", EVIL, 10, FLAG_STRANGER), DiscoveredUrl(address, 1, "L", SITE + "/", 10)]
    bench.frontier.add(both, bench.now)
    assert bench.frontier.workbench.hosts["a.org"].known == 1
    assert crawl(bench) == ["/1"]


def test_what_was_fetched_for_a_stranger_is_known(bench: Bench, again: Callable[..., Bench]) -> None:
    """Under its own key: neither the host's word nor another stranger's has it fetched again, also after a restart."""
    strange(bench, "/1")
    assert crawl(bench) == ["/1"]
    assert bench.store.page(parse(SITE + "/1").key) is not None
    later = again(bench.store, now=bench.now)
    assert own(later, "/1") == 0
    assert strange(later, "/1", via="http://other.org/") == 0


def test_strangers_do_not_use_up_a_hosts_budget(bench: Bench) -> None:
    """The bench's hosts may have 50 URLs; strangers of one domain name as many as they may, together 50 as well."""
    assert strange(bench, *(f"/evil/{number}" for number in range(FIRST_NAMED))) == 50
    assert own(bench, *(f"/own/{number}" for number in range(60))) == 50
    assert bench.frontier.state.refused.counts == {Reason.STRANGER: FIRST_NAMED - 50, Reason.BUDGET: 10}


def test_a_refused_url_may_still_be_named_by_its_host(bench: Bench) -> None:
    """The stranger's budget is spent when its turn comes: that is no word about the page."""
    model: Any = bench.frontier._issuer._gates._traps
    strange(bench, "/1")
    for number in range(FIRST_PAGES):
        model.learn(visit(f"/{number}", Reason.HTTP_ERROR, 404), 0.0)
    assert crawl(bench) == []
    assert bench.frontier.state.refused.counts == {Reason.STRANGER: 1}
    assert strange(bench, "/1") == 0
    assert own(bench, "/1") == 1
    assert crawl(bench) == ["/1"]


def test_a_failed_page_of_a_strangers_is_tried_again_as_such(bench: Bench) -> None:
    """With its inventor, and after what the host names."""
    strange(bench, "/1")
    bench.through_robots()
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, 500, reason=Reason.HTTP_ERROR)
    bench.commit()
    own(bench, "/2")
    assert crawl(bench) == ["/2", "/1"]


def visit(path: str, reason: Reason, status: int | None, flags: int = FLAG_STRANGER, **more: Any) -> Visit:
    """A visit to a page that a stranger named."""
    address = parse(SITE + path)
    row = QueuedPage(address.host, stranger_key(address.key), address.url, 0, 1, 1, "L", EVIL, 0, flags)
    return Visit(row, reason, status)._replace(**more)


def test_errors_teach_nothing_about_the_host() -> None:
    """A thousand dead links, hanging ones and ones that repeat: the template of the host stands."""
    model = TrapModel(MemoryStore())
    for number in range(1000):
        model.learn(visit(f"/article/{number}", Reason.HTTP_ERROR, 404), 0.0)
        model.learn(visit(f"/article/{number}", Reason.FIRST_BYTE_TIMEOUT, None), 0.0)
        model.learn(visit(f"/article/{number}", Reason.FETCHED, 200, marks=(5,)), 0.0)
    assert not model.refuses("a.org", SITE + "/article/7", 0.0)
    assert model.refuses_stranger("a.org", "evil.org", 0.0)


def test_a_hanging_page_costs_who_named_it() -> None:
    """A host that cannot be reached does not."""
    model = TrapModel(MemoryStore())
    for number in range(FIRST_PAGES):
        model.learn(visit(f"/{number}", Reason.CONNECT_REFUSED, None), 0.0)
    assert not model.refuses_stranger("a.org", "evil.org", 0.0)
    for number in range(FIRST_PAGES):
        model.learn(visit(f"/{number}", Reason.DISCONNECTED, None), 0.0)
    assert model.refuses_stranger("a.org", "evil.org", 0.0)


def test_a_text_that_a_stranger_had_shown_is_new_when_the_host_shows_it() -> None:
    """A stranger names every article at another address first: the articles themselves are no repeats."""
    model = TrapModel(MemoryStore())
    for number in range(1, 301):
        shown = visit(f"/article/{number}?x=1", Reason.FETCHED, 200, marks=(number,))
        model.learn(shown, 0.0)
        variant = Duplicate("exact", f"{SITE}/article/{number}?x=1")
        model.learn(visit(f"/article/{number}", Reason.FETCHED, 200, 0, marks=(number,), repeats=variant), 0.0)
    assert not model.refuses("a.org", SITE + "/article/7", 0.0)
    assert not model.refuses_stranger("a.org", "evil.org", 0.0)


@pytest.mark.parametrize(
    ("reason", "status", "counts"),
    [
        (Reason.HTTP_ERROR, 500, False),
        (Reason.FIRST_BYTE_TIMEOUT, None, True),
        (Reason.DISCONNECTED, None, True),
        (Reason.CONNECT_REFUSED, None, True),
        (Reason.DNS_NOT_FOUND, None, True),
    ],
)
def test_the_breaker_counts_a_host_that_does_not_answer(reason: Reason, status: int | None, counts: bool) -> None:
    """A dead host is asked no oftener because other sites link to it; its answers to such links count for nothing."""
    assert FetchOutcome(reason, status, stranger=True).counts is counts
    assert FetchOutcome(reason, status).counts


# --- who named it ---------------------------------------------------------------------------------


def row(url: str, flags: int = 0, note: str = "", via: str = EVIL) -> QueuedPage:
    """A queued URL."""
    address = parse(url)
    return QueuedPage(address.host, address.key, url, 7, 1, 1, "L", via, 0, flags, note)


def named_by(found: DiscoveredUrl) -> str:
    """The domain that is charged."""
    return inventor(found.address.host, found.via, found.flags, found.note)


def test_links_to_other_domains_are_strangers() -> None:
    """Other hosts of the same domain are not; people under one provider are (private suffixes)."""
    urls = ["http://a.org/x", "http://www.a.org/x", "http://b.org/x"]
    facts = PageFacts(links=[Link(parse(url), "L") for url in urls])
    assert [named_by(found) for found in linked(row("http://m.a.org/"), facts)] == ["", "", "a.org"]
    people = PageFacts(links=[Link(parse(f"http://{name}.github.io/"), "L") for name in ("one", "two")])
    assert [named_by(found) for found in linked(row("http://one.github.io/"), people)] == ["", "one.github.io"]


def test_a_redirect_is_the_redirecting_sites() -> None:
    """Into another domain; within its own it stays the stranger's who had it asked for; a seed's is the operator's."""
    target = parse("http://b.org/x")
    assert named_by(redirected(row(SITE + "/"), target)) == "a.org"
    within = redirected(row(SITE + "/", FLAG_STRANGER), parse("https://www.a.org/"))
    assert named_by(within) == "evil.org"
    further = redirected(row(within.address.url, within.flags, within.note, within.via), parse(SITE + "/y"))
    assert named_by(further) == "evil.org"
    out = redirected(row(further.address.url, further.flags, further.note, further.via), target)
    assert named_by(out) == "a.org"
    assert named_by(redirected(row(SITE + "/", FLAG_SEED), target)) == ""
    assert redirected(row(SITE + "/", FLAG_LISTED), parse(SITE + "/y")).flags == FLAG_LISTED


def test_where_scripts_wanted_to_go() -> None:
    """As redirects; a rendered page's note is no domain."""
    rendered = row(SITE + "/", FLAG_STRANGER | FLAG_RENDER, "x.warc.gz 1 2 3 4")
    found = navigated(rendered, ["http://b.org/", "/y"])
    assert [named_by(item) for item in found] == ["a.org", "evil.org"]


def test_a_moved_sitemap_keeps_whom_it_speaks_for() -> None:
    """And is charged to that one's domain when it leads to another's."""
    moved = redirected(row(SITE + "/map.xml", FLAG_SITEMAP, SITE), parse("http://victim.org/big.xml"))
    assert (moved.note, named_by(moved)) == (SITE, "a.org")


def test_it_travels_in_letters() -> None:
    """And letters of versions that knew of no strangers are read."""
    found = [DiscoveredUrl(parse(SITE + "/1"), 1, "L", EVIL, 9, FLAG_STRANGER, "evil.org")]
    assert unpack(pack(Links(found))) == Links(found)
    old = b'["links",[["http://a.org/1",1,"L","http://b.org/",9,0,""]]]'
    assert unpack(old) == Links([DiscoveredUrl(parse(SITE + "/1"), 1, "L", "http://b.org/", 9)])


def test_the_lease_of_a_strangers_page_names_the_page(bench: Bench) -> None:
    """Its key is the page's own for all who remember what came of it."""
    strange(bench, "/1")
    bench.through_robots()
    lease = bench.next()
    assert isinstance(lease, Lease)
    assert lease.row.page_key == parse(SITE + "/1").key != lease.row.key


def test_strangers_take_up_half_of_a_names_ports_and_of_a_domains_hosts(bench: Bench) -> None:
    """And no host twice, however many of its URLs they name."""
    ports = [DiscoveredUrl(parse(f"http://a.org:{9000 + n}/"), 1, "L", EVIL, 9, FLAG_STRANGER) for n in range(8)]
    assert bench.frontier.add(ports, bench.now) == 4
    assert bench.frontier.add([DiscoveredUrl(parse("http://a.org:8008/"), 1, "L", SITE, 9)], bench.now) == 1
    assert bench.frontier.state.refused.counts == {Reason.TOO_MANY_PORTS: 4}

    bench.frontier.domains._max_hosts = 10
    urls = [f"http://h{n}.b.org/{path}" for n in range(20) for path in "xyz"]
    named = [DiscoveredUrl(parse(url), 1, "L", EVIL, 9, FLAG_STRANGER) for url in urls]
    assert bench.frontier.add(named[:30], bench.now) == 15
    assert bench.frontier.add(named, bench.now) == 0
    more = [DiscoveredUrl(parse(f"http://h{n}.b.org/more"), 1, "L", EVIL, 9, FLAG_STRANGER) for n in range(20)]
    assert bench.frontier.add(more, bench.now) == 5
    own = [DiscoveredUrl(parse(f"http://own{n}.b.org/"), 1, "L", "http://b.org/", 9) for n in range(20)]
    assert bench.frontier.add(own, bench.now) == 5
