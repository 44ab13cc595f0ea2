"""What robots.txt files, sitemaps and feeds name, and for whom they may speak."""

from __future__ import annotations

import pytest

from crawlerproject.parse.lists import MAX_FILES, Listed, entries_of_feed, entries_of_sitemap, sitemaps_of_robots
from crawlerproject.rules.feeds.feeds import MAX_INDEX_DEPTH, read_feed
from crawlerproject.rules.robots.policy import parse_robots
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_LISTED, FLAG_SITEMAP
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import QueuedPage


def row_of(url: str, *, hops: str = "M", note: str = "") -> QueuedPage:
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
    listed = sitemaps_of_robots(row_of("http://a.test/robots.txt", hops="", note="http://a.test"), rules)

    assert urls(listed) == ["http://a.test/one.xml", "http://cdn.b.test/two.xml"]
    assert [item.flags for item in listed.found] == [FLAG_SITEMAP, FLAG_SITEMAP | FLAG_EXTERNAL]
    assert {item.note for item in listed.found} == {"http://a.test"}
    assert {item.hops for item in listed.found} == {"M"}


def test_one_file_names_so_many_sitemaps() -> None:
    """The rest is left out, and that is said."""
    index = sitemap(*(f"http://a.test/{number}.xml" for number in range(MAX_FILES + 1)), index=True)
    listed = entries_of_sitemap(row_of("http://a.test/index.xml"), index)

    assert (len(listed.found), listed.flaw) == (MAX_FILES, "more than 5,000 sitemaps")


def test_a_sitemap_lists_pages_with_their_dates() -> None:
    """One link deeper, and listed by their own host."""
    row = row_of("http://a.test/sitemap.xml", note="http://a.test")
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
    declared = entries_of_sitemap(row_of("http://cdn.b.test/sitemap.xml", note="http://a.test"), body)
    alone = entries_of_sitemap(row_of("http://cdn.b.test/sitemap.xml"), body)

    assert (urls(declared), declared.foreign) == (["http://a.test/1"], 2)
    assert (urls(alone), alone.foreign) == (["http://cdn.b.test/2"], 2)


def test_an_index_lists_sitemaps() -> None:
    """For the same origin."""
    row = row_of("http://a.test/index.xml", note="http://a.test")
    listed = entries_of_sitemap(row, sitemap("http://a.test/1.xml", index=True))

    assert [(item.address.url, item.flags, item.note, item.hops) for item in listed.found] == [
        ("http://a.test/1.xml", FLAG_SITEMAP, "http://a.test", "MM")
    ]
    assert listed.changed == []


@pytest.mark.parametrize(("depth", "followed"), [(MAX_INDEX_DEPTH, True), (MAX_INDEX_DEPTH + 1, False)])
def test_indexes_of_indexes_end(depth: int, followed: bool) -> None:
    """At the bound nothing is named any more."""
    row = row_of("http://a.test/index.xml", hops="M" * depth)
    listed = entries_of_sitemap(row, sitemap("http://a.test/1.xml", index=True))

    assert bool(listed.found) is followed
    assert bool(listed.flaw) is not followed


def test_what_is_no_sitemap_has_a_flaw() -> None:
    """And names nothing."""
    listed = entries_of_sitemap(row_of("http://a.test/sitemap.xml"), b"<html><p>not found")

    assert listed.found == []
    assert listed.flaw


def test_a_feed_names_its_entries() -> None:
    """Its host's own with their dates; of others' pages it knows nothing."""
    feed = read_feed(
        b"<feed xmlns='http://www.w3.org/2005/Atom'>"
        b"<entry><link href='/1'/><updated>2026-01-02T00:00:00Z</updated></entry>"
        b"<entry><link href='http://b.test/'/><updated>2026-01-02T00:00:00Z</updated></entry></feed>"
    )
    listed = entries_of_feed(row_of("http://a.test/feed"), feed, "LE")

    assert urls(listed) == ["http://a.test/1", "http://b.test/"]
    assert [item.flags for item in listed.found] == [FLAG_LISTED, FLAG_EXTERNAL]
    assert {(item.depth, item.hops) for item in listed.found} == {(1, "LE")}
    assert [changed.url for changed, _ in listed.changed] == ["http://a.test/1"]
