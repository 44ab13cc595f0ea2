"""Sitemaps in the frontier: a budget that what they name must earn, stored, and no way to make us fetch anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crawlerproject.frontier.learned.models import TrapModel
from crawlerproject.frontier.passage import DiscoveredUrl, Lease, Visit
from crawlerproject.parse.links import entries_of_feed, entries_of_sitemap, sitemaps_of_robots
from crawlerproject.reasons import Reason
from crawlerproject.rules.feeds.feeds import Feed
from crawlerproject.rules.feeds.xml_entries import Entry
from crawlerproject.rules.robots.policy import parse_robots
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_LISTED, FLAG_RECRAWL, FLAG_ROBOTS, FLAG_SITEMAP
from crawlerproject.rules.traps.template_yield import FIRST_LISTS, FIRST_NAMED_LISTS, FIRST_PAGES
from crawlerproject.rules.url.urls import Address, parse
from crawlerproject.stores.protocols import Changes, FrontierStore, QueuedPage
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

SITE = "http://a.org"


class Web:
    """A crawl of one host whose sitemaps list pages; ``new`` tells which pages have a text of their own."""

    def __init__(self, new: Callable[[int], bool], store: FrontierStore | None = None, now: float = 1000.0) -> None:
        store = store or MemoryStore()
        self.model = TrapModel(store)
        self.bench = Bench(store, now=now, traps=self.model, max_urls=100_000)
        self.new = new
        self.maps: list[str] = []
        self.pages: list[str] = []

    def sitemaps(self, count: int, flags: int = FLAG_SITEMAP) -> int:
        """Queue so many sitemaps of an index."""
        addresses = (parse(f"{SITE}/map{number}.xml.gz") for number in range(count))
        found = [DiscoveredUrl(address, 0, "M", SITE + "/index.xml", 2, flags, SITE) for address in addresses]
        return self.bench.frontier.add(found, self.bench.now)

    def crawl(self) -> None:
        """Answer all that is asked; each sitemap lists the page of its number."""
        bench = self.bench
        while bench.frontier.hosts.waiting_urls:
            lease = bench.next()
            if lease is None:
                bench.now = max(bench.now + 0.1, bench.frontier.workbench.wake_at() or 0.0)
            else:
                self._answer(lease)
            bench.commit()

    def _answer(self, lease: Lease) -> None:
        row = lease.row
        number = int("0" + "".join(filter(str.isdigit, row.url)))
        found: list[DiscoveredUrl] = []
        marks: tuple[int, ...] = ()
        if row.flags & FLAG_SITEMAP:
            self.maps.append(row.url)
            found = [DiscoveredUrl(parse(f"{SITE}/p/{number}"), 1, "MM", row.url, 6, FLAG_LISTED)]
            self.bench.frontier.add(found, self.bench.now)
        elif not row.flags & FLAG_ROBOTS:
            self.pages.append(row.url)
            marks = (number + 1000 if self.new(number) else 1,)
        self.bench.answer(lease)
        self.model.learn(visit(row, found, marks), self.bench.now)
        for each in self.model.models:
            self.bench.store.apply(Changes(facts=each.facts()))
            each.stored(Changes(), [])


def visit(row: QueuedPage, found: list[DiscoveredUrl], marks: tuple[int, ...] = (), *, is_feed: bool = False) -> Visit:
    """A visit to a page of the host that was read."""
    return Visit(row, Reason.FETCHED, 200, b"\0" * 20, marks=marks, is_feed=is_feed, found=found)


def test_an_honest_index_of_a_thousand_is_read_whole() -> None:
    """Each sitemap with one new page: the first ones on trust, then in turns with what they name."""
    web = Web(lambda number: True)
    assert web.sitemaps(1000) == 1000
    web.crawl()
    assert len(web.maps) == len(set(web.maps)) == 1000
    assert len(web.pages) == 1000
    assert not web.bench.frontier.state.refused.counts


def test_one_page_in_ten_is_enough() -> None:
    """As for templates."""
    web = Web(lambda number: number % 10 == 0)
    web.sitemaps(300)
    web.crawl()
    assert len(web.maps) == 300


def test_an_index_that_invents_is_left_alone() -> None:
    """Nothing new but one text: the trust, what that earned, and the budget of the pages' template."""
    web = Web(lambda number: False)
    web.sitemaps(998)
    web.crawl()
    assert len(web.maps) == FIRST_LISTS + 10
    assert len(web.pages) <= FIRST_PAGES
    assert web.bench.frontier.state.refused.counts[Reason.SITEMAP_BUDGET] == 998 - len(web.maps)


def test_a_restart_begins_no_new_budget() -> None:
    """What was fetched, earned and queued is stored; a recrawl of known sitemaps is not refused."""
    web = Web(lambda number: False)
    web.sitemaps(100)
    web.crawl()
    later = Web(lambda number: False, web.bench.store, web.bench.now)
    addresses = [parse(f"{SITE}/more{number}.xml") for number in range(50)]
    later.bench.frontier.add(
        [DiscoveredUrl(a, 0, "M", SITE, 2, FLAG_SITEMAP, SITE) for a in addresses], later.bench.now
    )
    later.crawl()
    assert later.maps == []
    assert later.bench.frontier.state.refused.counts == {Reason.SITEMAP_BUDGET: 50}
    filters: Any = later.bench.frontier.leasing._filters
    known = QueuedPage("a.org", addresses[0].key, addresses[0].url, 2, 1, 0, "M", "", 0, FLAG_SITEMAP | FLAG_RECRAWL)
    assert filters.refusal_again(known, later.bench.now) is None
    assert filters.refusal_again(known._replace(flags=FLAG_SITEMAP), later.bench.now) is Reason.SITEMAP_BUDGET


def test_the_queue_holds_so_many() -> None:
    """However many an index names, and however often."""
    web = Web(lambda number: False)
    assert web.sitemaps(FIRST_NAMED_LISTS + 7) == FIRST_NAMED_LISTS
    assert web.bench.frontier.state.refused.counts == {Reason.SITEMAP_BUDGET: 7}


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        (SITE + "/map.xml.gz", None),
        (SITE + "/map.txt", None),
        (SITE + "/film.mp4", Reason.EXTENSION),
        (SITE + "/disc.iso?map.xml", Reason.EXTENSION),
        (SITE + "/x/x/x/x/x.xml", Reason.TRAP),
    ],
)
def test_a_sitemap_passes_the_gates(url: str, refusal: Reason | None) -> None:
    """Only packed ones are exempt from the useless extensions."""
    web = Web(lambda number: True)
    filters: Any = web.bench.frontier.leasing._filters
    filters.skip_extensions = frozenset({"gz", "mp4", "iso"})
    filters._skip_of_sitemaps = frozenset({"mp4", "iso"})
    assert filters.refusal(DiscoveredUrl(parse(url), 0, "M", SITE, 2, FLAG_SITEMAP, SITE), 0.0) is refusal


def test_endless_feeds_end() -> None:
    """Each lists something else and names no page with a text of its own."""
    model = TrapModel(MemoryStore())
    for number in range(FIRST_LISTS + FIRST_PAGES + 200):
        url = f"{SITE}/feed?n={number}"
        if model.refuses("a.org", url, 0.0):
            break
        model.learn(visit(row(url), [], (number + 5,), is_feed=True), 0.0)
    assert FIRST_LISTS < number <= FIRST_LISTS + 200


def test_a_feed_that_names_new_pages_goes_on() -> None:
    """One new page in ten feeds."""
    model = TrapModel(MemoryStore())
    for number in range(1000):
        assert not model.refuses("a.org", f"{SITE}/feed?n={number}", 0.0)
        model.learn(visit(row(f"{SITE}/feed?n={number}"), [], (number + 5,), is_feed=True), 0.0)
        if number % 10 == 0:
            model.learn(visit(row(f"{SITE}/p/{number}", FLAG_LISTED), [], (number + 50_000,)), 0.0)


# --- what lists name ------------------------------------------------------------------------------


def row(url: str, flags: int = 0, note: str = "") -> QueuedPage:
    """A queued URL."""
    address = parse(url)
    return QueuedPage(address.host, address.key, url, 2, 1, 0, "P", "", 0, flags, note)


def flags_of(found: list[DiscoveredUrl]) -> list[int]:
    """Of each."""
    return [item.flags for item in found]


def test_sitemaps_in_other_domains_are_strangers() -> None:
    """A robots.txt may name them; whoever is asked for them did not."""
    rules = parse_robots(b"Sitemap: /1.xml\nSitemap: http://www.a.org/2.xml\nSitemap: http://victim.org/3.xml\n", "Bot")
    listed = sitemaps_of_robots(row(SITE + "/robots.txt", FLAG_ROBOTS, SITE), rules)
    assert flags_of(listed.found) == [FLAG_SITEMAP, FLAG_SITEMAP, FLAG_SITEMAP | FLAG_EXTERNAL]


def test_pages_of_a_cross_submitted_sitemap_are_their_hosts_own() -> None:
    """Its own robots.txt names the sitemap, wherever that is kept."""
    body = b"<urlset><url><loc>http://a.org/1</loc></url><url><loc>http://b.org/2</loc></url></urlset>"
    listed = entries_of_sitemap(row("http://files.org/a.xml", FLAG_SITEMAP | FLAG_EXTERNAL, SITE), body)
    assert [(found.address.url, found.flags) for found in listed.found] == [(SITE + "/1", FLAG_LISTED)]
    assert listed.foreign == 1


def test_a_feed_speaks_for_its_domain() -> None:
    """Entries elsewhere are a stranger's, and no word about when others' pages changed."""
    feed = Feed("rss", [Entry(SITE + "/1", 100.0), Entry("http://b.org/2", 100.0)])
    listed = entries_of_feed(row(SITE + "/feed"), feed, "L")
    assert flags_of(listed.found) == [FLAG_LISTED, FLAG_EXTERNAL]
    assert [address.url for address, _ in listed.changed] == [SITE + "/1"]


def test_a_sitemap_for_a_sibling_is_not_charged() -> None:
    """What its pages yield is known at the other host; one that lists nothing is."""
    model = TrapModel(MemoryStore())
    kept = row("http://maps.a.org/1.xml", FLAG_SITEMAP, "http://www.a.org")
    address: Address = parse("http://www.a.org/1")
    for _ in range(100):
        model.learn(visit(kept, [DiscoveredUrl(address, 1, "M", kept.url, 6)]), 0.0)
    assert not model.refuses_list("maps.a.org", 0.0)
    for _ in range(FIRST_LISTS):
        model.learn(visit(kept, []), 0.0)
    assert model.refuses_list("maps.a.org", 0.0)
