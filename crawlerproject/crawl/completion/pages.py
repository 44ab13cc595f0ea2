"""The end of a page: its place in the archive, its line in the log, the end of its lease."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from crawlerproject.crawl.completion.records import log_line
from crawlerproject.crawl.completion.renders import RenderCompletion
from crawlerproject.crawl.progress.failure_reports import GOOD
from crawlerproject.errors import StorageError
from crawlerproject.frontier.passage import caused_externally, document_of
from crawlerproject.reasons import Reason
from crawlerproject.rules.page.page import HTML_TYPES
from crawlerproject.rules.politeness.pauses import retry_after_seconds
from crawlerproject.rules.robots.policy import robots_verdict
from crawlerproject.rules.row_kinds import Budget, requisite_key
from crawlerproject.stores.protocols import PageRecord

if TYPE_CHECKING:
    from crawlerproject.crawl.completion.records import Records
    from crawlerproject.crawl.progress.failure_reports import FailureReporter
    from crawlerproject.crawl.run import Run
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.models import CrawlModels
    from crawlerproject.frontier.passage import Lease
    from crawlerproject.items import LeaseResult
    from crawlerproject.stores.archive.archive import Written

# A host whose request met a limit of ours rests so long: what it sent may have to be sent once more (ours).
_LIMIT_REST_SECONDS = 60.0
_SHOWN = frozenset({Reason.FETCHED, Reason.NOT_MODIFIED, Reason.RENDERED})
_WANTED = frozenset({Reason.FETCHED, Reason.REDIRECT})  # of a requisite, what brings a page further


class PageCompletion:
    """Ends the pages of a session: one call of ``finish`` or ``requeue`` for each."""

    def __init__(
        self,
        frontier: Frontier,
        records: Records,
        models: CrawlModels,
        reporter: FailureReporter,
        run: Run,
        retry_after_max_seconds: float,
    ) -> None:
        """``retry_after_max_seconds``: a longer Retry-After counts as this long."""
        self._frontier = frontier
        self._records = records
        self._models = models
        self._reporter = reporter
        self._run = run
        self._retry_after_max_seconds = retry_after_max_seconds
        self.renders = RenderCompletion(frontier, records, models, run)
        self._unwritten: list[LeaseResult] = []
        self._held = False  # the archive's file is closed: what ends waits for the next one

    def finish(self, result: LeaseResult) -> None:
        """Archive and log a page and end its lease; without room on the disk it is kept until there is some."""
        if self._run.lost:  # another worker has the page now
            self.requeue(result.lease)
            return
        if self._held:
            self._unwritten.append(result)
            return
        try:
            written = self._records.write(result)
        except StorageError as error:
            self._unwritten.append(result)
            self._run.pause(str(error))
            return
        self._end_or_lose(result, written)

    def requeue(self, lease: Lease) -> None:
        """Return the lease of a page whose completion failed by an error of our own, unless it has ended."""
        if not lease.ended:
            self._frontier.requeue(lease, self._run.now())

    def requeue_blameless(self, result: LeaseResult) -> None:
        """Return the lease of a request that failed through no fault of its host's, as if it had never been sent."""
        reason = result.reason
        self._run.stats.inc_value(f"spared/{reason}")
        if not result.lease.ended:
            now, rests = self._run.now(), _LIMIT_REST_SECONDS if reason is Reason.OUR_LIMIT else 0.0
            self._frontier.requeue(result.lease, now, now + rests)

    def write_again(self) -> None:
        """End the pages that found no room; StorageError when there still is none."""
        while self._unwritten:
            self._write_first()
            if self._run.lost:
                raise StorageError(self._run.lost)

    def _write_first(self) -> None:
        written = self._records.write(self._unwritten[0])
        self._end_or_lose(self._unwritten.pop(0), written)

    @property
    def unwritten(self) -> int:
        """How many pages have ended and are not archived."""
        return len(self._unwritten)

    def hold(self) -> None:
        """Archive nothing until ``release``: pages that end meanwhile wait."""
        self._held = True

    async def release(self) -> None:
        """End the pages that have waited, without holding the event loop; without room the crawl pauses."""
        self._held = False
        while self._unwritten and not self._run.lost:
            try:
                self._write_first()
            except StorageError as error:
                self._run.pause(str(error))
                return
            await asyncio.sleep(0)

    def discard_uncommitted(self) -> None:
        """Return the leases of pages that found no room: another worker has them now."""
        while self._unwritten:
            self.requeue(self._unwritten.pop().lease)

    def _end_or_lose(self, result: LeaseResult, written: Written | None) -> None:
        """End a page. When Redis fails meanwhile, the session is lost with what is half ended."""
        self._run.stats.inc_value(f"{result.row.kind.stat}/{result.reason}")
        try:
            if result.is_render:
                self._run.tallies.errors += result.reason is not Reason.RENDERED
                self.renders.end(result, written)
            else:
                self._end_fetch(result, written)
        except StorageError as error:
            if not self._run.rejoins:
                raise
            self.requeue(result.lease)
            self._run.lose(str(error))

    def _end_fetch(self, result: LeaseResult, written: Written | None) -> None:
        """Count and log what came, then let the frontier and the models judge it."""
        frontier, models, lease, row, kind = self._frontier, self._models, result.lease, result.row, result.row.kind
        now, wire, embed = self._run.now(), result.wire, lease.embed
        self._count(result)
        self._records.log(now, log_line(result, written, now))
        result.digest = written.digest if written else b""
        result.retry_after_seconds = retry_after_seconds(result.retry_after or None, now, self._retry_after_max_seconds)
        result.stranger = embed.external if embed else caused_externally(row)
        result.render = self.renders.place(result.shell, written)
        # A requisite that turned out to be HTML: a page that links lead to all the same, if any do.
        result.apart = kind.budget is Budget.REQUISITES and result.status == 200 and result.mime in HTML_TYPES
        if wire is not None:
            # There is a page of which not all came: its body broke off, or a cache left it out (304, never asked).
            result.cut = wire.status == 200 and wire.truncated == "disconnect"
            result.cut = result.cut or (wire.status == 304 and not kind.is_recrawl)
            result.too_slow = wire.truncated == "time"
        if result.target is not None and result.target.address.key == row.page_key:
            # Redirected to what is known under the page's own key: it differs in a session id or the like.
            result.respelled = result.target.address.url if result.target.address.url != row.url else ""
        if kind.is_robots:
            what = "terms" if document_of(row.hops) else "robots"
            self._run.stats.inc_value(f"{what}/{robots_verdict(result.status).value}")
        if embed is not None:  # no page of its own: nothing is kept of it but its capture
            frontier.finish(lease, result, PageRecord(row.url, result.reason, 0, now), now)
            models.certificates.learn(result, now)
            if embed.foreign:
                models.traps.learn_embed(result, embed.page.host)
            if result.status == 200:  # the page as its scripts leave it may name it among its requisites
                frontier.state.recent.add([requisite_key(row.key)])
            return
        record = models.revisits.learn(result, now)
        if kind.is_requisite:
            self._end_requisite(result, record, now)
            return
        frontier.finish(lease, result, record, now)
        if result.reason not in GOOD:
            if lease.host.rest_until > now:
                self._run.stats.inc_value(f"rests/{result.reason}")
            self._reporter.ended(result, now)
        models.learn(result, now)

    def _end_requisite(self, result: LeaseResult, record: PageRecord, now: float) -> None:
        """No page: it says nothing of its host's pages. A document is not visited again but as a page."""
        row, models = result.row, self._models
        if result.apart:
            record = record._replace(history=b"")
        self._frontier.finish(result.lease, result, record, now)
        if result.status == 200 and not result.apart:  # a link to it is no news from now on
            self._frontier.state.recent.add([row.page_key])
        if not row.kind.is_recrawl:  # else the same bytes as before are no sign of a trap
            wanted = result.reason in _WANTED and (row.kind.is_frame or not result.apart)
            models.traps.learn_requisite(result, wanted=wanted)
        models.certificates.learn(result, now)

    def _count(self, result: LeaseResult) -> None:
        stats, tallies, lease, wire = self._run.stats, self._run.tallies, result.lease, result.wire
        host, kind, status = lease.host, result.row.kind, 0
        if wire is not None:
            status = wire.status
            stats.inc_value("bytes/received", wire.received_bytes)
            tallies.bytes += wire.received_bytes
            host.received_bytes += wire.received_bytes
            if wire.truncated:
                stats.inc_value(f"truncated/{wire.truncated}")
            if wire.ended_at:
                left_alone_seconds = host.answered(wire.started_at, wire.ended_at)
                if left_alone_seconds is not None:
                    tallies.paused(left_alone_seconds, lease.delay_seconds)
        if not status:
            tallies.errors += kind.is_page or kind.is_robots
            return
        tallies.answered(status, result.ttfb_seconds)
        if kind.is_page:
            tallies.pages += 1
            tallies.good += result.reason in _SHOWN
            host.pages += 1
