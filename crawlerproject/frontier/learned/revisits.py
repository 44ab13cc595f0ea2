"""Pages that are visited again: how they are asked for, what a 304 stands for, what is remembered afterwards."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from crawlerproject.rules.revisits.history import FEED, PAGE, SITEMAP, History, HostHistory, known, next_visit
from crawlerproject.rules.revisits.refetch import Change, change, fresh_until, learned, validators
from crawlerproject.stores.histories import HOST_FACT
from crawlerproject.stores.protocols import FLAG_HUB, FLAG_RECRAWL, FLAG_SITEMAP, FrontierStore, PageRecord, QueuedPage

if TYPE_CHECKING:
    from crawlerproject.items import Page

# Hosts whose history is kept at hand between two visits to them; 200 bytes each.
_HOSTS_KEPT = 20_000


class Revisits:
    """One crawl's memory of visits. What changes goes with the next commit."""

    def __init__(self, store: FrontierStore, rng: random.Random, *, near_bits: int, check_share: float) -> None:
        self._store = store
        self._rng = rng
        self._check_share = check_share  # of conditional requests sent in full
        self._near_bits = near_bits  # in which the SimHash of nearly the same text differs
        self._hosts: dict[str, HostHistory] = {}
        self._dirty: set[str] = set()

    def host(self, name: str) -> HostHistory:
        """A host's history."""
        found = self._hosts.get(name)
        if found is None:
            if len(self._hosts) >= _HOSTS_KEPT:
                self._hosts = {name: self._hosts[name] for name in self._dirty}
            found = self._hosts[name] = HostHistory.unpack(self._store.fact(HOST_FACT + name) or b"")
        return found

    def headers(self, row: QueuedPage) -> dict[str, str]:
        """The headers that make a revisit conditional; none for a first visit, a check, or a host not believed."""
        record = self._record(row)
        if record is None or self._rng.random() < self._check_share:
            return {}
        kept = known(History.unpack(record.history), record.etag, record.last_modified, record.digest)
        return validators(kept, self.host(row.host).trust)

    def record(self, page: Page, digest: bytes, now: float) -> PageRecord:
        """What is known of a page after this attempt; its host's history has learnt by then."""
        row, status = page.lease.row, page.status or 0
        record = PageRecord(page.url, page.reason, status, now, digest, page.etag, page.last_modified)
        if row.flags & FLAG_HUB:  # no page: neither archived nor visited again
            return PageRecord(page.url, page.reason, 0, now)
        old = self._record(row)
        fresh = fresh_until(page.freshness, now) if status in (200, 304) else now
        if old is None:
            if status != 200:
                return record
            kind = SITEMAP if row.flags & FLAG_SITEMAP else FEED if page.is_feed else PAGE
            text_print, origin = page.fingerprint or 0, row.note if kind == SITEMAP else ""
            depth = row.hops.count("M") if kind == SITEMAP else row.depth
            first = History(kind, depth, 1, now, fresh, fingerprint=text_print, origin=origin)
            return record._replace(history=first.pack())
        return self._again(page, record, old, fresh, now)

    def take_facts(self) -> list[tuple[str, bytes]]:
        """Host histories that changed since the last call."""
        dirty, self._dirty = self._dirty, set()
        return [(HOST_FACT + name, self._hosts[name].pack()) for name in dirty]

    def _again(self, page: Page, record: PageRecord, old: PageRecord, fresh: float, now: float) -> PageRecord:
        name = page.lease.row.host
        history, host = History.unpack(old.history), self.host(name)
        before = known(history, old.etag, old.last_modified, old.digest)
        moved = change(before, record.status, record.digest)
        if moved is Change.CHANGED and history.fingerprint and page.fingerprint:
            near = (history.fingerprint ^ page.fingerprint).bit_count() <= self._near_bits
            moved = Change.NEAR if near else moved
        host = host._replace(
            trust=learned(host.trust, before, record.status, page.etag, page.last_modified, record.digest)
        )
        history, host = next_visit(history, host, moved, now, fresh_until=fresh, new_links=page.new_links)
        if record.status == 200:
            history = history._replace(fingerprint=page.fingerprint or 0)
        self._hosts[name] = host
        self._dirty.add(name)
        if record.status == 304 or moved is Change.UNKNOWN:
            # What is archived stays the old content; RFC 9110 15.4.5: a 304 may bring newer validators.
            record = record._replace(
                digest=old.digest,
                etag=page.etag or old.etag if record.status == 304 else old.etag,
                last_modified=page.last_modified or old.last_modified if record.status == 304 else old.last_modified,
            )
        return record._replace(history=history.pack())

    def _record(self, row: QueuedPage) -> PageRecord | None:
        return self._store.page(row.key) if row.flags & FLAG_RECRAWL else None
