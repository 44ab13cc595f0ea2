"""Reads each response once: what the spider decides, it decides on the resulting ``ReadPage``."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol

from scrapy.http import Headers, Response
from scrapy.settings import BaseSettings

from crawlerproject import native
from crawlerproject.documents.kinds import kind_of
from crawlerproject.frontier.passage import Lease
from crawlerproject.parse.links import NO_REQUISITES, RequisitesWanted
from crawlerproject.reading.jobs import READERS, Job, Kind, ReadPage, needed, read_facts
from crawlerproject.reading.process_pool import MAX_MEMORY_BYTES, TIMEOUT_SECONDS, NotRead, Reader
from crawlerproject.request_meta import REDIRECTS, header
from crawlerproject.rules.archive.http_messages import PACKED, UNDECODED, is_encoded
from crawlerproject.rules.feeds.feeds import is_feed
from crawlerproject.rules.page.page import HTML_TYPES, PageFacts, is_html, read_light_html
from crawlerproject.rules.page.requisites import LIGHT_CSS_CHARACTERS, asks
from crawlerproject.rules.rendering.thin_pages import HEADERS, TITLED, looks_short, robots_wall, wall
from crawlerproject.rules.row_kinds import Content
from crawlerproject.runtime.services import Stats
from crawlerproject.stores.protocols import QueuedPage

logger = logging.getLogger(__name__)

_WALL_HEADERS = frozenset(name.title().encode() for name in HEADERS)
# Sitemaps and feeds up to this size are read in place: 500 entries, 10 ms. Compressed ones may hold a thousand times
# their size.
_LIGHT_LIST_BYTES = 64 * 1024
_LIGHT_GZIP_BYTES = 256
_GZIP = b"\x1f\x8b"
_UNREAD = ReadPage()
_CSS_TYPE = "text/css"


class Marks(Protocol):
    """Knows which pages have ended a process, and which page is being read."""

    @property
    def suspects(self) -> Mapping[bytes, object]:
        """Pages that may have ended one, by key."""

    def reading(self, row: QueuedPage) -> AbstractContextManager[object]:
        """Mark the page until the ``with`` is left."""


class Unmarked:
    """``Marks`` where nothing is at stake."""

    suspects: Mapping[bytes, object] = {}

    def reading(self, row: QueuedPage) -> AbstractContextManager[object]:
        """Mark nothing."""
        return nullcontext()


class ReaderOptions(NamedTuple):
    """What is read beside pages and lists: REQUISITES* and DOCUMENT_LINKS."""

    requisites: RequisitesWanted = NO_REQUISITES
    documents: bool = False  # the links of PDFs and the like are followed


PAGES_ALONE = ReaderOptions()


class PageReader:
    """Reads a response in place if that is quick, else in a reading process.

    A page that is read in place is marked by its caller (``stores/poison.py``); a page that may have killed a process
    before is never read in place.
    """

    def __init__(
        self, processes: Reader, marks: Marks, token: str, stats: Stats, options: ReaderOptions = PAGES_ALONE
    ) -> None:
        self._processes = processes
        self._marks = marks
        self._token = token
        self._stats = stats
        self._options = options

    def read(self, lease: Lease, response: Response) -> ReadPage | Awaitable[ReadPage]:
        """Read the response to a lease; the result is awaitable if another process reads it.

        Redirects, robots.txt files and the responses to sub-requests and hubs are not read, but a wall before a
        robots.txt is noted.
        """
        body, headers, row, kind, page = response.body, response.headers, lease.row, None, None
        if response.status in REDIRECTS:
            return _UNREAD
        if lease.kind.is_robots:
            found = robots_wall(response.status, dict(dict.items(headers)), body, response.url)
            return ReadPage(challenge=found.vendor, wall_marks=found.marks) if found.marks else _UNREAD
        if lease.kind.content is Content.NOTHING:
            return _UNREAD
        try:
            content_type = header(headers, b"Content-Type") or None
            if response.status == 200:
                kind = _kind(lease.kind.content, content_type, body, documents=self._options.documents)
            if kind is not None and (response.flags or body.startswith(PACKED)) and _undecoded(kind, response):
                coding = header(headers, b"Content-Encoding") or "unknown"
                page = ReadPage(unread=f"no text: its Content-Encoding ({coding}) could not be undone")
                body = b""
            elif kind is not None:
                requisites, x_robots = self._options.requisites, dict.get(headers, b"X-Robots-Tag") or ()
                wanted = requisites.of(row) if requisites.most else NO_REQUISITES
                words = [value.decode("latin-1") for value in x_robots] if x_robots else []
                job = Job(kind, row, response.url, content_type, words, self._token, wanted)
                if not self._marks.suspects or row.key not in self._marks.suspects:
                    page = _read_light(job, body)
                if page is None:
                    return self._read_apart(job, response)
            else:
                page = ReadPage()
            html, facts = bool(body) and (kind is Kind.HTML or is_html(content_type, body)), page.facts
            if html and kind is Kind.SITEMAP:
                # It may be a wall, or a page that mentions one: what it says tells them apart.
                facts = read_light_html(body, url=job.url, content_type=content_type, x_robots=words, token=self._token)
            _look_for_wall(page, response, body, facts, html=html)
            return page
        except Exception:
            logger.exception("could not read %s", row.url, extra={"url": row.url, "host": row.host})
            return ReadPage(unread="could not be read", fault=True)

    def close(self) -> None:
        """End the reading processes."""
        self._processes.close()

    async def _read_apart(self, job: Job, response: Response) -> ReadPage:
        self._stats.inc_value(f"reading/{job.kind}")
        try:
            page = await self._processes.read(job, response.body)
        except NotRead as error:
            page = ReadPage(unread=str(error))
            self._stats.inc_value("reading/failed")
            known = {"url": job.row.url, "host": job.row.host}
            logger.warning("%r: %s; it is archived, and its links are not followed", job.row.url, error, extra=known)
        if page.facts is not None and page.facts.unparsed:
            self._stats.inc_value("reading/parser_bomb")
        with self._marks.reading(job.row):
            _look_for_wall(page, response, response.body, page.facts, html=job.kind is Kind.HTML)
        return page


def page_reader_of(settings: BaseSettings, marks: Marks, stats: Stats) -> PageReader:
    """The reader of a crawl, by NATIVE_READER and the READ_* settings; logs which it is."""
    chosen = native.choose(settings["NATIVE_READER"] or native.AUTO)
    if not chosen.wrong:
        logger.info("Page reader: %s", chosen.sentence)
    processes = Reader(
        seconds=settings.getfloat("READ_TIMEOUT_SECONDS", TIMEOUT_SECONDS),
        memory_bytes=settings.getint("READ_MAX_MEMORY_BYTES", MAX_MEMORY_BYTES),
    )
    options = ReaderOptions(requisites_wanted(settings), settings.getbool("DOCUMENT_LINKS"))
    return PageReader(processes, marks, settings["CRAWLER_NAME"], stats, options)


def requisites_wanted(settings: BaseSettings) -> RequisitesWanted:
    """The requisites that the REQUISITES* settings ask for."""
    if settings["REQUISITES"] == "none":
        return NO_REQUISITES
    among = settings.get("REQUISITES_PRIORITY", "among") == "among"  # else after all pages of the host
    return RequisitesWanted(settings.getint("REQUISITES_MAX_PER_PAGE"), among)


def _kind(content: Content, content_type: str | None, body: bytes, *, documents: bool) -> Kind | None:
    """How to read a body; None: it is archived only. ``documents``: for their links."""
    mime = (content_type or "").partition(";")[0].strip().lower()
    if content in (Content.PAGE, Content.RENDERED):
        if mime in HTML_TYPES:
            return Kind.HTML
        if content is Content.PAGE and is_feed(content_type or "", body):
            return Kind.FEED
        if is_html(content_type, body):
            return Kind.HTML
        return Kind.DOCUMENT if documents and content is Content.PAGE and kind_of(mime, body) is not None else None
    if content is Content.LIST:
        return Kind.SITEMAP
    # Style sheets and frames ask for more; HTML where anything else was meant is an error page.
    if mime == _CSS_TYPE:
        return Kind.SHEET
    return Kind.FRAME if content is Content.FRAME and is_html(content_type, body) else None


def _undecoded(kind: Kind, response: Response) -> bool:
    """Whether the body has a content coding that was not taken off, named or not; lists may be compressed files."""
    body = response.body
    if body.startswith(_GZIP) and kind in (Kind.SITEMAP, Kind.FEED):
        return False
    return (body.startswith(PACKED) or not UNDECODED.isdisjoint(response.flags)) and is_encoded(body)


def _read_light(job: Job, body: bytes) -> ReadPage | None:
    """The page; None if reading it in place would hold up other work."""
    if job.kind is not Kind.HTML:
        return READERS[job.kind](job, body) if _is_quick(job.kind, body) else None
    _, _, url, content_type, x_robots, token, wanted = job
    facts = read_light_html(body, url=url, content_type=content_type, x_robots=x_robots, token=token)
    if facts is None:
        return None
    page = read_facts(job, facts, body)
    if wanted.most:
        requisites = needed(job, facts, body, LIGHT_CSS_CHARACTERS)
        if requisites is None:
            return None
        page.requisites = requisites
    return page


def _is_quick(kind: Kind, body: bytes) -> bool:
    """Whether anything but a page is read in place."""
    if kind in (Kind.FRAME, Kind.DOCUMENT):
        return False
    if kind is Kind.SHEET:
        return len(body) <= LIGHT_CSS_CHARACTERS or not asks(body.decode("latin-1"))
    return len(body) <= (_LIGHT_GZIP_BYTES if body.startswith(_GZIP) else _LIGHT_LIST_BYTES)


def _look_for_wall(page: ReadPage, response: Response, body: bytes, facts: PageFacts | None, *, html: bool) -> None:
    """Note whose anti-bot wall the response is, if any; ``facts`` of one that was parsed."""
    status, headers = response.status, response.headers
    if html:
        words, links = (facts.words, len(facts.links) + facts.nofollow_links) if facts else (None, 0)
    if not html or not looks_short(status, len(body), words, links):
        if _WALL_HEADERS.isdisjoint(dict.keys(headers)):
            return
        body = b""
    there = TITLED.keys() & dict.keys(headers)
    found = {TITLED[name]: _all_of(headers, name) for name in there} if there else {}
    shown = facts.text if facts else b""
    page.challenge, page.wall_marks = wall(status, found, body, response.url, shown)


def _all_of(headers: Headers, name: bytes) -> str:
    """All values of a header that is there."""
    return "\n".join([value.decode("latin-1") for value in dict.__getitem__(headers, name)])
