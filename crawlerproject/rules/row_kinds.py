"""Decides by its flags how each kind of row is treated, be it a page, a robots.txt, a requisite or a render.

A row's flags are bits, stored as they are. ``ROW_KINDS[flags]`` (of a row: ``row.kind``) is everything that the crawl
decides by them, worked out once for each combination: where a new kind differs from a page, it differs here. Its
priority says how soon a URL deserves its turn within its host's queue: 0 first, 255 last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

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


PLACES_OF_LINKS = tuple(priority(depth, HOP_LINK) for depth in range((LAST - _SEED_LEVEL) // _DEPTH_STEP + 3))
"""The priorities of links by their depth; those that are deeper have the last one."""


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


FLAG_SEED = 1
FLAG_RENDER = 2  # fetched before; the browser has it next
FLAG_ROBOTS = 4
FLAG_RECRAWL = 8  # known: visited again, conditionally where its host earned it
FLAG_SITEMAP = 16
FLAG_HUB = 32  # a request to a WebSub hub, for a subscription to the topic in ``note``
FLAG_EXTERNAL = 64  # only other registered domains name it: charged to them (rules/traps/budgets.py)
FLAG_LISTED = 128  # a page that a sitemap or feed of its own host names
FLAG_REQUISITE = 256  # what a page needs to be seen: a style sheet, an image; no page of the crawl
FLAG_FRAME = 512  # a requisite that is a document: what it needs itself is fetched, its links are not followed
FLAG_SUBREQUEST = 1024  # what a page in the browser loads. No store sees it: no queue holds such a row

OUTSIDE_BUDGET = FLAG_EXTERNAL | FLAG_REQUISITE
"""Waits under a key of its own and outside its host's budget of pages: the page itself may still be named."""
KEPT_BY_REDIRECT = FLAG_SEED | FLAG_SITEMAP | FLAG_REQUISITE | FLAG_FRAME
"""What the target of a redirect is if the redirected row was that."""
KEPT_WITHIN_DOMAIN = FLAG_EXTERNAL | FLAG_LISTED
"""The same where the target is on the row's own registered domain."""


class Budget(Enum):
    """Whose budget a new row needs room in. That of the host's pages is asked apart (``RowKind.counts_for_host``)."""

    NONE = 0
    EXTERNAL = 1  # what other domains may name of the host
    LISTS = 2  # sitemaps and feeds of the host
    REQUISITES = 3


class Content(Enum):
    """What a body of status 200 is read as."""

    NOTHING = 0  # another part of the crawl takes it
    PAGE = 1  # HTML, a feed or a document
    RENDERED = 2  # HTML alone
    LIST = 3
    REQUISITE = 4  # a style sheet, else nothing
    FRAME = 5  # a style sheet or HTML


@dataclass(frozen=True, slots=True)
class RowKind:
    """How rows with one combination of flags are treated."""

    is_seed: bool
    is_render: bool
    is_robots: bool
    is_recrawl: bool
    is_list: bool
    is_hub: bool
    is_external: bool
    is_listed: bool
    is_requisite: bool
    is_frame: bool
    # Whether it is admitted
    requested: bool  # by the operator or by a protocol: no scope and no file type refuses it
    counts_for_host: bool  # against the number of pages of its host, and of hosts of its domain
    in_page_budget: bool  # counted there, and waiting under the page's own key
    budget: Budget
    swapped: Callable[[bytes], bytes]  # the key in its queue from the page's own, and the other way round
    template_traps: bool  # its URL's template may be a trap
    # Who named it
    charges_front: bool  # external, but a host's front page is its own, whichever page names it
    maybe_external: bool  # another domain may have led to it
    note_names_domain: bool  # its note says which domain, if any
    # Its turn
    may_be_known: bool  # under the page's own key, by the time its turn comes
    ends_news: bool  # once it is on its way, a link to the page is no news any more
    sent_once: bool  # a POST, which may have done its work: never repeated
    is_plain_get: bool
    # Its answer
    content: Content
    is_extracted: bool  # a project's spider may extract items from it
    is_archived: bool
    stat: str  # counted under this name, by reason
    is_page: bool  # counted among the pages of its host and of the crawl
    waits_unseen: bool  # without an answer that shows it, a recrawl asks for it again
    teaches_templates: bool
    waits_known: bool  # waits on though its page has been fetched


def external_key(key: bytes) -> bytes:
    """The key under which an external URL waits in its queue, from the page's own; and the other way round.

    Not the page's own, so that the host's own word for the same URL is news; of the same host's keys.
    """
    return key[:8] + key[16:] + key[8:16]


def requisite_key(key: bytes) -> bytes:
    """The key under which a requisite waits in its queue, from the page's own; and the other way round.

    Of the same host's keys, and no external URL's: a page may be named with the same URL.
    """
    return key[:8] + key[:7:-1]


class _RowKinds(dict[int, RowKind]):
    """Filled as combinations are met: few of the 2,048 ever are."""

    def __missing__(self, flags: int) -> RowKind:
        external, requisite = bool(flags & FLAG_EXTERNAL), bool(flags & FLAG_REQUISITE)
        sitemap, render = bool(flags & FLAG_SITEMAP), bool(flags & FLAG_RENDER)
        subrequest = bool(flags & FLAG_SUBREQUEST)
        if flags & (FLAG_SEED | FLAG_RECRAWL):
            budget = Budget.NONE
        elif requisite:
            budget = Budget.REQUISITES
        else:
            budget = Budget.EXTERNAL if external else Budget.LISTS if sitemap else Budget.NONE
        if flags & (FLAG_ROBOTS | FLAG_HUB | FLAG_SUBREQUEST):
            content = Content.NOTHING
        elif render:
            content = Content.RENDERED
        elif sitemap:
            content = Content.LIST
        elif requisite:
            content = Content.FRAME if flags & FLAG_FRAME else Content.REQUISITE
        else:
            content = Content.PAGE
        kind = self[flags] = RowKind(
            is_seed=bool(flags & FLAG_SEED),
            is_render=render,
            is_robots=bool(flags & FLAG_ROBOTS),
            is_recrawl=bool(flags & FLAG_RECRAWL),
            is_list=sitemap,
            is_hub=bool(flags & FLAG_HUB),
            is_external=external,
            is_listed=bool(flags & FLAG_LISTED),
            is_requisite=requisite,
            is_frame=bool(flags & FLAG_FRAME),
            requested=bool(flags & (FLAG_SEED | FLAG_ROBOTS | FLAG_HUB)),
            counts_for_host=not flags & (FLAG_SEED | FLAG_RECRAWL | FLAG_HUB),
            in_page_budget=not flags & OUTSIDE_BUDGET,
            budget=budget,
            swapped=requisite_key if requisite else external_key if external else bytes,  # bytes: the key itself
            template_traps=not flags & (FLAG_SEED | FLAG_ROBOTS | FLAG_RECRAWL | FLAG_SITEMAP | FLAG_HUB),
            charges_front=external and not flags & (FLAG_REQUISITE | FLAG_SITEMAP),
            maybe_external=bool(flags & (FLAG_EXTERNAL | FLAG_ROBOTS | FLAG_HUB)),
            note_names_domain=external and not flags & (FLAG_RENDER | FLAG_SITEMAP),
            may_be_known=bool(flags & OUTSIDE_BUDGET) and not flags & FLAG_RECRAWL,
            ends_news=external and not requisite,
            sent_once=bool(flags & FLAG_HUB),
            is_plain_get=not flags & (FLAG_RENDER | FLAG_HUB | FLAG_SUBREQUEST),
            content=content,
            is_extracted=not flags & (FLAG_ROBOTS | FLAG_HUB | FLAG_REQUISITE | FLAG_SUBREQUEST),
            is_archived=not flags & FLAG_HUB,
            stat="embeds" if subrequest else "requisites" if requisite else "pages",
            is_page=not flags & (FLAG_ROBOTS | FLAG_REQUISITE | FLAG_SUBREQUEST),
            waits_unseen=not flags & (FLAG_HUB | FLAG_ROBOTS | FLAG_FRAME),
            teaches_templates=not flags & (FLAG_ROBOTS | FLAG_HUB),
            waits_known=bool(flags & (FLAG_RECRAWL | FLAG_RENDER | FLAG_ROBOTS | FLAG_HUB)),
        )
        return kind


ROW_KINDS = _RowKinds()
"""By flags."""
