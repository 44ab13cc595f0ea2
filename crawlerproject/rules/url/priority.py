"""Decides how soon a URL deserves its turn within its host's queue: 0 first, 255 last."""

from __future__ import annotations

ROBOTS = 0  # nothing may be asked before it is known
SEED = 1
LAST = 255

HOP_LINK = "L"
"""Heritrix' letters, of how a URL was found. A link; frames too, since they are fetched as pages of their own."""
HOP_EMBED = "E"
"""What a page needs to be seen: rules/page/requisites.py."""
HOP_PREREQUISITE = "P"
"""What is asked for before a host's pages: robots.txt; twice and more the documents beside it (rules/consent/terms)."""
MAX_EMBED_HOPS = 5
"""A page, its style sheet, what that imports, and again, its font: real sites need four; Heritrix' default is two."""

# Breadth first, as BUbiNG and Mercator do: a level is a step, and hops sort within it.
_DEPTH_STEP = 8
# Within a level (ours): what a page needs, then what it links to, then what a sitemap lists.
_HOP_OFFSETS = {HOP_EMBED: 0, HOP_LINK: 2, "M": 4}
# Of pages that were ranked: the tiers of a recrawl (rules/revisits/change_rate.py). The first hundredth comes before
# all links, the first tenth as if it were found two links nearer (ours).
_FIRST_SHARE, _NEARER_SHARE = 0.99, 0.9
_NEARER_STEP = 2 * _DEPTH_STEP
# What a page links to that repeats another is mostly known already: as if it were found four links deeper (ours).
_DUPLICATE_STEP = 4 * _DEPTH_STEP
# Page requisites, with REQUISITES_PRIORITY=among: before the links of all pages, so that a page is whole before its
# host's next one is asked for; with "after": behind all of them. No page has these numbers, which are odd.
REQUISITES_AMONG, REQUISITES_AFTER = 3, 241
_EXTERNAL_REQUISITES_AFTER = 243
_SEED_LEVEL = 2  # the first priority after robots.txt and seeds
# What the host itself names comes first: within 20 links of a seed, on duplicates too, it stays below these (ours).
_LATER_LISTS = 198  # sitemaps that the host has not earned yet
_EXTERNAL = 200  # what only other domains name, the nearer first
LAST_EXTERNAL = _EXTERNAL + _EXTERNAL // _DEPTH_STEP
"""No external row that came from a nearer priority has a later one."""


def priority(depth: int, hop: str, parent: int = SEED) -> int:
    """Priority of a URL ``depth`` links from a seed, found by ``hop`` (Heritrix letter) on a page of ``parent``.

    Everything sorts by depth, then by hop, but for the target of a redirect.
    """
    if hop == "P":
        return ROBOTS
    if hop == "" or hop == "I" or depth < 0:
        return SEED
    if hop == "R":
        return of_redirect(parent)
    offset = _HOP_OFFSETS.get(hop, 2)
    return min(LAST, _SEED_LEVEL + max(depth - 1, 0) * _DEPTH_STEP + offset)


def of_redirect(found: int) -> int:
    """The priority of the target of a redirect whose URL had ``found``: before its equals, for it ends what was begun.

    So a host whose every link redirects shows what they lead to before all of them were asked for (rules/traps).
    """
    return max(SEED, found - 1) if found < _LATER_LISTS else min(found, LAST)


def of_external(found: int) -> int:
    """The priority of a URL of priority ``found`` that only other registered domains name."""
    return found if found >= _EXTERNAL else _EXTERNAL + found // _DEPTH_STEP


REQUISITE_PLACES = (REQUISITES_AMONG, _EXTERNAL + 1, REQUISITES_AFTER, _EXTERNAL_REQUISITES_AFTER)
"""All priorities that requisites have."""


def of_requisite(*, among: bool, is_external: bool) -> int:
    """The priority of a page requisite; of one that another registered domain names, behind the host's own."""
    among_places, after_places = REQUISITE_PLACES[:2], REQUISITE_PLACES[2:]
    return (among_places if among else after_places)[is_external]


def of_later_list(found: int) -> int:
    """The priority of a sitemap of priority ``found`` that its host has not earned yet."""
    return max(found, _LATER_LISTS)


def by_rank(found: int, less_important: float) -> int:
    """The priority of a URL of priority ``found`` when this share of all that is linked ranks lower."""
    if found < _SEED_LEVEL or less_important < _NEARER_SHARE:
        return found
    return _SEED_LEVEL if less_important >= _FIRST_SHARE else max(_SEED_LEVEL, found - _NEARER_STEP)


def after_duplicate(found: int) -> int:
    """The priority of a link of priority ``found`` when the page that shows it repeats another."""
    return min(LAST, found + _DUPLICATE_STEP)
