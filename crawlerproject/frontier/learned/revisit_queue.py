"""Which known pages are visited again now: those whose visit is worth most, within a budget."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.frontier.discovered import DiscoveredUrl, seed_found
from crawlerproject.rules.revisits.budget_shares import counted, cut
from crawlerproject.rules.revisits.history import FEED, PAGE, REQUISITE, SITEMAP, History, HostHistory
from crawlerproject.rules.revisits.refetch import DAY_SECONDS, TIERS, is_due, longest_wait_days
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_RECRAWL, FLAG_REQUISITE, FLAG_SITEMAP
from crawlerproject.rules.url.priority import HOP_EMBED, SEED, of_requisite
from crawlerproject.rules.url.urls import Address, host_key, parse
from crawlerproject.stores.protocols import PageRecord

if TYPE_CHECKING:
    from crawlerproject.stores.index.ranks import Ranks

# Pages scored at a time: enough for numpy to be quick, few enough to be nothing in memory.
_CHUNK = 4096
# Due pages sorted at a time without a budget: some 7 MB (1.4 KB each, measured over a fleet's recrawl). Pages come in
# the order of their keys, which are digests: any so many of them are a fair sample of all.
SORTED_AT_A_TIME = 5_000
SORTED_OF_A_BUDGET = 50_000
"""The same with a budget, whose visits are to be made the best first: 70 MB."""
# A visit that a 304 may answer costs about a tenth of a body's bytes, but the same turn of its host (ours).
_CONDITIONAL_COST = 0.7
# Before a rank is known, each link further from a seed makes a page this much less important (ours).
_DEPTH_FACTOR = 0.8
# Feeds and sitemaps report others' changes: they are visited as often as what matters most.
_LISTS_IMPORTANCE = 3.0
# A page that shows an old picture has its text: a requisite weighs as little as a page five links from a seed, and may
# wait for the longest tier (ours).
_REQUISITES_IMPORTANCE = 0.3
# What counts as recent for them, of what counts for pages: six hours where that is two days.
_LISTS_RECENT_SHARE = 1 / 8
# Pages that were answered with an error or a redirect are looked at when their tier's time is over, after the others.
_GONE_SHARE = 0.1


# Behind seeds, robots.txt and what was announced, before links that are new.
_PRIORITY = SEED + 1


class DueRevisit(NamedTuple):
    """A known page to be visited again."""

    score: float
    key: bytes
    record: PageRecord
    history: History


class Importance(NamedTuple):
    """A page's weight (1 on average) and its longest wait in days."""

    weight: float
    longest_days: float


def again(page: DueRevisit, now: float) -> tuple[DiscoveredUrl, PageRecord]:
    """The page on its way into its queue, and its record, which says that it waits there."""
    history = page.history
    kind, depth, origin = history.kind, history.depth, history.origin
    priority, flags, hops = SEED if history.announced else _PRIORITY, FLAG_RECRAWL, ""
    if kind == SITEMAP:
        flags, depth, hops = flags | FLAG_SITEMAP, 0, "M" * depth
    elif kind == REQUISITE:
        flags |= FLAG_REQUISITE | (FLAG_EXTERNAL if origin else 0)
        priority, depth, hops = of_requisite(among=True, is_external=bool(origin)), 0, HOP_EMBED * depth
    found = DiscoveredUrl(parse(page.record.url), depth, hops, "", priority, flags, origin)
    return found, page.record._replace(history=history._replace(queued_at=now).pack())


def seed_again(address: Address, record: PageRecord, now: float) -> tuple[DiscoveredUrl, PageRecord]:
    """The same of a new seed whose page is known: as a link, or from an index that was imported."""
    found = seed_found(address)
    history = History.unpack(record.history)._replace(queued_at=now)
    return found._replace(flags=found.flags | FLAG_RECRAWL), record._replace(history=history.pack())


def by_depth(url: str, history: History) -> Importance:
    """Importance before a rank is known: seeds first, then by links from them."""
    if history.kind in (FEED, SITEMAP):
        return Importance(_LISTS_IMPORTANCE, TIERS[0][1])
    if history.kind == REQUISITE:
        return Importance(_REQUISITES_IMPORTANCE, TIERS[-1][1])
    return Importance(_DEPTH_FACTOR**history.depth, TIERS[min(history.depth, len(TIERS) - 1)][1])


def by_rank(ranks: Ranks) -> Callable[[str, History], Importance]:
    """Importance by what ``scrapy rank`` found; pages that it has not seen count by their depth."""

    def importance(url: str, history: History) -> Importance:
        rank = ranks.of(url) if history.kind == PAGE else None
        if rank is None:
            return by_depth(url, history)
        return Importance(rank.weight, longest_wait_days(rank.less_important))

    return importance


class RevisitPolicy(NamedTuple):
    """Which pages the operator wants to be visited again."""

    budget: int | None  # visits at most; None: all that are worth something
    recent_seconds: float  # no page sooner after its last visit; of feeds and sitemaps an eighth of that
    importance: Callable[[str, History], Importance] = by_depth


Pages = Iterable[tuple[bytes, PageRecord]]
HostOf = Callable[[str], HostHistory]


def due(pages: Callable[[], Pages], host_of: HostOf, now: float, policy: RevisitPolicy) -> Iterator[list[DueRevisit]]:
    """The visits that are worth most now, in lists to be queued one after the other, each the best first.

    Memory: one list. With a budget ``pages`` are read twice: first their scores are counted, to see what it reaches
    (to within the width of a class of ``rules/revisits/budget_shares``).
    """
    if policy.budget is None:
        return sorted_some(scored(pages(), host_of, now, policy))
    counts = counted(page.score for page in scored(pages(), host_of, now, policy))
    reached = cut(counts, policy.budget).within(scored(pages(), host_of, now, policy), lambda page: page.score)
    return sorted_some(reached, SORTED_OF_A_BUDGET)


def sorted_some(found: Iterable[DueRevisit], most: int = SORTED_AT_A_TIME) -> Iterator[list[DueRevisit]]:
    """All of these, at most so many at a time, each time the best first."""
    rest = iter(found)
    while some := sorted(islice(rest, most), reverse=True):
        yield some


def best(found: Iterable[DueRevisit], most: int) -> list[DueRevisit]:
    """The ``most`` of these with the highest scores, the best first."""
    return heapq.nlargest(most, found)


def looked_at(record: PageRecord, history: History) -> float:
    """When a page was last looked at (epoch seconds): shown, or asked for without having been shown yet."""
    return history.seen_at if history.visits else record.fetched_at


def chosen_since(record: PageRecord, history: History, at: float) -> bool:
    """Whether a page was chosen ``at`` that moment or later: it waits in its queue or was visited again."""
    if history.queued_at >= at:
        return True
    first_visit = history.visits <= 1 and history.seen_at == record.fetched_at
    return history.seen_at > 0 and record.fetched_at >= at and not first_visit


def scored(pages: Pages, host_of: HostOf, now: float, policy: RevisitPolicy) -> Iterator[DueRevisit]:
    """The pages that are due and whose visit is worth something now, in the order of ``pages``."""
    import numpy as np  # by crawls that have pages to visit again only

    from crawlerproject.rules.revisits.change_rate import Circumstances, score, unpacked

    candidates = _candidates(pages, host_of, now, policy.recent_seconds)
    while chunk := list(islice(candidates, _CHUNK)):
        weights, longest, beliefs, costs, shares = [], [], [], [], []
        for _, record, history, host in chunk:
            weight, days = policy.importance(record.url, history)
            weights.append(weight)
            longest.append(days)
            beliefs.append(unpacked(history.belief) if history.belief else host.prior())
            costs.append(_CONDITIONAL_COST if record.etag or record.last_modified else 1.0)
            shares.append(1.0 if record.status in (200, 304) else _GONE_SHARE)
        histories = [history for _, _, history, _ in chunk]
        circumstances = Circumstances(
            importance=np.array(weights) * np.array(shares),
            longest_days=np.array(longest),
            new_links=np.array([history.new_links for history in histories]),
            boosted=np.array([history.announced for history in histories]),
            cost=np.array(costs),
        )
        waited_days = np.array([(now - looked_at(record, history)) / DAY_SECONDS for _, record, history, _ in chunk])
        scores = score(np.array(beliefs), waited_days, circumstances)
        for value, (key, record, history, _) in zip(np.asarray(scores).tolist(), chunk, strict=True):
            if value > 0:
                yield DueRevisit(value, key, record, history)


def _candidates(
    pages: Pages, host_of: HostOf, now: float, recent_seconds: float
) -> Iterator[tuple[bytes, PageRecord, History, HostHistory]]:
    """Pages that are due and do not wait in their queues already."""
    for key, record in pages:
        history = History.unpack(record.history)
        if not history.seen_at or history.queued_at:
            continue
        recent = 0.0 if history.announced else recent_seconds
        if history.kind in (FEED, SITEMAP):
            recent *= _LISTS_RECENT_SHARE
        if is_due(max(record.fetched_at, history.seen_at), history.fresh_until, now, recent):
            yield key, record, history, host_of(host_key(record.url))
