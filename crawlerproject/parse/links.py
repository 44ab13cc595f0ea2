"""Where a page leads: its links, the target of a redirect, the targets of its scripts."""

from __future__ import annotations

from collections.abc import Iterable

from crawlerproject.frontier.discovered import DiscoveredUrl, inventor, strangers
from crawlerproject.rules.page.page import PageFacts
from crawlerproject.rules.url.priority import priority
from crawlerproject.rules.url.urls import Address, Base
from crawlerproject.stores.protocols import FLAG_LISTED, FLAG_SEED, FLAG_SITEMAP, FLAG_STRANGER, QueuedPage

# Fetch (WHATWG) allows 20. Like Heritrix's maxTransHops ours is lower, since a chain may invent new URLs for ever.
MAX_REDIRECTS = 10
HOP_REDIRECT = "R"
# Letters of a discovery path that are kept, as in Heritrix.
_MAX_HOPS = 50


def hops_to(row: QueuedPage, kind: str) -> str:
    """The discovery path of a URL that a page leads to; ``kind`` is its last letter."""
    return (row.hops + kind)[-_MAX_HOPS:]


def redirected_enough(row: QueuedPage) -> bool:
    """Whether the page was reached by as many redirects in a row as are followed."""
    return row.hops.endswith(HOP_REDIRECT * MAX_REDIRECTS)


def redirected(row: QueuedPage, target: Address) -> DiscoveredUrl:
    """The target of a redirect. It keeps the page's depth and flags; another domain is named by this page's."""
    flags, note = row.flags & (FLAG_SEED | FLAG_SITEMAP), row.note
    if not flags & FLAG_SEED:
        more, domain = _named_by(row, target)
        flags |= more
        if not flags & FLAG_SITEMAP:
            note = domain
    return DiscoveredUrl(target, row.depth, hops_to(row, HOP_REDIRECT), row.url, row.priority, flags, note)


def _named_by(row: QueuedPage, target: Address) -> tuple[int, str]:
    """The flags of the URL that replaces a page's, and the domain that invented it where ``via`` does not show it."""
    if strangers(target.host, row.host):
        return FLAG_STRANGER, ""
    return row.flags & (FLAG_STRANGER | FLAG_LISTED), inventor(row.host, row.via, row.flags, row.note)


def linked(row: QueuedPage, facts: PageFacts) -> list[DiscoveredUrl]:
    """The links of a page; none if the page asks for nofollow."""
    found: list[DiscoveredUrl] = []
    if facts.nofollow:
        return found
    depth, host, url = row.depth + 1, row.host, row.url
    ways: dict[str, tuple[str, int]] = {}  # computed once for hundreds of links
    for address, kind in facts.links:
        way = ways.get(kind)
        if way is None:
            way = ways[kind] = hops_to(row, kind), priority(depth, kind)
        flags = FLAG_STRANGER if address.host != host and strangers(address.host, host) else 0
        found.append(DiscoveredUrl(address, depth, way[0], url, way[1], flags))
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
