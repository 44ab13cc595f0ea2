"""Pages that are visited again: how they are asked for, what a 304 stands for, what is remembered afterwards.

Of a URL that has shown no page yet is remembered where it was found, and until when it waits (``wait_seconds``). A
sitemap, a feed or a push that says that a page has changed is believed as far as its host earned it.
"""

from __future__ import annotations

import random

from crawlerproject.frontier.discovered import linking_domain
from crawlerproject.frontier.learned.models import HostModel
from crawlerproject.frontier.learned.revisit_queue import DueRevisit, looked_at
from crawlerproject.frontier.lease import Visit
from crawlerproject.rules.revisits.history import (
    FEED,
    PAGE,
    REQUISITE,
    SITEMAP,
    Found,
    History,
    HostHistory,
    next_visit,
)
from crawlerproject.rules.revisits.refetch import (
    DAY_SECONDS,
    Answer,
    Change,
    Known,
    change,
    fit,
    fresh_until,
    learned,
    validators,
    wait_seconds,
)
from crawlerproject.rules.url.priority import HOP_EMBED
from crawlerproject.rules.url.urls import Address
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import FrontierStore, HostFact, PageRecord, QueuedPage

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
        row, status, etag, modified = visit.row, visit.status or 0, fit(visit.etag), fit(visit.last_modified)
        record = PageRecord(row.url, visit.reason, status, now, visit.digest, etag, modified)
        if row.kind.is_hub:  # no page: neither archived nor visited again
            return PageRecord(row.url, visit.reason, 0, now)
        if row.kind.is_robots:  # asked for when a host's rules are needed
            return record
        old = self._pages.page(row.page_key, row.host) if row.kind.is_recrawl else None
        if old is not None and (history := History.unpack(old.history)).visits:
            return self._again(visit, record, old, history, now)
        if status != 200:
            return unseen(row, record, old)
        first = _first(row, is_feed=visit.is_feed)
        fresh = fresh_until(visit.freshness or {}, now)
        first = first._replace(visits=1, seen_at=now, fresh_until=fresh, fingerprint=visit.fingerprint or 0)
        return record._replace(history=first.pack())

    def _again(self, visit: Visit, record: PageRecord, old: PageRecord, history: History, now: float) -> PageRecord:
        name = visit.row.host
        host, fresh = self.of(name), fresh_until(visit.freshness or {}, now) if record.status in (200, 304) else now
        before = Known(old.etag, old.last_modified, old.digest)
        answer = Answer(record.status, record.etag, record.last_modified, record.digest)
        moved = change(before, answer)
        if moved is Change.CHANGED and history.fingerprint and visit.fingerprint:
            near = (history.fingerprint ^ visit.fingerprint).bit_count() <= self._near_bits
            moved = Change.NEAR if near else moved
        host = host._replace(trust=learned(host.trust, before, answer))
        history, host = next_visit(history, host, Found(moved, now, fresh, visit.new_links))
        if record.status == 200:
            history = history._replace(fingerprint=visit.fingerprint or 0)
        self.replace(name, host)
        if record.status == 304 or moved is Change.UNKNOWN:
            # What is archived stays the old content; RFC 9110 15.4.5: a 304 may bring newer validators.
            record = record._replace(
                digest=old.digest,
                etag=record.etag or old.etag if record.status == 304 else old.etag,
                last_modified=record.last_modified or old.last_modified if record.status == 304 else old.last_modified,
            )
        return record._replace(history=history.pack())

    def announced(self, address: Address, changed_at: float, now: float) -> DueRevisit | None:
        """A known page that is said to have changed at ``changed_at``, marked so; None when that is not believed."""
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
    history = before if before.seen_at else _first(row)._replace(seen_at=record.fetched_at)
    history = history._replace(fresh_until=record.fetched_at + wait, queued_at=0.0, announced=0.0)
    return record._replace(history=history.pack())


def _first(row: QueuedPage, *, is_feed: bool = False) -> History:
    """What is to be remembered of where a page was found."""
    if row.kind.is_requisite:
        origin = linking_domain(row.host, row.via, row.flags, row.note)
        return History(REQUISITE, row.hops.count(HOP_EMBED), origin=origin)
    if row.kind.is_list:
        return History(SITEMAP, row.hops.count("M"), origin=row.note)
    return History(FEED if is_feed else PAGE, row.depth)
