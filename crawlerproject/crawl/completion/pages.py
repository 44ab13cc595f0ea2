"""The end of a page: its place in the archive, its line in the log, the end of its lease."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from crawlerproject.crawl.completion.renders import RenderCompletion
from crawlerproject.crawl.progress.failure_reports import GOOD
from crawlerproject.errors import StorageError
from crawlerproject.frontier.discovered import caused_externally
from crawlerproject.frontier.learned.learner import Visit
from crawlerproject.frontier.politeness import FetchOutcome
from crawlerproject.items import FailedRender, RenderedPage
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.log_line import Attempt
from crawlerproject.rules.page.page import HTML_TYPES
from crawlerproject.rules.politeness.backoff import retry_after_seconds
from crawlerproject.rules.robots.policy import robots_verdict
from crawlerproject.rules.row_kinds import Budget
from crawlerproject.rules.traps.requisite_budgets import requisite_key
from crawlerproject.stores.protocols import PageRecord, QueuedPage

if TYPE_CHECKING:
    from crawlerproject.crawl.completion.records import Records
    from crawlerproject.crawl.progress.failure_reports import FailureReporter
    from crawlerproject.crawl.run import Run
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.models import CrawlModels
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.items import Fetch, LeaseResult
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
        reason = result.outcome.reason
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
        outcome, kind = result.outcome, result.lease.row.kind
        self._run.stats.inc_value(f"{kind.stat}/{outcome.reason}")
        try:
            if isinstance(outcome, RenderedPage | FailedRender):
                self._run.tallies.errors += outcome.reason is not Reason.RENDERED
                self.renders.end(result, outcome, written)
            else:
                self._end_fetch(result, outcome, written)
        except StorageError as error:
            if not self._run.rejoins:
                raise
            self.requeue(result.lease)
            self._run.lose(str(error))

    def _end_fetch(self, result: LeaseResult, outcome: Fetch, written: Written | None) -> None:
        frontier, models, wire, lease = self._frontier, self._models, outcome.wire, result.lease
        now = self._run.now()
        self._count(lease, outcome)
        self._records.log(_attempt(result, outcome, written, now), now)
        consequences = FetchOutcome(
            outcome.reason,
            outcome.status if outcome.usable else None,
            wire.ttfb_seconds if wire else None,
            retry_after_seconds(outcome.headers.retry_after or None, now, self._retry_after_max_seconds),
            outcome.location,
            lease.row.tries,
            stranger=lease.embed.external if lease.embed else caused_externally(lease.row),
            render=self.renders.place(outcome.shell, written),
            apart=_is_document(lease, outcome),
            cut=_is_cut(lease, outcome),
            respelled=_respelled(lease.row, outcome),
        )
        if lease.row.kind.is_robots:
            verdict = robots_verdict(outcome.status if outcome.usable else None)
            self._run.stats.inc_value(f"robots/{verdict.value}")
        visit = _visit(result, outcome, written.digest if written else b"", consequences.respelled)
        if lease.embed is not None:  # no page of its own: nothing is kept of it but its capture
            frontier.finish(lease, consequences, PageRecord(lease.row.url, outcome.reason, 0, now), b"", now)
            models.certificates.learn(visit, now)
            if lease.embed.foreign:
                models.traps.learn_embed(visit, lease.embed.page.host)
            if outcome.status == 200:  # the page as its scripts leave it may name it among its requisites
                frontier.state.recent.add([requisite_key(lease.row.key)])
            return
        if lease.row.kind.is_requisite:
            self._end_requisite(lease, visit, consequences, now)
            return
        record = models.revisits.learn(visit, now)
        frontier.finish(lease, consequences, record, outcome.body, now)
        if outcome.reason not in GOOD:
            if lease.host.rest_until > now:
                self._run.stats.inc_value(f"rests/{outcome.reason}")
            self._reporter.ended(lease, outcome, now)
        models.learn(visit, now)

    def _end_requisite(self, lease: Lease, visit: Visit, consequences: FetchOutcome, now: float) -> None:
        """No page: it says nothing of its host's pages. A document is not visited again but as a page."""
        record = self._models.revisits.learn(visit, now)
        if consequences.apart:
            record = record._replace(history=b"")
        self._frontier.finish(lease, consequences, record, b"", now)
        if visit.status == 200 and not consequences.apart:  # a link to it is no news from now on
            self._frontier.state.recent.add([lease.row.page_key])
        if not lease.row.kind.is_recrawl:  # else the same bytes as before are no sign of a trap
            wanted = lease.row.kind.is_frame or not consequences.apart
            self._models.traps.learn_requisite(visit, wanted=visit.reason in _WANTED and wanted)
        self._models.certificates.learn(visit, now)

    def _count(self, lease: Lease, outcome: Fetch) -> None:
        stats, tallies, host, wire = self._run.stats, self._run.tallies, lease.host, outcome.wire
        if wire is not None:
            stats.inc_value("bytes/received", wire.received_bytes)
            tallies.bytes += wire.received_bytes
            host.received_bytes += wire.received_bytes
            if wire.truncated:
                stats.inc_value(f"truncated/{wire.truncated}")
            if wire.ended_at:
                left_alone_seconds = host.answered(wire.started_at, wire.ended_at)
                if left_alone_seconds is not None:
                    tallies.paused(left_alone_seconds, lease.delay_seconds)
        if outcome.status:
            tallies.answered(outcome.status, wire.ttfb_seconds if wire else None)
        kind = lease.row.kind
        if outcome.status is None:
            tallies.errors += kind.is_page or kind.is_robots
        elif kind.is_page:
            tallies.pages += 1
            tallies.good += outcome.reason in _SHOWN
            host.pages += 1


def _respelled(row: QueuedPage, outcome: Fetch) -> str:
    """Where a page was redirected to that is known under its own key: it differs in a session id or the like."""
    target = outcome.target
    if target is None or target.address.key != row.page_key or target.address.url == row.url:
        return ""
    return target.address.url


def _is_cut(lease: Lease, outcome: Fetch) -> bool:
    """Whether there is a page of which not all came: its body broke off, or a cache left it out (304, never asked)."""
    wire = outcome.wire
    if wire is None:
        return False
    if wire.status == 304:
        return not lease.row.kind.is_recrawl
    return wire.truncated == "disconnect" and wire.status == 200


def _is_document(lease: Lease, outcome: Fetch) -> bool:
    """Whether a requisite turned out to be HTML: a page that links lead to all the same, if any do."""
    return lease.row.kind.budget is Budget.REQUISITES and outcome.status == 200 and outcome.headers.mime in HTML_TYPES


def _visit(result: LeaseResult, outcome: Fetch, digest: bytes, respelled: str) -> Visit:
    """The page as the models of hosts see it."""
    headers, compared, wire = outcome.headers, result.compared, outcome.wire
    return Visit(
        row=result.lease.row,
        reason=outcome.reason,
        status=outcome.status,
        digest=digest,
        error=outcome.error,
        location=outcome.location,
        etag=headers.etag,
        last_modified=headers.last_modified,
        freshness=headers.freshness,
        marks=outcome.text.marks if outcome.text is not None else (),
        fingerprint=compared.fingerprint,
        repeats=compared.duplicate,
        is_feed=outcome.is_feed,
        shell=outcome.shell is not None,
        cut=wire is not None and wire.truncated == "time",
        named=bool(result.found),
        new_links=result.new_links,
        respelled=bool(respelled),
    )


def _attempt(result: LeaseResult, outcome: Fetch, written: Written | None, now: float) -> Attempt:
    """The page's line in the request log."""
    wire, lease, duplicate = outcome.wire, result.lease, result.compared.duplicate
    row = lease.row
    return Attempt(
        started_at=wire.started_at if wire and wire.started_at else lease.leased_at,
        ended_at=wire.ended_at if wire and wire.ended_at else now,
        url=row.url,
        reason=outcome.reason,
        method="POST" if row.kind.is_hub else "GET",
        status=outcome.status,
        host=row.host,
        ip=(lease.address if lease.embed and lease.embed.proxy else wire.ip) if wire else "",
        via=row.via,
        depth=row.depth,
        hop=row.hops,
        mime=outcome.headers.mime,
        received_bytes=wire.received_bytes if wire else 0,
        location=outcome.location,
        ttfb_seconds=wire.ttfb_seconds if wire else None,
        delay_seconds=lease.delay_seconds,
        digest=written.digest_text if written else "",
        warc=written.filename if written else "",
        offset=written.offset if written else None,
        length=written.length if written else None,
        error=outcome.error,
        tries=row.tries,
        truncated=wire.truncated if wire else None,
        duplicate=duplicate.kind if duplicate else "",
        duplicate_of=duplicate.url if duplicate else "",
    )
