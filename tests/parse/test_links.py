"""Where an answer leads: depth, discovery path, who named it."""

from __future__ import annotations

import pytest

from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.parse.links import (
    MAX_FILES,
    MAX_REDIRECTS,
    Listed,
    entries_of_feed,
    entries_of_sitemap,
    followed,
    hops_to,
    navigated,
    redirected,
    redirected_enough,
    sitemaps_of_robots,
)
from crawlerproject.rules.feeds.feeds import MAX_INDEX_DEPTH, read_feed
from crawlerproject.rules.page.page import PageFacts, read_html
from crawlerproject.rules.robots.policy import parse_robots
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_LISTED, FLAG_SEED, FLAG_SITEMAP
from crawlerproject.rules.url.urls import Address, parse
from crawlerproject.stores.protocols import QueuedPage

URL = "http://www.a.test/dir/page"


def row_of(
    url: str = URL, *, hops: str = "LL", via: str = "http://www.a.test/", flags: int = 0, note: str = ""
) -> QueuedPage:
    """A queue's row, two links from a seed."""
    address = parse(url)
    return QueuedPage(address.host, address.key, url, 10, 1, 2, hops, via, flags=flags, note=note)


def page(html: str, *, x_robots: list[str] | None = None) -> PageFacts:
    """What an HTML page says."""
    return read_html(html.encode(), url=URL, content_type="text/html", x_robots=x_robots or [], token="TestBot")


def address(url: str) -> Address:
    """A URL."""
    return parse(url)


def flags(found: list[DiscoveredUrl]) -> list[int]:
    """Of each."""
    return [item.flags for item in found]


def test_links_are_one_deeper_and_know_their_page() -> None:
    """In the page's order, each with its letter."""
    found = followed(row_of(), page("<a href=/1>1</a><a href=2>2</a><iframe src=/3></iframe>").links)

    assert [item.address.url for item in found] == [
        "http://www.a.test/1",
        "http://www.a.test/dir/2",
        "http://www.a.test/3",
    ]
    assert {(item.depth, item.via) for item in found} == {(3, URL)}
    assert {item.hops[:2] for item in found} == {"LL"}
    assert {len(item.hops) for item in found} == {3}


def test_links_to_other_domains_are_a_strangers_word() -> None:
    """Another host of the same domain is not a stranger's."""
    found = followed(
        row_of(), page("<a href=http://b.test/>1</a><a href=http://blog.a.test/>2</a><a href=/3>3</a>").links
    )

    assert flags(found) == [FLAG_EXTERNAL, 0, 0]


@pytest.mark.parametrize(
    "facts",
    [page("<meta name=robots content=nofollow><a href=/1>1</a>"), page("<a href=/1>1</a>", x_robots=["nofollow"])],
)
def test_nofollow_stops_all_links(facts: PageFacts) -> None:
    """By a meta element or by a header."""
    assert followed(row_of(), facts.links) == []


def test_discovery_paths_have_an_end() -> None:
    """The last fifty letters."""
    assert hops_to(row_of(hops="L" * 50), "R") == "L" * 49 + "R"
    assert hops_to(row_of(hops=""), "L") == "L"


def test_a_redirects_target_stands_for_the_page() -> None:
    """As deep, one place more urgent, and a seed if the page was one."""
    target = redirected(row_of(flags=FLAG_SEED), address("http://b.test/there"))

    assert (target.depth, target.priority, target.hops, target.via) == (2, 9, "LLR", URL)
    assert target.flags == FLAG_SEED  # the operator asked for it: no stranger did


def test_the_domain_that_redirects_names_the_target() -> None:
    """Within a domain the one that named the page goes on being asked about it."""
    elsewhere = redirected(row_of(), address("http://b.test/there"))
    assert (elsewhere.flags, elsewhere.note) == (FLAG_EXTERNAL, "")

    within = redirected(row_of(flags=FLAG_EXTERNAL, via="http://c.test/"), address("http://www.a.test/there"))
    assert (within.flags, within.note) == (FLAG_EXTERNAL, "c.test")

    listed = redirected(row_of(flags=FLAG_LISTED), address("http://www.a.test/there"))
    assert listed.flags == FLAG_LISTED


def test_a_sitemap_that_moves_keeps_whom_it_speaks_for() -> None:
    """Its note is the origin that declared it."""
    target = redirected(row_of(flags=FLAG_SITEMAP, note="http://www.a.test"), address("http://www.a.test/new.xml"))

    assert (target.flags, target.note) == (FLAG_SITEMAP, "http://www.a.test")


def test_redirects_in_a_row_end() -> None:
    """Ten; a link in between begins anew."""
    assert redirected_enough(row_of(hops="L" + "R" * MAX_REDIRECTS))
    assert not redirected_enough(row_of(hops="L" + "R" * (MAX_REDIRECTS - 1)))
    assert not redirected_enough(row_of(hops="R" * MAX_REDIRECTS + "L"))


def test_where_scripts_went_is_a_redirect() -> None:
    """Relative targets too; what is no URL of the web is left out."""
    found = navigated(row_of(), ["/next", "http://b.test/", "about:blank"])

    assert [(item.address.url, item.depth, item.hops) for item in found] == [
        ("http://www.a.test/next", 2, "LLR"),
        ("http://b.test/", 2, "LLR"),
    ]
    assert flags(found) == [0, FLAG_EXTERNAL]
    assert navigated(row_of(hops="R" * MAX_REDIRECTS), ["/next"]) == []


def list_row(url: str, *, hops: str = "M", note: str = "") -> QueuedPage:
    """A queue's row; ``note`` is the origin that declared it."""
    address = parse(url)
    return QueuedPage(address.host, address.key, url, 10, 1, 0, hops, "", flags=FLAG_SITEMAP, note=note)


def urls(listed: Listed) -> list[str]:
    """What a list names."""
    return [item.address.url for item in listed.found]


def sitemap(*pages: str, index: bool = False) -> bytes:
    """A sitemap of these pages, or an index of these sitemaps."""
    outer, inner = ("sitemapindex", "sitemap") if index else ("urlset", "url")
    entries = "".join(f"<{inner}><loc>{url}</loc><lastmod>2026-01-02</lastmod></{inner}>" for url in pages)
    return f"<{outer}>{entries}</{outer}>".encode()


def test_robots_txt_names_sitemaps() -> None:
    """Relative ones too; one of another domain is a stranger's, and speaks for the origin that named it."""
    rules = parse_robots(b"Sitemap: /one.xml\nSitemap: http://cdn.b.test/two.xml\nSitemap: ftp://a.test/3", "TestBot")
    listed = sitemaps_of_robots(list_row("http://a.test/robots.txt", hops="", note="http://a.test"), rules)

    assert urls(listed) == ["http://a.test/one.xml", "http://cdn.b.test/two.xml"]
    assert [item.flags for item in listed.found] == [FLAG_SITEMAP, FLAG_SITEMAP | FLAG_EXTERNAL]
    assert {item.note for item in listed.found} == {"http://a.test"}
    assert {item.hops for item in listed.found} == {"M"}


def test_one_file_names_so_many_sitemaps() -> None:
    """The rest is left out, and that is said."""
    index = sitemap(*(f"http://a.test/{number}.xml" for number in range(MAX_FILES + 1)), index=True)
    listed = entries_of_sitemap(list_row("http://a.test/index.xml"), index)

    assert (len(listed.found), listed.flaw) == (MAX_FILES, "more than 5,000 sitemaps")


def test_a_sitemap_lists_pages_with_their_dates() -> None:
    """One link deeper, and listed by their own host."""
    row = list_row("http://a.test/sitemap.xml", note="http://a.test")
    listed = entries_of_sitemap(row, sitemap("http://a.test/1", "http://a.test/2"))

    assert urls(listed) == ["http://a.test/1", "http://a.test/2"]
    assert {(item.depth, item.hops, item.flags) for item in listed.found} == {(1, "MM", FLAG_LISTED)}
    assert [(changed.url, moment) for changed, moment in listed.changed] == [
        ("http://a.test/1", 1767312000.0),
        ("http://a.test/2", 1767312000.0),
    ]


def test_a_sitemap_speaks_for_the_host_that_declared_it() -> None:
    """For its own where nobody did. Entries of others are counted, what is no URL is not."""
    body = sitemap("http://a.test/1", "http://evil.test/", "http://cdn.b.test/2", "//")
    declared = entries_of_sitemap(list_row("http://cdn.b.test/sitemap.xml", note="http://a.test"), body)
    alone = entries_of_sitemap(list_row("http://cdn.b.test/sitemap.xml"), body)

    assert (urls(declared), declared.foreign) == (["http://a.test/1"], 2)
    assert (urls(alone), alone.foreign) == (["http://cdn.b.test/2"], 2)


def test_an_index_lists_sitemaps() -> None:
    """For the same origin."""
    row = list_row("http://a.test/index.xml", note="http://a.test")
    listed = entries_of_sitemap(row, sitemap("http://a.test/1.xml", index=True))

    assert [(item.address.url, item.flags, item.note, item.hops) for item in listed.found] == [
        ("http://a.test/1.xml", FLAG_SITEMAP, "http://a.test", "MM")
    ]
    assert listed.changed == []


@pytest.mark.parametrize(("depth", "followed"), [(MAX_INDEX_DEPTH, True), (MAX_INDEX_DEPTH + 1, False)])
def test_indexes_of_indexes_end(depth: int, followed: bool) -> None:
    """At the bound nothing is named any more."""
    row = list_row("http://a.test/index.xml", hops="M" * depth)
    listed = entries_of_sitemap(row, sitemap("http://a.test/1.xml", index=True))

    assert bool(listed.found) is followed
    assert bool(listed.flaw) is not followed


def test_what_is_no_sitemap_has_a_flaw() -> None:
    """And names nothing."""
    listed = entries_of_sitemap(list_row("http://a.test/sitemap.xml"), b"<html><p>not found")

    assert listed.found == []
    assert listed.flaw


def test_a_feed_names_its_entries() -> None:
    """Its host's own with their dates; of others' pages it knows nothing."""
    feed = read_feed(
        b"<feed xmlns='http://www.w3.org/2005/Atom'>"
        b"<entry><link href='/1'/><updated>2026-01-02T00:00:00Z</updated></entry>"
        b"<entry><link href='http://b.test/'/><updated>2026-01-02T00:00:00Z</updated></entry></feed>"
    )
    listed = entries_of_feed(list_row("http://a.test/feed"), feed, "LE")

    assert urls(listed) == ["http://a.test/1", "http://b.test/"]
    assert [item.flags for item in listed.found] == [FLAG_LISTED, FLAG_EXTERNAL]
    assert {(item.depth, item.hops) for item in listed.found} == {(1, "LE")}
    assert [changed.url for changed, _ in listed.changed] == ["http://a.test/1"]
