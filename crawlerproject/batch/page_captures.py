"""What an archived capture says as a page: its body as it is read, its kind, its text and links.

Of a page that a browser made, title, text and links are those of what it made: the answer is a shell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from crawlerproject.fetch.decoding import decode
from crawlerproject.rules.archive.http_messages import PACKED
from crawlerproject.rules.archive.index_rows import timestamp_of
from crawlerproject.rules.archive.warc_members import Flaw
from crawlerproject.rules.consent.verdict import NOTE, strictest
from crawlerproject.rules.page.extract import PageText, read_page, read_title
from crawlerproject.rules.page.page import is_html
from crawlerproject.stores.archive.wacz_file import WaczPage
from crawlerproject.stores.archive.warc_reader import ArchivedCapture, Progress, captures_in

_MAX_BODY_BYTES = 20 * 1024 * 1024  # of a body once decoded: four times what a crawl keeps by default
_OK = 200
_PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})
# Heritrix's letters of what belongs to a page or a host without being a page: robots.txt, and what a page embeds.
_PREREQUISITE = "P"
_NO_PAGES = (_PREREQUISITE, "E")
_REDIRECT = "R"
_UNKNOWN = "-"


class PageCapture:
    """A response, or what a browser made of one."""

    def __init__(self, capture: ArchivedCapture) -> None:
        self.capture, self.member, self.url = capture, capture.member, capture.url
        self.content_type = capture.headers.get("content-type", "")
        self.mime = self.content_type.partition(";")[0].strip().lower()
        if capture.rendered:
            self.body = self.member.block
        else:
            coding = capture.headers.get("content-encoding", "").encode("latin-1")
            # That of another answer is not read.
            self.body = decode(self.member.body, coding, _MAX_BODY_BYTES).readable if capture.status == _OK else b""

    @property
    def is_html(self) -> bool:
        """Whether it is read as HTML."""
        return not self.body.startswith(PACKED) and is_html(self.content_type, self.body)

    def read_title(self) -> str:
        """Of HTML."""
        return read_title(self.body, content_type=self.content_type or None)

    def read_html(self, *, structured: bool = False) -> PageText | None:
        """Title, text and links; None of what is no HTML."""
        if not self.is_html:
            return None
        return read_page(self.body, url=self.url, content_type=self.content_type or None, structured=structured)


def is_prerequisite(capture: ArchivedCapture) -> bool:
    """Whether a host was asked for it and no page: its robots.txt and what else is read before pages."""
    return capture.notes.get("hopsFromSeed", _UNKNOWN).rstrip(_REDIRECT).endswith(_PREREQUISITE)


def pages_of(
    warc: Path, *, text: bool, progress: Progress, flawed: Callable[[Flaw], object] = lambda flaw: None
) -> Iterator[WaczPage]:
    """Every HTML answer with status 200, up to the file's first flaw, which ``flawed`` takes.

    And each page as its scripts left it, marked ``rendered``; its answer may be in an earlier file.
    """
    for capture in captures_in(warc, progress, flawed=flawed):
        if capture.member.kind == "revisit" or capture.status != _OK:
            continue
        page, hops = PageCapture(capture), capture.notes.get("hopsFromSeed", _UNKNOWN).rstrip(_REDIRECT)
        if page.mime not in _PAGE_TYPES or hops.endswith(_NO_PAGES) or not page.is_html:
            continue
        title, shown = (read.title, read.text) if text and (read := page.read_html()) else (page.read_title(), "")
        moment = timestamp_of(capture.member)
        consent, rendered = strictest(capture.notes.get(NOTE, "")), capture.rendered
        yield WaczPage(capture.url, moment, title, shown, not hops, capture.answer_id, rendered, consent)
