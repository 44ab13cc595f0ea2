"""The job of a reading process: one body in, a ``ReadPage`` out. Pure work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.documents.kinds import kind_of
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.parse.links import (
    NO_REQUISITES,
    Listed,
    RequisitesWanted,
    entries_of_feed,
    entries_of_sitemap,
    followed,
    hops_to,
    required,
)
from crawlerproject.rules.feeds.feeds import Feed, read_feed
from crawlerproject.rules.page.body import in_utf8
from crawlerproject.rules.page.page import MAX_HTML_BYTES, PageFacts, looks_whole, page_robots, read_html
from crawlerproject.rules.page.requisites import sheet_text
from crawlerproject.rules.rendering.thin_pages import PLAIN, Triage, judge
from crawlerproject.rules.row_kinds import HOP_LINK
from crawlerproject.rules.text_likeness import text_marks
from crawlerproject.rules.url.urls import Address, Base, parse
from crawlerproject.stores.protocols import QueuedPage

if TYPE_CHECKING:
    from crawlerproject.documents.document_texts import DocumentTexts

PARTS = ("found", "changed", "requisites")
"""Of a ``ReadPage``, what may be long: sent in parts."""
LINKS_A_PART = 500
"""Unpickled in half a millisecond, queued in five."""


_BOMB = "parser bomb: to parse it would take far longer than its size does; its links are not followed"


class Kind(StrEnum):
    """How a body is read."""

    HTML = "html"
    SITEMAP = "sitemap"
    FEED = "feed"
    SHEET = "sheet"  # a style sheet that a page needs
    FRAME = "frame"  # HTML within a page: what it needs itself, and nothing else
    DOCUMENT = "document"  # PDF and the like, for its links


class Job(NamedTuple):
    """One body to read, of the page in ``row``."""

    kind: Kind
    row: QueuedPage
    url: str
    content_type: str | None
    x_robots: list[str]
    token: str
    requisites: RequisitesWanted = NO_REQUISITES


@dataclass(slots=True)
class ReadPage:
    """The content of a response, whichever process has read it. All defaults: the response is not read."""

    facts: PageFacts | None = None  # of HTML; from another process without links, text and shell
    links: int = 0  # of HTML, those that are not to be followed left out
    triage: Triage = PLAIN
    text_marks: tuple[int, ...] = ()
    feed: Feed | None = None  # without its entries
    found: list[DiscoveredUrl] = field(default_factory=list)
    changed: list[tuple[Address, float]] = field(default_factory=list)  # known pages that changed, and when
    requisites: Sequence[DiscoveredUrl] = ()  # what it needs to be seen
    foreign: int = 0  # entries of a sitemap that it may not speak for
    flaw: str = ""  # of a sitemap or feed; of a page, why it was not parsed
    challenge: str = ""  # whose anti-bot wall it is
    wall_marks: str = ""  # what it has of such walls, for people; it may be a page all the same
    unread: str = ""  # why it could not be read
    fault: bool = False  # by a fault of ours


def read(job: Job, body: bytes) -> Iterator[tuple[str, object]]:
    """Parts: ("found", links), ("changed", pages), ("requisites", URLs), then ("page", a ReadPage without these)."""
    page = READERS[job.kind](job, body)
    if page.facts is not None:
        page.facts = replace(page.facts, links=[], text=b"", shell=None)
    for name in PARTS:
        rows = getattr(page, name)
        setattr(page, name, [])
        for start in range(0, len(rows), LINKS_A_PART):
            yield name, rows[start : start + LINKS_A_PART]
    yield "page", page


def read_facts(job: Job, facts: PageFacts, body: bytes) -> ReadPage:
    """The ``ReadPage`` of HTML that has been parsed."""
    links = len(facts.links)
    whole = facts.unparsed or looks_whole(facts.words, links + facts.nofollow_links)
    return ReadPage(
        facts,
        links,
        PLAIN if whole else judge(facts.shell, body),
        text_marks(facts.title, facts.text, job.url),
        found=followed(job.row, facts.links),
        flaw=_BOMB if facts.unparsed else "",
    )


def _html(job: Job, body: bytes) -> ReadPage:
    facts = read_html(body, url=job.url, content_type=job.content_type, x_robots=job.x_robots, token=job.token)
    page = read_facts(job, facts, body)
    page.requisites = needed(job, facts, body, MAX_HTML_BYTES) or ()
    return page


def needed(job: Job, facts: PageFacts, body: bytes, most_css_characters: int) -> list[DiscoveredUrl] | None:
    """What an HTML page needs to be seen; None when its own styles are too long. By a parse of its own."""
    if not job.requisites.most or facts.nofollow or facts.unparsed:
        return []
    # Only where they are wanted: it loads selectolax.
    from crawlerproject.rules.page.requisites import requisites_of_page

    source, encoding = in_utf8(body[:MAX_HTML_BYTES], job.content_type)
    base, framed = Base(facts.base, encoding), job.kind is Kind.FRAME
    found = requisites_of_page(source, base, job.requisites.most, most_css_characters, framed=framed)
    return None if found is None else required(job.row, found, job.requisites)


def _frame(job: Job, body: bytes) -> ReadPage:
    facts = read_html(body, url=job.url, content_type=job.content_type, x_robots=job.x_robots, token=job.token)
    wanted = needed(job, facts, body, MAX_HTML_BYTES) or ()
    return ReadPage(requisites=wanted, flaw=_BOMB if facts.unparsed else "")


def _sheet(job: Job, body: bytes) -> ReadPage:
    from crawlerproject.rules.page.requisites import requisites_of_sheet

    found = requisites_of_sheet(sheet_text(body, job.content_type), Base(job.url), job.requisites.most)
    return ReadPage(requisites=required(job.row, found, job.requisites))


def _document(job: Job, body: bytes) -> ReadPage:
    """The links of a document, read by a process without anything of ours, which this one starts."""
    if page_robots((), job.x_robots, job.token).nofollow:
        return ReadPage()
    mime = (job.content_type or "").partition(";")[0].strip().lower()
    documents, kind = _documents(), kind_of(mime, body)
    found = documents.read(kind, body, job.url) if kind is not None else None
    if found is None:
        (why,) = documents.failed or ("no document",)
        documents.failed.clear()
        return ReadPage(unread=f"its links could not be read: {why}")
    links = [parse(link.target) for link in found.links]
    return ReadPage(found=followed(job.row, links), links=len(links))


@cache
def _documents() -> DocumentTexts:
    from crawlerproject.documents.document_texts import DocumentTexts

    return DocumentTexts()


def _sitemap(job: Job, body: bytes) -> ReadPage:
    return _listed(entries_of_sitemap(job.row, body, job.content_type))


def _feed(job: Job, body: bytes) -> ReadPage:
    feed = read_feed(body, job.content_type, job.url)
    page = _listed(entries_of_feed(job.row, feed, hops_to(job.row, HOP_LINK)))
    page.feed = replace(feed, entries=[])
    return page


def _listed(listed: Listed) -> ReadPage:
    return ReadPage(found=listed.found, changed=listed.changed, foreign=listed.foreign, flaw=listed.flaw)


READERS = {
    Kind.HTML: _html,
    Kind.SITEMAP: _sitemap,
    Kind.FEED: _feed,
    Kind.SHEET: _sheet,
    Kind.FRAME: _frame,
    Kind.DOCUMENT: _document,
}
