"""What robots.txt files, sitemaps and feeds name, as URLs on their way into the frontier."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from crawlerproject.frontier.found import Found
from crawlerproject.rules.entries_xml import Entry
from crawlerproject.rules.feeds import Feed
from crawlerproject.rules.priority import SEED, priority
from crawlerproject.rules.robots import RobotsRules
from crawlerproject.rules.sitemaps import MAX_INDEX_DEPTH, may_list, read_sitemap
from crawlerproject.rules.urls import Address, Base, UrlRefused, parse
from crawlerproject.stores.protocols import FLAG_SITEMAP, QueuedPage

# Sitemap files of one origin in one run; an index of 50,000 files is allowed, but nobody has them (ours).
MAX_FILES = 1000
# Before links: a sitemap tells of many pages at once.
_SITEMAP_PRIORITY = SEED + 1
_HOP = "M"


@dataclass(slots=True)
class Listed:
    """What one list brought."""

    found: list[Found] = field(default_factory=list)
    changed: list[tuple[Address, float]] = field(default_factory=list)  # since when, epoch seconds
    foreign: int = 0  # entries of hosts that this list may not speak for
    flaw: str = ""


class Lists:
    """Reads the lists of one crawl, within its bounds."""

    def __init__(self) -> None:
        self._files: Counter[str] = Counter()  # sitemaps by the origin that named them

    def of_robots(self, row: QueuedPage, rules: RobotsRules) -> Listed:
        """The sitemaps that an origin's robots.txt names; ``row`` is the robots.txt's."""
        base = Base(row.url)
        named = [address for line in rules.sitemaps if (address := base.join(line)) is not None]
        return self._sitemaps(named, row, row.note, _HOP)

    def of_sitemap(self, row: QueuedPage, body: bytes) -> Listed:
        """The sitemaps or pages that a sitemap lists."""
        sitemap = read_sitemap(body)
        addresses = [(address, entry) for entry in sitemap.entries if (address := _absolute(entry.url)) is not None]
        if sitemap.index:
            if row.hops.count(_HOP) > MAX_INDEX_DEPTH:
                return Listed(flaw=f"a sitemap index deeper than {MAX_INDEX_DEPTH}")
            listed = self._sitemaps([address for address, _ in addresses], row, row.note, row.hops + _HOP)
        else:
            listed = _pages(addresses, row)
        listed.flaw = listed.flaw or sitemap.flaw
        return listed

    def of_feed(self, row: QueuedPage, feed: Feed, hops: str) -> Listed:
        """The entries of a feed: links like any other, but sooner."""
        base = Base(row.url)
        listed = Listed(flaw=feed.flaw)
        depth = row.depth + 1
        for entry in feed.entries:
            address = base.join(entry.url)
            if address is not None:
                listed.found.append(Found(address, depth, hops, row.url, priority(depth, "E")))
                if entry.modified:
                    listed.changed.append((address, entry.modified))
        return listed

    def _sitemaps(self, addresses: list[Address], row: QueuedPage, origin: str, hops: str) -> Listed:
        listed = Listed()
        for address in addresses:
            if self._files[origin] >= MAX_FILES:
                listed.flaw = f"more than {MAX_FILES} sitemaps"
                break
            self._files[origin] += 1
            listed.found.append(Found(address, row.depth, hops, row.url, _SITEMAP_PRIORITY, FLAG_SITEMAP, origin))
        return listed


def _pages(addresses: list[tuple[Address, Entry]], row: QueuedPage) -> Listed:
    listed = Listed()
    declared_by = row.note.partition("://")[2]
    depth = row.depth + 1
    for address, entry in addresses:
        if not may_list(address.host, row.host, declared_by):
            listed.foreign += 1
            continue
        listed.found.append(Found(address, depth, row.hops + _HOP, row.url, priority(depth, _HOP)))
        if entry.modified:
            listed.changed.append((address, entry.modified))
    return listed


def _absolute(url: str) -> Address | None:
    try:
        return parse(url)
    except UrlRefused:
        return None
