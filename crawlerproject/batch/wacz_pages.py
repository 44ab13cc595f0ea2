"""The pages of a WARC file as a WACZ lists them: title, text on request, and whether a page was a seed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crawlerproject.batch.page_captures import PageCapture
from crawlerproject.rules.archive.cdxj import row_of_member
from crawlerproject.stores.archive.archived_captures import ArchivedCapture, captures_in
from crawlerproject.stores.archive.wacz import WaczPage
from crawlerproject.stores.archive.warc_reader import Progress

PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})
# Heritrix's letters of what belongs to a page or a host and is none itself: robots.txt, and what a page embeds.
_NO_PAGES = ("P", "E")
_REDIRECT = "R"
_OK = 200


def pages_of(warc: Path, *, text: bool, progress: Progress) -> Iterator[WaczPage]:
    """Every HTML answer with status 200, up to the file's first flaw.

    And each page as its scripts left it, which is to be told apart by ``rendered``: maybe of a file before this one.
    """
    for capture in captures_in(warc, progress):
        if capture.member.kind != "revisit" and capture.status == _OK:
            yield from _page(capture, text=text)


def _page(capture: ArchivedCapture, *, text: bool) -> Iterator[WaczPage]:
    page = PageCapture(capture)
    if page.mime not in PAGE_TYPES:
        return
    hops = capture.notes.get("hopsFromSeed")
    hops = hops.rstrip(_REDIRECT) if hops is not None else None
    if hops is not None and hops.endswith(_NO_PAGES):
        return
    read = page.read_html()
    if read is not None:
        shown, row = read.text if text else "", row_of_member(capture.member)
        yield WaczPage(
            capture.url, row.timestamp, read.title, shown, hops == "", capture.answer_id, rendered=capture.rendered
        )
