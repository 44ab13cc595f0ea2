"""Where a page leads: its links, the target of a redirect or of its scripts, the URLs that a list names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from crawlerproject import native
from crawlerproject.frontier.passage import DiscoveredUrl, linking_domain, of_other_domain
from crawlerproject.rules.feeds.feeds import MAX_INDEX_DEPTH, Feed, may_list, read_sitemap
from crawlerproject.rules.feeds.xml_entries import Entry
from crawlerproject.rules.page.requisites import Requisite
from crawlerproject.rules.robots.policy import RobotsRules
from crawlerproject.rules.row_kinds import (
    FLAG_EXTERNAL,
    FLAG_FRAME,
    FLAG_LISTED,
    FLAG_REQUISITE,
    FLAG_SITEMAP,
    HOP_EMBED,
    HOP_LINK,
    KEPT_BY_REDIRECT,
    KEPT_WITHIN_DOMAIN,
    MAX_EMBED_HOPS,
    PLACES_OF_LINKS,
    SEED,
    of_redirect,
    of_requisite,
    priority,
)
from crawlerproject.rules.url.urls import Address, Base, UrlRefused, parse
from crawlerproject.stores.protocols import QueuedPage

_new = tuple.__new__  # of a NamedTuple, at a third of the cost
# Fetch (WHATWG) allows 20. Like Heritrix's maxTransHops ours is lower, since a chain may invent new URLs for ever.
MAX_REDIRECTS = 10
HOP_REDIRECT = "R"
# Letters of a discovery path that are kept, as in Heritrix.
_MAX_HOPS = 50
# Sitemaps taken from one file; the protocol allows 50,000, which no site has (ours).
MAX_FILES = 5000
# Ahead of links: one sitemap lists many pages.
_SITEMAP_PRIORITY = SEED + 1
_HOP_LIST = "M"
_DEEPEST = len(PLACES_OF_LINKS) - 1


def hops_to(row: QueuedPage, kind: str) -> str:
    """The discovery path of a URL that a page leads to; ``kind`` is its last letter."""
    return (row.hops + kind)[-_MAX_HOPS:]


def redirected_enough(row: QueuedPage) -> bool:
    """Whether the page was reached by as many redirects in a row as are followed."""
    return row.hops.endswith(HOP_REDIRECT * MAX_REDIRECTS)


def redirected(row: QueuedPage, target: Address) -> DiscoveredUrl:
    """The target of a redirect. It keeps the page's depth and flags; another domain is named by this page's."""
    kind, flags, note = row.kind, row.flags & KEPT_BY_REDIRECT, row.note
    if not kind.is_seed:
        more, domain = _named_by(row, target)
        flags |= more
        if not kind.is_list:
            note = domain
    place = row.priority if kind.is_requisite else of_redirect(row.priority)
    return DiscoveredUrl(target, row.depth, hops_to(row, HOP_REDIRECT), row.url, place, flags, note)


def _named_by(row: QueuedPage, target: Address) -> tuple[int, str]:
    """The flags of the URL that replaces a page's, and the domain that invented it where ``via`` does not show it."""
    if of_other_domain(target.host, row.host):
        return FLAG_EXTERNAL, ""
    return row.flags & KEPT_WITHIN_DOMAIN, linking_domain(row.host, row.via, row.flags, row.note)


def followed(row: QueuedPage, links: Iterable[Address]) -> list[DiscoveredUrl]:
    """Links of a page."""
    depth, host, url = row.depth + 1, row.host, row.url
    hops, place = (row.hops + HOP_LINK)[-_MAX_HOPS:], PLACES_OF_LINKS[min(depth, _DEEPEST)]

    def flags_of(other: str) -> int:
        return FLAG_EXTERNAL if of_other_domain(other, host) else 0

    if (page := native.reader) is not None:
        return page.followed(links, DiscoveredUrl, host, depth, hops, url, place, flags_of, "")
    found: list[DiscoveredUrl] = []
    for address in links:
        flags = 0 if address.host == host else flags_of(address.host)
        found.append(_new(DiscoveredUrl, (address, depth, hops, url, place, flags, "")))
    return found


class RequisitesWanted(NamedTuple):
    """How the requisites of pages are asked for: REQUISITES_PRIORITY and REQUISITES_MAX_PER_PAGE."""

    most: int = 0  # of one page or style sheet; 0: none
    among: bool = True  # the pages of their host, else after them

    def of(self, row: QueuedPage) -> RequisitesWanted:
        """As wanted of this page; none where it is embedded as deep as is followed."""
        hops = row.hops
        embedded = hops[len(hops.rstrip(HOP_EMBED + HOP_REDIRECT)) :].count(HOP_EMBED)
        return self if embedded < MAX_EMBED_HOPS else NO_REQUISITES


NO_REQUISITES = RequisitesWanted()


def required(row: QueuedPage, requisites: Iterable[Requisite], wanted: RequisitesWanted) -> list[DiscoveredUrl]:
    """What a page, or one of its style sheets or frames, needs: of the page's depth, on any host."""
    depth, host, url, hops = row.depth, row.host, row.url, hops_to(row, HOP_EMBED)
    found: list[DiscoveredUrl] = []
    for address, frame in requisites:
        stranger = of_other_domain(address.host, host)
        flags = FLAG_REQUISITE | (FLAG_FRAME if frame else 0) | (FLAG_EXTERNAL if stranger else 0)
        place = of_requisite(among=wanted.among, is_external=stranger)
        found.append(DiscoveredUrl(address, depth, hops, url, place, flags))
    return found


def navigated(row: QueuedPage, urls: Iterable[str]) -> list[DiscoveredUrl]:
    """The targets of scripts that navigated: redirects in all but name."""
    if redirected_enough(row):
        return []
    base, hops = Base(row.url), hops_to(row, HOP_REDIRECT)
    targets = [target for url in urls if (target := base.join(url)) is not None]
    return [
        DiscoveredUrl(target, row.depth, hops, row.url, row.priority, *_named_by(row, target)) for target in targets
    ]


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
    return _sitemaps(named, row, row.note, _HOP_LIST)


def entries_of_sitemap(row: QueuedPage, body: bytes, content_type: str | None = None) -> Listed:
    """The sitemaps or pages that a sitemap lists."""
    sitemap = read_sitemap(body, content_type, row.url)
    addresses = [(address, entry) for entry in sitemap.entries if (address := _absolute(entry.url)) is not None]
    if sitemap.index:
        if row.hops.count(_HOP_LIST) > MAX_INDEX_DEPTH:
            return Listed(flaw=f"a sitemap index deeper than {MAX_INDEX_DEPTH}")
        listed = _sitemaps([address for address, _ in addresses], row, row.note, row.hops + _HOP_LIST)
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
        listed.found.append(
            DiscoveredUrl(address, depth, row.hops + _HOP_LIST, row.url, priority(depth, _HOP_LIST), FLAG_LISTED)
        )
        if entry.modified:
            listed.changed.append((address, entry.modified))
    return listed


def _absolute(url: str) -> Address | None:
    try:
        return parse(url)
    except UrlRefused:
        return None
