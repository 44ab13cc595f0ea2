"""From an attempt of a crawl to the end that it had: its response is read again from the archive."""

from __future__ import annotations

from pathlib import Path

from scrapy.http import Response
from scrapy.settings import BaseSettings

from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.learned.render_gains import Renders
from crawlerproject.frontier.passage import Lease
from crawlerproject.inspection.archived_response import archived_response, archived_wire, rendered_response
from crawlerproject.items import LeaseResult, Rendered
from crawlerproject.reading.jobs import ReadPage
from crawlerproject.reading.outcomes import RECORDED, Outcomes, rendered_result, result_of
from crawlerproject.reading.page_reader import PageReader
from crawlerproject.reasons import Reason
from crawlerproject.recovery.attempts import Attempt
from crawlerproject.recovery.placed_store import PlacedStore
from crawlerproject.rules.archive.http_messages import Wire, payload_digest
from crawlerproject.rules.archive.index_rows import sha1_of
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED
from crawlerproject.stores.archive.archive import Written
from crawlerproject.stores.archive.warc_reader import ArchivedCapture, member_at

# Reasons of answers that were read; any other says why one was not.
_READ = {Reason.FETCHED, Reason.REDIRECT, Reason.HTTP_ERROR, Reason.RATE_LIMITED, Reason.NOT_MODIFIED, Reason.CHALLENGE}
_READ.add(Reason.PAYMENT_REQUIRED)
_FAILURES = {*Reason} - _READ


class Unreadable(Exception):
    """An attempt that cannot be read; the text is its key in the counts."""


class Answers:
    """Makes the endings of attempts."""

    def __init__(self, settings: BaseSettings, store: PlacedStore, reader: PageReader) -> None:
        self._store = store
        self._reader = reader
        self._max_bytes = settings.getint("FETCH_MAX_BYTES")
        self._outcomes = Outcomes(settings["CRAWLER_NAME"], sitemaps=settings.getbool("SITEMAPS"), consent=RECORDED)
        self._files: dict[int, Path] = {}  # that payloads are in

    async def page(self, lease: Lease, attempt: Attempt, renders: Renders) -> LeaseResult:
        """The end of an attempt. Raises Unreadable."""
        capture = attempt.capture
        if capture is None:
            return _failed(lease, attempt)
        if capture.rendered:
            rendered = Rendered(lease.row.url, html=capture.member.block)
            response = rendered_response(lease.row.url, capture.member)
            result = rendered_result(lease, rendered, await self._read(lease, response), RECORDED)
        else:
            result = await self._answered(lease, attempt, capture, renders)
            result.digest = sha1_of(capture.member.field("warc-payload-digest"))
        if _walled(attempt, capture):
            result.reason = Reason.CHALLENGE
        kind = attempt.logged("duplicate") or attempt.noted("duplicate")
        repeats = attempt.logged("duplicate_of") or attempt.noted("duplicate-of")
        if kind and repeats:
            result.duplicate = Duplicate(str(kind), str(repeats))
            result.found = [found.behind() for found in result.found]
        return result

    def written(self, capture: ArchivedCapture) -> Written:
        """Where a capture is."""
        member = capture.member
        digest = sha1_of(member.field("warc-payload-digest")) or payload_digest(member.payload)
        if member.kind == "response":
            self._files[capture.number] = capture.path
            if self._store.payload(digest) is None:
                self._store.keep_payload(digest, (capture.number, member.offset, member.length))
        identity, date = member.field("warc-record-id"), member.field("warc-date")
        return Written(capture.path.name, member.offset, member.length, digest, identity, date)

    # --- answers --------------------------------------------------------------------------------

    async def _answered(
        self, lease: Lease, attempt: Attempt, capture: ArchivedCapture, renders: Renders
    ) -> LeaseResult:
        member, row = capture.member, lease.row
        not_modified = member.field("warc-profile") == NOT_MODIFIED
        original = self._original(member) if member.kind == "revisit" and not not_modified else None
        wire = archived_wire(member, original)
        wire.ended_at = attempt.ended_at
        wire.received_bytes = int(attempt.logged("bytes") or 0)
        # Without a line the whole time stands for the first byte's: a host may seem slower than it is, never faster.
        ttfb = attempt.logged("ttfb_seconds") if attempt.line is not None else wire.ended_at - wire.started_at
        wire.ttfb_seconds = ttfb
        if not wire.status:
            raise Unreadable("without a status")
        response = archived_response(row.url, wire, self._max_bytes, original)
        if not lease.row.kind.is_robots and (failed := attempt.logged("reason")) in _FAILURES:
            result = result_of(lease, response, wire)
            result.reason = Reason(failed)  # the log tells why it was not read
            return result
        read = ReadPage() if attempt.noted("unread") else await self._read(lease, response)
        shell = read.facts is not None and not _walled(attempt, capture)
        to_render = shell and renders.wanted(row.url, row.host, read.triage.verdict)
        result = self._outcomes.fetched(lease, response, wire, read, to_render=to_render)
        if result.target is not None:
            result.found = [result.target]
        return result

    async def _read(self, lease: Lease, response: Response) -> ReadPage:
        coming = self._reader.read(lease, response)
        read = coming if isinstance(coming, ReadPage) else await coming
        if read.fault:
            raise Unreadable("could not be read again")
        read.challenge = ""  # the log and the archive know what it was
        return read

    def _original(self, revisit: Member) -> Member:
        """The capture whose payload a revisit repeats."""
        span = self._store.payload(sha1_of(revisit.field("warc-payload-digest")))
        if span is None:
            raise Unreadable("repeats a capture that is gone")
        number, offset, length = span
        found = member_at(self._files[number], offset, length)
        if not isinstance(found, Member):
            raise Unreadable("repeats a capture that is damaged")
        return found


def _failed(lease: Lease, attempt: Attempt) -> LeaseResult:
    """There was no response."""
    try:
        reason = Reason(attempt.logged("reason"))
    except ValueError:
        raise Unreadable("for a reason of another version") from None
    if lease.row.kind.is_render:
        raise Unreadable("not rendered")  # another time, maybe
    wire = Wire(ip=lease.address, ended_at=attempt.ended_at, ttfb_seconds=attempt.logged("ttfb_seconds"))
    return LeaseResult.failed(lease, reason, str(attempt.logged("error") or ""), wire)


def _walled(attempt: Attempt, capture: ArchivedCapture) -> bool:
    """Whether the page was an anti-bot wall, by the log or by the archive."""
    return "challenge" in (attempt.logged("reason"), *capture.notes)
