"""The end of a page: its place in the archive, its line in the log, the end of its lease. Renders end here, too."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from crawlerproject import native
from crawlerproject.crawl.figures import GOOD, FailureReporter
from crawlerproject.crawl.run import Run
from crawlerproject.errors import StorageError
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.learned.duplicates import DuplicateIndex
from crawlerproject.frontier.learned.models import CrawlModels
from crawlerproject.frontier.passage import Lease, caused_externally, document_of
from crawlerproject.frontier.subrequests import Subrequest
from crawlerproject.items import LeaseResult, Rendered
from crawlerproject.reasons import RESERVED, Reason
from crawlerproject.rules.archive.http_messages import SAMPLE_BYTES, digest_text, payload_digest
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Context, Original, Render, warc_date
from crawlerproject.rules.page.page import HTML_TYPES
from crawlerproject.rules.politeness.pauses import retry_after_seconds
from crawlerproject.rules.robots.policy import robots_verdict
from crawlerproject.rules.row_kinds import Budget, RowKind, requisite_key
from crawlerproject.rules.url.urls import Address
from crawlerproject.stores.archive.archive import Archive, Written
from crawlerproject.stores.archive.warc_reader import PlainResponse
from crawlerproject.stores.logs.request_log import attempt_line
from crawlerproject.stores.protocols import Fingerprint, PageRecord

logger = logging.getLogger(__name__)

# A host whose request met a limit of ours rests so long: what it sent may have to be sent once more (ours).
_LIMIT_REST_SECONDS = 60.0
_SHOWN = frozenset({Reason.FETCHED, Reason.NOT_MODIFIED, Reason.RENDERED})
_WANTED = frozenset({Reason.FETCHED, Reason.REDIRECT})  # of a requisite, what brings a page further

# A page during whose render the browser died is given to the next browser this often (our choice): it may be the cause.
_TRIES = 3
_NO_TURN = {
    Reason.RENDER_PACE: "no turn of its host within the page's time",
    Reason.EXTERNAL_BUDGET: "pages of this domain have loaded enough from the host, which is another domain's",
    Reason.EXTERNAL_DOOR: "the host has had trouble with what other domains' pages asked of it",
}
"""Why a sub-request that its page may make got no turn of its host, in words; what else refuses one is no news."""


class Records(Protocol):
    """Where the completion of pages records them."""

    def write(self, result: LeaseResult) -> Written | None:
        """Record what was received; None when that is nothing. StorageError without room."""

    def log(self, now: float, line: Mapping[str, object] | bytes) -> None:
        """Record one attempt by its line in the request log."""


class CrawlRecords:
    """``Records`` in the crawl's archive and request log."""

    def __init__(self, archive: Archive, frontier: Frontier, duplicates: DuplicateIndex) -> None:
        self._archive = archive
        self._frontier = frontier
        self._duplicates = duplicates
        self.log = archive.log.write

    def write(self, result: LeaseResult) -> Written | None:
        """Archive a page; StorageError when there is no room, and nothing has changed then."""
        lease, wire = result.lease, result.wire
        if result.rendered is not None:
            return self._write_render(result.rendered, result)
        if wire is None or not wire.status or not lease.kind.is_archived:
            return None
        row, answered_at = lease.row, lease.host.answered_at
        hops = lease.subrequest.page.hops + row.hops if lease.subrequest else row.hops
        waited = wire.started_at - answered_at if answered_at else None
        sample = result.body[:SAMPLE_BYTES]
        context = Context(row.url, row.via, hops, lease.delay_seconds, waited, sample, result.notes)
        if result.reason in RESERVED:
            self._archive.write_withheld(wire, context)
            return None
        digest = result.digest or payload_digest(wire.body)
        if lease.subrequest is not None:
            return self._archive.write(wire, context, digest, None)
        original = self._original(result, digest)
        if original is not None and self._archive.withdrawn(original.url):
            original = None  # what depends on it would be shown no more
        written = self._archive.write(wire, context, digest, original)
        remember(result, written, original, self._duplicates, self._frontier)
        return written

    def _write_render(self, rendered: Rendered, result: LeaseResult) -> Written | None:
        if not rendered.html:
            return None
        facts = [*rendered.facts(), *result.notes]
        times = rendered.started_at, rendered.ended_at
        return self._archive.write_render(
            Render(result.lease.row.url, rendered.plain_id, rendered.html, *times, facts, rendered.screenshot)
        )

    def _original(self, result: LeaseResult, digest: bytes) -> Original | None:
        """The capture that this one need not repeat."""
        row = result.row
        if result.reason is Reason.NOT_MODIFIED:
            before = self._frontier.state.store.page(row.page_key, row.host)
            original = self._duplicates.original(before.digest) if before else None
            return original and original._replace(profile=NOT_MODIFIED)
        if result.shell is not None:
            return None  # the browser is given this very record
        return self._duplicates.original(digest) if result.payload else None


def remember(
    result: LeaseResult, written: Written, original: Original | None, duplicates: DuplicateIndex, frontier: Frontier
) -> None:
    """Let later pages refer to this one."""
    row, changes = result.row, frontier.state.changes
    if original is None and result.payload:
        duplicates.add_payload(written.digest, Original(written.record_id, row.url, written.date), changes)
    if result.fingerprint is not None and result.duplicate is None:
        key = row.page_key if row.flags else row.key
        duplicates.add_fingerprint(Fingerprint(row.host, result.fingerprint, key), row.url, changes)


def log_line(result: LeaseResult, written: Written | None, now: float) -> Mapping[str, object] | bytes:
    """The line of a page in the request log; it ended ``now`` (epoch seconds) where no answer says when."""
    made = None if (reader := native.reader) is None else reader.log_line(result, written, now)
    return log_fields(result, written, now) if made is None else made


def log_fields(result: LeaseResult, written: Written | None, now: float) -> dict[str, object]:
    """Its fields, in Python."""
    lease, row, wire, is_render = result.lease, result.row, result.wire, result.is_render
    times, repeats, ttfb_seconds = result.rendered or wire, result.duplicate, None
    started_at = times.started_at if times and times.started_at else lease.leased_at
    ended_at = times.ended_at if times and times.ended_at else now
    mime, ip = result.mime, ""
    if is_render:
        mime = "text/html" if written else ""
    if wire is not None:
        ip = lease.address if lease.subrequest and lease.subrequest.proxy else wire.ip
        ttfb_seconds = wire.ttfb_seconds
    return {  # LOG_FIELDS, in their order
        "time": warc_date(started_at),
        "end": warc_date(ended_at),
        "url": row.url,
        "method": "POST" if lease.kind.is_hub and not is_render else "GET",
        "status": wire.status or None if wire is not None else None,
        "reason": str(result.reason),
        "host": row.host,
        "ip": ip or None,
        "via": row.via or None,
        "depth": row.depth,
        "hop": row.hops,
        "mime": mime or None,
        "bytes": wire.received_bytes if wire is not None else 0,
        "location": None if is_render else result.location or None,
        "ttfb_seconds": None if ttfb_seconds is None else round(ttfb_seconds, 6),
        "seconds": round(ended_at - started_at, 6),
        "delay_seconds": None if is_render else round(lease.delay_seconds, 6),
        "digest": digest_text(written.digest) or None if written else None,
        "warc": None if written is None else written.filename,
        "offset": None if written is None else written.offset,
        "length": None if written is None else written.length,
        "error": result.error or None,
        "tries": row.tries,
        "truncated": wire.truncated or None if wire is not None else None,
        "rendered": is_render,
        "duplicate": None if repeats is None else repeats.kind,
        "duplicate_of": None if repeats is None else repeats.url or None,
    }


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
        *,
        asks_redis: bool = False,
    ) -> None:
        """``retry_after_max_seconds``: a longer Retry-After counts as this long.

        ``asks_redis``: what is known of a page may be far away, so pauses begin where answers ended.
        """
        self._frontier = frontier
        self._records = records
        self._models = models
        self._reporter = reporter
        self._run = run
        self._retry_after_max_seconds = retry_after_max_seconds
        self.renders = RenderCompletion(frontier, records, models, run)
        self._unwritten: list[LeaseResult] = []
        self._held = False  # the archive's file is closed: what ends waits for the next one
        self.asks_redis = asks_redis

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
        self._end(result, written)

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
        self._end(self._unwritten.pop(0), written)

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

    def _end(self, result: LeaseResult, written: Written | None) -> None:
        """Count and log what came, then let the frontier and the models judge it.

        When Redis fails meanwhile, the session is lost with what is half ended.
        """
        run, models, lease, kind, now = self._run, self._models, result.lease, result.lease.kind, self._run.now()
        run.stats.inc_value(f"{kind.stat}/{result.reason}")
        try:
            if result.is_render:
                run.tallies.errors += result.reason is not Reason.RENDERED
                self.renders.end(result, written)
                return
            self._count(result, kind)
            self._records.log(now, log_line(result, written, now))
            self._weigh(result, written, now)
            if kind.is_robots:
                what = "terms" if document_of(result.row.hops) else "robots"
                run.stats.inc_value(f"{what}/{robots_verdict(None if result.walled else result.status).value}")
            if lease.subrequest is not None:
                self._end_subrequest(result, lease.subrequest, now)
                return
            record = models.revisits.learn(result, now)
            if kind.is_requisite:
                self._end_requisite(result, record, now)
                return
            self._frontier.finish(lease, result, record, now)
            if result.reason not in GOOD:
                if lease.host.rest_until > now:
                    run.stats.inc_value(f"rests/{result.reason}")
                self._reporter.ended(result, now)
            models.learn(result, now)
        except StorageError as error:
            if not run.rejoins:
                raise
            self.requeue(lease)
            run.lose(str(error))

    def _weigh(self, result: LeaseResult, written: Written | None, now: float) -> None:
        """What the frontier and the models judge by, beside what was read."""
        row, kind, wire, subrequest = result.row, result.lease.kind, result.wire, result.lease.subrequest
        result.digest = written.digest if written else b""
        if result.retry_after:
            result.retry_after_seconds = retry_after_seconds(result.retry_after, now, self._retry_after_max_seconds)
        result.external = subrequest.external if subrequest else kind.maybe_external and caused_externally(row)
        if result.shell is not None and written is not None:
            result.render = self.renders.place(result.shell, written)
        # A requisite that turned out to be HTML: a page that links lead to all the same, if any do.
        result.apart = kind.budget is Budget.REQUISITES and result.status == 200 and result.mime in HTML_TYPES
        if wire is not None:
            # There is a page of which not all came: its body broke off, or a cache left it out (304, never asked).
            result.cut = wire.status == 200 and wire.truncated == "disconnect"
            result.cut = result.cut or (wire.status == 304 and result.reason is Reason.HTTP_ERROR)
            result.too_slow = wire.truncated == "time"
            if self.asks_redis and result.answered and not wire.truncated:  # else the server may have sent more
                result.ended_at = wire.ended_at
        if result.target is not None and result.target.address.key == row.page_key:
            # Redirected to what is known under the page's own key: it differs in a session id or the like.
            result.respelled = result.target.address.url if result.target.address.url != row.url else ""

    def _end_subrequest(self, result: LeaseResult, subrequest: Subrequest, now: float) -> None:
        """No page of its own: nothing is kept of it but its capture."""
        row, models = result.row, self._models
        self._frontier.finish(result.lease, result, PageRecord(row.url, result.reason, 0, now), now)
        models.certificates.learn(result, now)
        if subrequest.foreign:
            models.traps.learn_subrequest(result, subrequest.page.host)
        if result.status == 200:  # the page as its scripts leave it may name it among its requisites
            self._frontier.state.recent.add([requisite_key(row.key)])

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

    def _count(self, result: LeaseResult, kind: RowKind) -> None:
        stats, tallies, lease, wire = self._run.stats, self._run.tallies, result.lease, result.wire
        host, status = lease.host, 0
        if wire is not None:
            status = wire.status
            stats.inc_value("bytes/received", wire.received_bytes)
            tallies.bytes += wire.received_bytes
            host.received_bytes += wire.received_bytes
            if wire.truncated:
                stats.inc_value(f"truncated/{wire.truncated}")
            if wire.ended_at:
                idle_seconds = host.answered(wire.started_at, wire.ended_at)
                if idle_seconds is not None:
                    tallies.paused(idle_seconds, lease.delay_seconds)
        if not status:
            tallies.errors += kind.is_page or kind.is_robots
            return
        tallies.answered(status, result.ttfb_seconds)
        if kind.is_page:
            tallies.pages += 1
            tallies.good += result.reason in _SHOWN
            host.pages += 1


class RenderCompletion:
    """Ends the leases of pages that were in the browser."""

    def __init__(self, frontier: Frontier, records: Records, models: CrawlModels, run: Run) -> None:
        self._frontier = frontier
        self._records = records
        self._models = models
        self._run = run
        self._said_no_browser = False

    def no_browser(self, why: str) -> None:
        """Keep pages that need a browser queued for a later run; logged once."""
        self._frontier.renders.closed = why
        if not self._said_no_browser:
            self._said_no_browser = True
            logger.warning("Pages that need a browser stay queued for a later run: %s.", why)

    def place(self, shell: tuple[int, int], written: Written) -> str:
        """Where the browser finds the plain response of a page that goes to it."""
        if why := self._frontier.renders.closed:
            self.no_browser(why)
        return PlainResponse(written.filename, written.offset, written.length, *shell).note()

    def end(self, result: LeaseResult, written: Written | None) -> None:
        """Log a render, learn what it gained and end its lease."""
        frontier, row, now = self._frontier, result.row, self._run.now()
        self._records.log(now, log_line(result, written, now))
        again = result.again and (row.tries + 1 < _TRIES or bool(frontier.renders.closed))
        rendered = result.rendered
        if result.gained is None or row.kind.is_external or rendered is None or rendered.short:
            result.gained = None  # no measure of other pages like it
        else:
            plain = PlainResponse.of(row.note)
            result.plain = plain.words, plain.links
        self._models.learn(result, now)
        frontier.finish_render(result.lease, now, again=again)

    def refused(self, lease: Lease, address: Address, reason: Reason) -> None:
        """Log and count a sub-request that got no turn of its host for a reason of this moment."""
        if reason not in _NO_TURN:
            return
        row, now = lease.row, self._run.now()
        self._frontier.state.refused.counts[reason] += 1
        about: dict[str, Any] = {"via": row.url, "depth": row.depth + 1, "hop": "E", "error": _NO_TURN[reason]}
        self._records.log(now, attempt_line(now, now, address.url, reason, host=address.host, **about))
