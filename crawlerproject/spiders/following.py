"""Where an answer leads: its links, a redirect's target, where scripts wanted to go."""

from __future__ import annotations

from collections.abc import Iterable

from crawlerproject.frontier.found import Found
from crawlerproject.rules.page import PageFacts
from crawlerproject.rules.priority import priority
from crawlerproject.rules.scope import registered_domain
from crawlerproject.rules.urls import Address, Base
from crawlerproject.stores.protocols import FLAG_SEED, FLAG_SITEMAP, QueuedPage

# Fetch (WHATWG) stops at 20; Heritrix's maxTransHops and ours stop sooner: a chain grows new addresses for ever.
MAX_REDIRECTS = 10
HOP_REDIRECT = "R"
# Heritrix keeps as many letters of a discovery path.
_MAX_HOPS = 50


def hops_to(row: QueuedPage, kind: str) -> str:
    """The discovery path of what a page leads to, by this letter."""
    return (row.hops + kind)[-_MAX_HOPS:]


def redirected_enough(row: QueuedPage) -> bool:
    """Whether the way to a page ends in as many redirects as are followed."""
    return row.hops.endswith(HOP_REDIRECT * MAX_REDIRECTS)


def redirected(row: QueuedPage, target: Address) -> Found:
    """The target of a redirect: what the page was, it is."""
    flags = row.flags & (FLAG_SEED | FLAG_SITEMAP)
    return Found(target, row.depth, hops_to(row, HOP_REDIRECT), row.url, row.priority, flags, row.note)


def linked(row: QueuedPage, facts: PageFacts) -> list[Found]:
    """The links of a page; none when it asks for nofollow."""
    found: list[Found] = []
    if facts.nofollow:
        return found
    depth, host, url = row.depth + 1, row.host, row.url
    ways: dict[tuple[str, bool], tuple[str, int]] = {}  # the same for hundreds of links
    for address, kind in facts.links:
        across = address.host != host and registered_domain(address.host) != registered_domain(host)
        way = ways.get((kind, across))
        if way is None:
            way = ways[kind, across] = hops_to(row, kind), priority(depth, kind, across=across)
        found.append(Found(address, depth, way[0], url, way[1]))
    return found


def navigated(row: QueuedPage, urls: Iterable[str]) -> list[Found]:
    """Where scripts wanted to go: a redirect in all but name."""
    if redirected_enough(row):
        return []
    base, hops = Base(row.url), hops_to(row, HOP_REDIRECT)
    targets = [target for url in urls if (target := base.join(url)) is not None]
    return [Found(target, row.depth, hops, row.url, row.priority) for target in targets]
