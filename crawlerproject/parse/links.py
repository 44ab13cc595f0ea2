"""Where a page leads: its links, the target of a redirect, the targets of its scripts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crawlerproject.frontier.discovered import DiscoveredUrl, linking_domain, of_other_domain
from crawlerproject.rules.page.page import PageFacts
from crawlerproject.rules.page.requisites import Requisite
from crawlerproject.rules.row_kinds import (
    FLAG_EXTERNAL,
    FLAG_FRAME,
    FLAG_REQUISITE,
    KEPT_BY_REDIRECT,
    KEPT_WITHIN_DOMAIN,
)
from crawlerproject.rules.url.priority import HOP_EMBED, HOP_LINK, MAX_EMBED_HOPS, of_redirect, of_requisite, priority
from crawlerproject.rules.url.urls import Address, Base
from crawlerproject.stores.protocols import QueuedPage

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


def linked(row: QueuedPage, facts: PageFacts) -> list[DiscoveredUrl]:
    """The links of a page; none if the page asks for nofollow."""
    return [] if facts.nofollow else followed(row, facts.links)


def followed(row: QueuedPage, links: Iterable[Address]) -> list[DiscoveredUrl]:
    """Links of a page."""
    depth, host, url = row.depth + 1, row.host, row.url
    hops, place = hops_to(row, HOP_LINK), priority(depth, HOP_LINK)
    found: list[DiscoveredUrl] = []
    for address in links:
        flags = FLAG_EXTERNAL if address.host != host and of_other_domain(address.host, host) else 0
        found.append(DiscoveredUrl(address, depth, hops, url, place, flags))
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
