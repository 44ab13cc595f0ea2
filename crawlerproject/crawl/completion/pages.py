"""The end of a page: its place in the archive, its line in the log, the end of its lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.crawl.completion.renders import RenderCompletion
from crawlerproject.crawl.progress.troubles import GOOD
from crawlerproject.errors import StorageError
from crawlerproject.frontier.learned.learner import Visit
from crawlerproject.frontier.politeness import FetchOutcome
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.log_line import Attempt
from crawlerproject.rules.politeness.backoff import retry_after_seconds
from crawlerproject.stores.protocols import FLAG_STRANGER, PageRecord

if TYPE_CHECKING:
    from crawlerproject.crawl.completion.page_archive import Records
    from crawlerproject.crawl.progress.troubles import Troubles
    from crawlerproject.crawl.run import Run
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.learners import Learners
    from crawlerproject.items import Page
    from crawlerproject.stores.archive.archive import Written


class PageCompletion:
    """Ends the pages of a session: one call of ``finish`` or ``put_back`` for each."""

    def __init__(
        self,
        frontier: Frontier,
        records: Records,
        learned: Learners,
        troubles: Troubles,
        run: Run,
        retry_after_max_seconds: float,
    ) -> None:
        """``retry_after_max_seconds``: a longer Retry-After counts as this long."""
        self._frontier = frontier
        self._records = records
        self._learned = learned
        self._troubles = troubles
        self._run = run
        self._retry_after_max_seconds = retry_after_max_seconds
        self.renders = RenderCompletion(frontier, records, learned, run)
        self._unwritten: list[Page] = []

    def finish(self, page: Page) -> None:
        """Archive and log a page and end its lease; without room on the disk it is kept until there is some."""
        if self._run.lost:  # another worker has the page now
            self.put_back(page)
            return
        try:
            written = self._records.write(page)
        except StorageError as error:
            self._unwritten.append(page)
            self._run.pause(str(error))
            return
        self._end_or_lose(page, written)

    def put_back(self, page: Page) -> None:
        """Return the lease of a page whose completion failed by an error of our own, unless it has ended."""
        if not page.lease.ended:
            self._frontier.put_back(page.lease, self._run.now())

    def write_again(self) -> None:
        """End the pages that found no room; StorageError when there still is none."""
        while self._unwritten:
            written = self._records.write(self._unwritten[0])
            self._end_or_lose(self._unwritten.pop(0), written)
            if self._run.lost:
                raise StorageError(self._run.lost)

    def forget(self) -> None:
        """Return the leases of pages that found no room: another worker has them now."""
        while self._unwritten:
            self.put_back(self._unwritten.pop())

    def _end_or_lose(self, page: Page, written: Written | None) -> None:
        """End a page. When Redis fails meanwhile, the session is lost with what is half ended."""
        try:
            self._end(page, written)
        except StorageError as error:
            if not self._run.rejoins:
                raise
            self.put_back(page)
            self._run.lose(str(error))

    def _end(self, page: Page, written: Written | None) -> None:
        self._count(page)
        if page.lease.is_render:
            self.renders.end(page, written)
            return
        wire, lease, now = page.wire, page.lease, self._run.now()
        if wire is not None and wire.ended_at:
            left_alone_seconds = lease.host.answered(wire.started_at, wire.ended_at)
            if left_alone_seconds is not None:
                self._run.tallies.paused(left_alone_seconds, lease.delay_seconds)
        if page.status:
            self._run.tallies.answered(page.status, wire.ttfb_seconds if wire else None)
        self._records.log(_attempt(page, written, now), now)
        outcome = FetchOutcome(
            page.reason,
            None if page.unusable else page.status,
            wire.ttfb_seconds if wire else None,
            retry_after_seconds(page.retry_after or None, now, self._retry_after_max_seconds),
            page.location,
            lease.row.tries,
            stranger=not lease.embed.own if lease.embed else bool(lease.row.flags & FLAG_STRANGER),
            render=self.renders.place(page, written),
        )
        self._decide(page, outcome, _visit(page, written.digest if written else b""), now)

    def _decide(self, page: Page, outcome: FetchOutcome, visit: Visit, now: float) -> None:
        """Decide the fate of the page and of its host, and learn from the visit."""
        lease, learned = page.lease, self._learned
        if lease.embed is not None:  # no page of its own: nothing is kept of it but its capture
            self._frontier.finish(lease, outcome, PageRecord(page.url, page.reason, 0, now), b"", now)
            learned.certificates.learn(visit, now)
            return
        record = learned.revisits.learn(visit, now)
        self._frontier.finish(lease, outcome, record, page.body, now)
        if page.reason not in GOOD:
            self._troubles.ended(page, now)
        learned.learn(visit, now)

    def _count(self, page: Page) -> None:
        stats, tallies, wire = self._run.stats, self._run.tallies, page.wire
        stats.inc_value(f"{'embeds' if page.lease.embed else 'pages'}/{page.reason}")
        if wire is not None:
            stats.inc_value("bytes/received", wire.received_bytes)
            tallies.bytes += wire.received_bytes
            page.lease.host.received_bytes += wire.received_bytes
            if wire.truncated:
                stats.inc_value(f"truncated/{wire.truncated}")
        if page.lease.embed is not None:
            return
        if page.lease.is_render:
            tallies.errors += page.reason is not Reason.RENDERED
        elif page.status is None:
            tallies.errors += 1
        elif not page.lease.is_robots:
            tallies.pages += 1
            page.lease.host.pages += 1


def _visit(page: Page, digest: bytes) -> Visit:
    """The page as the learners see it; by position, for speed."""
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
