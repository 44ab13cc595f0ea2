"""Pages that are visited again: how they are asked for, what a 304 stands for, what is remembered afterwards.

Of a URL that has shown no page yet is remembered where it was found, and until when it waits (``wait_seconds``). A
sitemap, a feed or a push that says that a page has changed is believed as far as its host earned it. In a recrawl those
come first whose visit is worth most, within a budget (``RevisitPolicy``).
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.frontier.learned.models import HostModel
from crawlerproject.frontier.passage import DiscoveredUrl, Visit, linking_domain, seed_found
from crawlerproject.reasons import Reason
from crawlerproject.rules.revisits.budget_shares import counted, cut
from crawlerproject.rules.revisits.history import (
    DAY_SECONDS,
    FEED,
    PAGE,
    REQUISITE,
    SITEMAP,
    TIERS,
    Answer,
    Change,
    Found,
    History,
    HostHistory,
    Known,
    change,
    fit,
    fresh_until,
    is_due,
    learned,
    longest_wait_days,
    next_visit,
    validators,
    wait_seconds,
)
from crawlerproject.rules.row_kinds import (
    FLAG_EXTERNAL,
    FLAG_RECRAWL,
    FLAG_REQUISITE,
    FLAG_SITEMAP,
    HOP_EMBED,
    ROW_KINDS,
    SEED,
    RowKind,
    of_requisite,
)
from crawlerproject.rules.url.urls import Address, host_key, parse
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import FrontierStore, HostFact, PageRecord, QueuedPage

if TYPE_CHECKING:
    from crawlerproject.stores.index.ranks import Ranks

# Hosts whose history is in memory between two visits to them; 200 bytes each.
_HOSTS_KEPT = 20_000
# A host that has announced nothing before is believed so often in one run (ours): enough to find out.
_CREDIT = 20
# Hosts whose credit is remembered, those asked last: 15 MB. One that is forgotten starts again.
_CREDITED_HOSTS_KEPT = 100_000
# Clocks differ; a date further ahead than this is a mistake.
_AHEAD_SECONDS = DAY_SECONDS


CHECK_SHARE = 0.02
"""Of revisits, those without validators, which find hosts that answer 304 for changed pages too
(RECRAWL_FULL_FETCH_SHARE, ours)."""


class Revisits(HostModel[HostHistory]):
    """The histories of hosts; those of pages are in their records."""

    def __init__(self, store: FrontierStore, rng: random.Random, *, near_bits: int, check_share: float) -> None:
        """``near_bits``: in which the SimHash of nearly the same text differs; ``check_share``: of conditional
        requests that are sent in full, to see whether a 304 would have been true.
        """
        super().__init__(store, HostFact.VISITS, HostHistory, _HOSTS_KEPT)
        self._pages = store
        self._rng = rng
        self._check_share = check_share
        self._near_bits = near_bits
        self._believed: LruCache[str, int] = LruCache(_CREDITED_HOSTS_KEPT)  # announced pages by host, in this run

    def headers(self, row: QueuedPage) -> dict[str, bytes]:
        """The headers that make a revisit conditional; none for a first visit, a check, or a host not believed.

        Neither when the host's robots.txt has come to allow more since the last visit: what it forbade when links to it
        were found is not known, and a 304 would hide these links for as long as the page does not change.
        """
        record = self._pages.page(row.page_key, row.host) if row.kind.is_recrawl else None
        if record is None or self._rng.random() < self._check_share:
            return {}
        host = self.of(row.host)
        if record.fetched_at < host.loosened_at:
            return {}
        return validators(Known(record.etag, record.last_modified, record.digest), host.trust)

    def rules_loosened(self, host: str, now: float) -> None:
        """A host's robots.txt may allow more than before."""
        self.replace(host, self.of(host)._replace(loosened_at=now))

    def learn(self, visit: Visit, now: float) -> PageRecord:
        """What is known of a page after this visit; its host's history has learned from it by then."""
        row, status, reason, etag, modified = (
            visit.row,
            visit.status or 0,
            visit.reason,
            visit.etag,
            visit.last_modified,
        )
        etag, modified = etag and fit(etag), modified and fit(modified)
        kind = ROW_KINDS[row.flags]
        if kind.is_hub:  # no page: neither archived nor visited again
            return PageRecord(row.url, reason, 0, now)
        old = self._pages.page(row.page_key, row.host) if kind.is_recrawl else None
        if status != 200 or kind.is_robots or old is not None:
            record = PageRecord(row.url, reason, status, now, visit.digest, etag, modified)
            if kind.is_robots:  # asked for when a host's rules are needed
                return record
            if old is not None and (history := History.unpack(old.history)).visits:
                return self._again(visit, record, old, history, now)
            if status != 200:
                return unseen(row, record, old)
        found_as, depth, origin = _found_as(row, kind, is_feed=visit.is_feed)
        fresh = fresh_until(visit.freshness, now) if visit.freshness else now
        first = History(found_as, depth, 1, now, fresh, fingerprint=visit.fingerprint or 0, origin=origin)
        return PageRecord(row.url, reason, status, now, visit.digest, etag, modified, first.pack())

    def _again(self, visit: Visit, record: PageRecord, old: PageRecord, history: History, now: float) -> PageRecord:
        name = visit.row.host
        host, fresh = self.of(name), fresh_until(visit.freshness or {}, now) if record.status in (200, 304) else now
        before = Known(old.etag, old.last_modified, old.digest)
        status = 0 if record.status == 304 and visit.reason is not Reason.NOT_MODIFIED else record.status
        answer = Answer(status, record.etag, record.last_modified, record.digest)
        moved = change(before, answer)
        if moved is Change.CHANGED and history.fingerprint and visit.fingerprint:
            near = (history.fingerprint ^ visit.fingerprint).bit_count() <= self._near_bits
            moved = Change.NEAR if near else moved
        host = host._replace(trust=learned(host.trust, before, answer))
        history, host = next_visit(history, host, Found(moved, now, fresh, visit.new_links))
        if record.status == 200:
            history = history._replace(fingerprint=visit.fingerprint or 0)
        self.replace(name, host)
        if status == 304 or moved is Change.UNKNOWN:
            # What is archived stays the old content; RFC 9110 15.4.5: a 304 may bring newer validators.
            newer = record if status == 304 else old
            etag, last_modified = newer.etag or old.etag, newer.last_modified or old.last_modified
            record = record._replace(digest=old.digest, etag=etag, last_modified=last_modified)
        return record._replace(history=history.pack())

    def announced(self, address: Address, changed_at: float, now: float) -> DueRevisit | None:
        """A known page whose change at ``changed_at`` was announced, marked so; None when that is not believed."""
        record = self._pages.page(address.key, address.host) if changed_at <= now + _AHEAD_SECONDS else None
        if record is None:
            return None
        history = History.unpack(record.history)
        if not history.seen_at or history.queued_at or history.announced or changed_at <= looked_at(record, history):
            return None
        host, believed = self.of(address.host), self._believed.get(address.host) or 0
        if not host.believes_lastmod or believed >= _CREDIT + 2 * host.lastmod_kept:
            return None
        self._believed[address.host] = believed + 1
        changed = history._replace(announced=1.0, fresh_until=min(history.fresh_until, changed_at))
        return DueRevisit(0.0, address.key, record, changed)


def unseen(row: QueuedPage, record: PageRecord, old: PageRecord | None) -> PageRecord:
    """The ``record`` of a URL that has not shown its page, with how long it waits; ``old``: what was known before."""
    before = History() if old is None else History.unpack(old.history)
    last_seconds = before.fresh_until - old.fetched_at if old is not None and before.seen_at else 0.0
    wait = wait_seconds(record.reason, record.status, last_seconds)
    if wait is None or not row.kind.waits_unseen:
        return record
    history = before
    if not before.seen_at:
        found_as, depth, origin = _found_as(row, row.kind)
        history = History(found_as, depth, seen_at=record.fetched_at, origin=origin)
    history = history._replace(fresh_until=record.fetched_at + wait, queued_at=0.0, announced=0.0)
    return record._replace(history=history.pack())


def _found_as(row: QueuedPage, kind: RowKind, *, is_feed: bool = False) -> tuple[int, int, str]:
    """Kind, depth and origin of ``History``: what is to be remembered of where a page was found."""
    if kind.is_requisite:
        return REQUISITE, row.hops.count(HOP_EMBED), linking_domain(row.host, row.via, row.flags, row.note)
    if kind.is_list:
        return SITEMAP, row.hops.count("M"), row.note
    return FEED if is_feed else PAGE, row.depth, ""


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
