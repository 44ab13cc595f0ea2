"""The end of a page: what it repeats, its place in the archive, its line in the log, the end of its lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.crawl.progress.troubles import GOOD
from crawlerproject.errors import StorageError
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.learned.learner import Visit
from crawlerproject.frontier.politeness import FetchOutcome
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.log_line import Attempt
from crawlerproject.rules.archive.payload_type import SAMPLE_BYTES
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Context, Original, payload_digest
from crawlerproject.rules.politeness.backoff import retry_after_seconds
from crawlerproject.stores.archive.archive import Written, exchange_of
from crawlerproject.stores.protocols import FLAG_STRANGER, Fingerprint, PageRecord

if TYPE_CHECKING:
    from crawlerproject.crawl.crawl import Crawl
    from crawlerproject.items import Page


class PageCompletion:
    """Ends pages of a crawl, one call each of ``finish`` or ``put_back``."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._unwritten: list[Page] = []

    def repeated(self, page: Page) -> Duplicate | None:
        """What a page repeats: another's payload, what it names as canonical, or nearly another's text."""
        row, duplicates = page.lease.row, self._crawl.duplicates
        if page.payload:
            page.digest = payload_digest(page.payload)
            exact = duplicates.exact(page.digest, page.url)
            if exact is not None:
                return exact
        if page.canonical is not None and page.canonical.key != row.page_key:
            return Duplicate("canonical", page.canonical.url)
        if page.fingerprint is None:
            return None
        try:
            return duplicates.near(Fingerprint(row.host, page.fingerprint, row.page_key))
        except StorageError:
            return None  # a page that is not compared is archived like any other

    def finish(self, page: Page) -> None:
        """Archive and log a page and end its lease; without room on the disk it is kept until there is."""
        if self._crawl.lost:  # the page is another worker's now, whatever came of it here
            self.put_back(page)
            return
        try:
            written = self._write(page)
        except StorageError as error:
            self._unwritten.append(page)
            self._crawl.pause(str(error))
            return
        self._end_or_lose(page, written)

    def put_back(self, page: Page) -> None:
        """Return a page whose end failed through a fault of ours, unless it did end."""
        if not page.lease.ended:
            self._crawl.frontier.put_back(page.lease, self._crawl.now())

    def write_again(self) -> None:
        """End the pages that found no room; StorageError when there still is none."""
        while self._unwritten:
            written = self._write(self._unwritten[0])
            self._end_or_lose(self._unwritten.pop(0), written)
            if self._crawl.lost:
                raise StorageError(self._crawl.lost)

    def forget(self) -> None:
        """Return the pages that found no room: they are another worker's now."""
        while self._unwritten:
            self.put_back(self._unwritten.pop())

    def _end_or_lose(self, page: Page, written: Written | None) -> None:
        """End a page; when Redis does not tell what that takes, what is half ended here is left to the next life."""
        try:
            self._end(page, written)
        except StorageError as error:
            if self._crawl.fleet is None:
                raise
            self.put_back(page)
            self._crawl.lose(str(error))

    def _write(self, page: Page) -> Written | None:
        crawl, wire, lease = self._crawl, page.wire, page.lease
        if lease.is_render:
            return crawl.renders.write(page)
        if wire is None or not wire.status or lease.is_hub:
            return None
        context = Context(
            page.url,
            lease.row.via,
            lease.embed.page.hops + lease.row.hops if lease.embed else lease.row.hops,
            lease.delay_seconds,
            wire.started_at - lease.host.answered_at if lease.host.answered_at else None,
            page.body[:SAMPLE_BYTES],
            page.notes,
        )
        digest = page.digest or payload_digest(wire.body)
        original = self._original(page, digest) if lease.embed is None else None
        written = crawl.archive.write(exchange_of(wire), context, digest, original)
        if lease.embed is None:
            self._remember(page, written, original)
        if lease.is_robots and wire.status == 200 and not page.unusable:
            crawl.archive.robots_copy(lease.row.note, wire.started_at, page.body)
        return written

    def _original(self, page: Page, digest: bytes) -> Original | None:
        """The capture that this one need not repeat."""
        duplicates = self._crawl.duplicates
        if page.status == 304:
            before = self._crawl.store.page(page.lease.row.page_key)
            original = duplicates.original(before.digest) if before else None
            return original and original._replace(profile=NOT_MODIFIED)
        if page.to_render is not None:
            return None  # the browser is given this very record
        return duplicates.original(digest) if page.payload else None

    def _remember(self, page: Page, written: Written, original: Original | None) -> None:
        """Let later pages refer to this one."""
        duplicates, changes = self._crawl.duplicates, self._crawl.frontier.state.changes
        row = page.lease.row
        if page.payload and original is None:
            duplicates.add_payload(written.digest, Original(written.record_id, page.url, written.date), changes)
        if page.fingerprint is not None and page.duplicate is None:
            duplicates.add_fingerprint(Fingerprint(row.host, page.fingerprint, row.page_key), page.url, changes)

    def _end(self, page: Page, written: Written | None) -> None:
        crawl, wire, lease = self._crawl, page.wire, page.lease
        now = crawl.now()
        self._count(page)
        if lease.is_render:
            crawl.renders.end(page, written)
            return
        if wire is not None and wire.ended_at:
            if lease.host.answered_at:
                crawl.tallies.paused(wire.started_at - lease.host.answered_at, lease.delay_seconds)
            lease.host.answered_at = wire.ended_at
            lease.host.busy_seconds += max(0.0, wire.ended_at - wire.started_at) + lease.host.delay_seconds
        if page.status:
            crawl.tallies.answered(page.status, wire.ttfb_seconds if wire else None)
        digest = written.digest if written else b""
        crawl.archive.attempt(_attempt(page, written, now), now)
        ending = FetchOutcome(
            page.reason,
            None if page.unusable else page.status,
            wire.ttfb_seconds if wire else None,
            retry_after_seconds(page.retry_after or None, now, crawl.retry_after_max),
            page.location,
            lease.row.tries,
            stranger=not lease.embed.own if lease.embed else bool(lease.row.flags & FLAG_STRANGER),
            render=crawl.renders.place(page, written),
        )
        visit = _visit(page, digest)
        if lease.embed is not None:  # no page of its own: nothing is kept of it but its capture
            crawl.frontier.finish(lease, ending, PageRecord(page.url, page.reason, 0, now), b"", now)
            crawl.learned.certificates.learn(visit, now)
            return
        record = crawl.learned.revisits.learn(visit, now)
        crawl.frontier.finish(lease, ending, record, page.body, now)
        if page.reason not in GOOD:
            crawl.troubles.ended(page, now)
        crawl.learned.learn(visit, now)

    def _count(self, page: Page) -> None:
        crawl, wire = self._crawl, page.wire
        stats = crawl.crawler.stats
        assert stats is not None
        stats.inc_value(f"{'embeds' if page.lease.embed else 'pages'}/{page.reason}")
        if wire is not None:
            stats.inc_value("bytes/received", wire.received_bytes)
            crawl.bytes += wire.received_bytes
            page.lease.host.received_bytes += wire.received_bytes
            if wire.truncated:
                stats.inc_value(f"truncated/{wire.truncated}")
        if page.lease.embed is not None:
            return
        if page.lease.is_render:
            crawl.errors += page.reason is not Reason.RENDERED
        elif page.status is None:
            crawl.errors += 1
        elif not page.lease.is_robots:
            crawl.pages += 1
            page.lease.host.pages += 1


def _visit(page: Page, digest: bytes) -> Visit:
    """What is learned from; by position, for speed."""
    return Visit(
        page.lease.row,
        page.reason,
        page.status,
        digest,
        page.error,
        page.location,
        page.etag,
        page.last_modified,
        page.freshness,
        page.text_marks,
        page.fingerprint,
        page.duplicate,
        page.is_feed,
        page.to_render is not None,
        page.wire is not None and page.wire.truncated == "time",
        bool(page.found),
        page.new_links,
    )


def _attempt(page: Page, written: Written | None, now: float) -> Attempt:
    """The page's line in the request log; by position, for speed."""
    wire, lease = page.wire, page.lease
    row = lease.row
    return Attempt(
        wire.started_at if wire and wire.started_at else lease.leased_at,
        wire.ended_at if wire and wire.ended_at else now,
        page.url,
        page.reason,
        "POST" if lease.is_hub else "GET",
        page.status,
        row.host,
        (lease.address if lease.embed and lease.embed.proxy else wire.ip) if wire else "",
        row.via,
        row.depth,
        row.hops,
        page.mime,
        wire.received_bytes if wire else 0,
        page.location,
        wire.ttfb_seconds if wire else None,
        None,
        lease.delay_seconds,
        written.digest_text if written else "",
        written.filename if written else "",
        written.offset if written else None,
        written.length if written else None,
        page.error,
        row.tries,
        wire.truncated if wire else None,
        False,
        page.duplicate.kind if page.duplicate else "",
        page.duplicate.url if page.duplicate else "",
    )
