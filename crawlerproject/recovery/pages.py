"""Turns an attempt back into its Page: read from the archive as the spider read it from the network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.inspection.archived_response import archived_response, archived_wire
from crawlerproject.items import Page
from crawlerproject.parse.links import redirected, redirected_enough
from crawlerproject.parse.lists import Lists
from crawlerproject.parse.response_page import REDIRECTS, header, page_of, take_robots
from crawlerproject.reading.jobs import Job, Kind, ReadPage, read_facts
from crawlerproject.reading.reader import NotRead, Reader
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.digests import sha1_of
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, payload_digest
from crawlerproject.rules.duplicates.simhash import text_fingerprint
from crawlerproject.rules.feeds.feeds import is_feed
from crawlerproject.rules.page.page import is_html, read_light_html
from crawlerproject.rules.robots.policy import parse_robots
from crawlerproject.rules.url.urls import Base
from crawlerproject.stores.archive.archive import Written
from crawlerproject.stores.archive.warc_reader import member_at
from crawlerproject.stores.protocols import FLAG_SITEMAP
from crawlerproject.wire import Wire

if TYPE_CHECKING:
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from crawlerproject.frontier.learned.renders import Renders
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.recovery.attempts import Attempt, Capture
    from crawlerproject.recovery.placed_store import PlacedStore

# Reasons of answers that were read; any other says why one was not.
_READ = (
    Reason.FETCHED,
    Reason.REDIRECT,
    Reason.HTTP_ERROR,
    Reason.RATE_LIMITED,
    Reason.NOT_MODIFIED,
    Reason.CHALLENGE,
)
_FAILURES = frozenset(map(str, Reason)) - frozenset(map(str, _READ))
_RENDERED_TYPE = "text/html; charset=utf-8"


class Unreadable(Exception):
    """An attempt that cannot be read; the text is its key in the counts."""


class Answers:
    """Makes Pages of attempts."""

    def __init__(self, settings: BaseSettings, folder: Path, store: PlacedStore, reader: Reader) -> None:
        """``folder``: of the WARC files."""
        self._folder = folder
        self._store = store
        self._reader = reader
        self._max_bytes = settings.getint("FETCH_MAX_BYTES")
        self._token: str = settings["CRAWLER_NAME"]
        self._sitemaps = settings.getbool("SITEMAPS")
        self._lists = Lists()
        self._names: dict[int, str] = {}  # of the files that payloads are in

    async def page(self, lease: Lease, attempt: Attempt, renders: Renders) -> Page:
        """The page of an attempt. Raises Unreadable."""
        capture = attempt.capture
        if capture is None:
            return _failed(lease, attempt)
        if capture.rendered:
            page = Page(lease, lease.row.url, Reason.RENDERED, body=capture.member.block)
            await self._html(page, _RENDERED_TYPE, [], attempt, renders)
        else:
            page = await self._answered(lease, attempt, capture, renders)
        page.duplicate = _duplicate(attempt)
        if page.duplicate is not None:
            page.found = [found.behind() for found in page.found]
        if "challenge" in (attempt.told("reason"), *capture.notes):
            page.reason, page.to_render = Reason.CHALLENGE, None
        return page

    def written(self, capture: Capture) -> Written:
        """Where a capture is."""
        member = capture.member
        digest = sha1_of(member.field("warc-payload-digest")) or payload_digest(member.payload)
        if member.kind == "response":
            self._names[capture.number] = capture.filename
            if self._store.payload(digest) is None:
                self._store.keep_payload(digest, (capture.number, member.offset, member.length))
        identity, date = member.field("warc-record-id"), member.field("warc-date")
        return Written(capture.filename, member.offset, member.length, digest, identity, date)

    # --- answers --------------------------------------------------------------------------------

    async def _answered(self, lease: Lease, attempt: Attempt, capture: Capture, renders: Renders) -> Page:
        member = capture.member
        not_modified = member.field("warc-profile") == NOT_MODIFIED
        original = self._original(member) if member.kind == "revisit" and not not_modified else None
        wire = archived_wire(member, original)
        wire.ended_at = attempt.ended_at
        wire.received_bytes = int(attempt.told("bytes") or 0)
        # Without a line the whole time stands for the first byte's: a host may seem slower than it is, never faster.
        ttfb = attempt.told("ttfb_seconds") if attempt.line is not None else wire.ended_at - wire.started_at
        wire.ttfb_seconds = ttfb
        if not wire.status:
            raise Unreadable("without a status")
        response = archived_response(lease.row.url, wire, self._max_bytes, original)
        page = page_of(lease, response, wire)
        page.digest = sha1_of(member.field("warc-payload-digest"))
        if not lease.is_robots and (failed := _failure(attempt)) is not None:
            page.reason = failed
        else:
            await self._read(page, response, attempt, renders)
        return page

    def _original(self, revisit: Member) -> Member:
        """The capture whose payload a revisit repeats."""
        span = self._store.payload(sha1_of(revisit.field("warc-payload-digest")))
        if span is None:
            raise Unreadable("repeats a capture that is gone")
        number, offset, length = span
        found = member_at(self._folder / self._names[number], offset, length)
        if not isinstance(found, Member):
            raise Unreadable("repeats a capture that is damaged")
        return found

    async def _read(self, page: Page, response: Response, attempt: Attempt, renders: Renders) -> None:
        """As the spider does it."""
        row, status = page.lease.row, response.status
        if status in REDIRECTS:
            self._redirect(page, header(response.headers, b"Location"))
        elif page.lease.is_robots:
            if 200 <= status < 300:
                take_robots(page, response.flags)
            if self._sitemaps and status == 200 and not page.unusable:
                page.found = self._lists.of_robots(row, parse_robots(page.body, self._token)).found
        elif status == 200 and not attempt.noted("unread"):
            content_type = header(response.headers, b"Content-Type") or None
            x_robots = [value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")]
            if row.flags & FLAG_SITEMAP:
                await self._list(page, Kind.SITEMAP)
            elif is_feed(content_type or "", response.body):
                page.is_feed = True
                await self._list(page, Kind.FEED)
            elif is_html(content_type, response.body):
                await self._html(page, content_type, x_robots, attempt, renders)

    def _redirect(self, page: Page, location: str) -> None:
        target = Base(page.url).join(location) if location else None
        if target is None:
            return
        page.location = target.url
        if not page.lease.is_robots and not redirected_enough(page.lease.row):
            page.found = [redirected(page.lease.row, target)]

    async def _list(self, page: Page, kind: Kind) -> None:
        if (read := await self._apart(page, Job(kind, page.lease.row, page.url, None, [], self._token))) is not None:
            page.found, page.changed = read.found, read.changed

    async def _html(
        self, page: Page, content_type: str | None, x_robots: list[str], attempt: Attempt, renders: Renders
    ) -> None:
        row = page.lease.row
        job = Job(Kind.HTML, row, page.url, content_type, x_robots, self._token)
        facts = read_light_html(
            page.body, url=page.url, content_type=content_type, x_robots=x_robots, token=self._token
        )
        read = read_facts(job, facts, page.body) if facts is not None else await self._apart(page, job)
        if read is None or read.facts is None:
            return
        said = read.facts.words, read.links
        if page.lease.is_render:
            page.gained = said
        elif renders.wanted(row.url, row.host, read.triage.verdict):
            page.to_render = said
        page.found = read.found
        if page.to_render is None:
            page.text, page.text_marks, page.canonical = b"", read.text_marks, read.facts.canonical
            page.fingerprint = read.fingerprint if read.fingerprinted else text_fingerprint(read.facts.text)
            page.fingerprinted = True

    async def _apart(self, page: Page, job: Job) -> ReadPage | None:
        """Read in another process, with a deadline; None for what cannot be read."""
        try:
            return await self._reader.read(job, page.body)
        except NotRead as error:
            page.error = str(error)
            return None


def _failed(lease: Lease, attempt: Attempt) -> Page:
    """A page without an answer."""
    try:
        reason = Reason(attempt.told("reason"))
    except ValueError:
        raise Unreadable("for a reason of another version") from None
    if lease.is_render:
        raise Unreadable("not rendered")  # another time, maybe
    page = Page(lease, lease.row.url, reason, error=str(attempt.told("error") or ""))
    page.wire = Wire(ip=lease.address, ended_at=attempt.ended_at, ttfb_seconds=attempt.told("ttfb_seconds"))
    page.unusable = reason is Reason.MIDDLEWARE and lease.is_robots
    return page


def _failure(attempt: Attempt) -> Reason | None:
    """Why the answer was not read, by the log; None when it was."""
    told = attempt.told("reason")
    return Reason(told) if told in _FAILURES else None


def _duplicate(attempt: Attempt) -> Duplicate | None:
    kind = attempt.told("duplicate") or attempt.noted("duplicate")
    url = attempt.told("duplicate_of") or attempt.noted("duplicate-of")
    return Duplicate(str(kind), str(url)) if kind and url else None
