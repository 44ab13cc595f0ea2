"""The URLs that robots.txt files, sitemaps and feeds list, on their way into the frontier."""

from __future__ import annotations

from dataclasses import dataclass, field

from crawlerproject.frontier.discovered import DiscoveredUrl, of_other_domain
from crawlerproject.rules.feeds.feeds import MAX_INDEX_DEPTH, Feed, may_list, read_sitemap
from crawlerproject.rules.feeds.xml_entries import Entry
from crawlerproject.rules.robots.policy import RobotsRules
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_LISTED, FLAG_SITEMAP
from crawlerproject.rules.url.priority import SEED, priority
from crawlerproject.rules.url.urls import Address, Base, UrlRefused, parse
from crawlerproject.stores.protocols import QueuedPage

# Sitemaps taken from one file; the protocol allows 50,000, which no site has (ours).
MAX_FILES = 5000
# Ahead of links: one sitemap lists many pages.
_SITEMAP_PRIORITY = SEED + 1
_HOP = "M"


@dataclass(slots=True)
class Listed:
    """The result of reading one list."""

    found: list[DiscoveredUrl] = field(default_factory=list)
    changed: list[tuple[Address, float]] = field(default_factory=list)  # known pages, and when (epoch seconds)
    foreign: int = 0  # entries of hosts for which this list may not speak
    flaw: str = ""


def sitemaps_of_robots(row: QueuedPage, rules: RobotsRules) -> Listed:
    """The sitemaps that an origin's robots.txt names; ``row`` is the robots.txt's."""
    base = Base(row.url)
    named = [address for line in rules.sitemaps if (address := base.join(line)) is not None]
    return _sitemaps(named, row, row.note, _HOP)


def entries_of_sitemap(row: QueuedPage, body: bytes, content_type: str | None = None) -> Listed:
    """The sitemaps or pages that a sitemap lists."""
    sitemap = read_sitemap(body, content_type, row.url)
    addresses = [(address, entry) for entry in sitemap.entries if (address := _absolute(entry.url)) is not None]
    if sitemap.index:
        if row.hops.count(_HOP) > MAX_INDEX_DEPTH:
            return Listed(flaw=f"a sitemap index deeper than {MAX_INDEX_DEPTH}")
        listed = _sitemaps([address for address, _ in addresses], row, row.note, row.hops + _HOP)
    else:
        listed = _pages(addresses, row)
    listed.flaw = listed.flaw or sitemap.flaw
    return listed


def entries_of_feed(row: QueuedPage, feed: Feed, hops: str) -> Listed:
    """The entries of a feed: links like any other, but sooner."""
    base = Base(row.url)
    listed = Listed(flaw=feed.flaw)
    depth = row.depth + 1
    for entry in feed.entries:
        address = base.join(entry.url)
        if address is not None:
            flags = FLAG_EXTERNAL if of_other_domain(address.host, row.host) else FLAG_LISTED
            listed.found.append(DiscoveredUrl(address, depth, hops, row.url, priority(depth, "E"), flags))
            if entry.modified and flags == FLAG_LISTED:  # of others' pages it knows nothing
                listed.changed.append((address, entry.modified))
    return listed


def _sitemaps(addresses: list[Address], row: QueuedPage, origin: str, hops: str) -> Listed:
    listed = Listed(flaw=f"more than {MAX_FILES:,} sitemaps" if len(addresses) > MAX_FILES else "")
    speaks_for = origin.partition("://")[2] or row.host
    for address in addresses[:MAX_FILES]:
        flags = FLAG_SITEMAP | (FLAG_EXTERNAL if of_other_domain(address.host, speaks_for) else 0)
        listed.found.append(DiscoveredUrl(address, row.depth, hops, row.url, _SITEMAP_PRIORITY, flags, origin))
    return listed


def _pages(addresses: list[tuple[Address, Entry]], row: QueuedPage) -> Listed:
    listed = Listed()
    declared_by = row.note.partition("://")[2]
    depth = row.depth + 1
    for address, entry in addresses:
        if not may_list(address.host, row.host, declared_by):
            listed.foreign += 1
            continue
        listed.found.append(DiscoveredUrl(address, depth, row.hops + _HOP, row.url, priority(depth, _HOP), FLAG_LISTED))
        if entry.modified:
            listed.changed.append((address, entry.modified))
    return listed


def _absolute(url: str) -> Address | None:
    try:
        return parse(url)
    except UrlRefused:
        return None
