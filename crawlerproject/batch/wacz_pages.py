"""The pages of a WARC file as a WACZ lists them: title, text on request, and whether a page was a seed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from crawlerproject.batch.warc_extract import Head, body_of
from crawlerproject.rules.archive.cdxj import row_of_member
from crawlerproject.rules.archive.warc_members import Flaw, Member
from crawlerproject.rules.page.extract import read_page
from crawlerproject.stores.archive.wacz import WaczPage
from crawlerproject.stores.archive.warc_reader import Progress, members

PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_HOPS = re.compile(rb"(?m)^hopsFromSeed: *(\w*)")
# Heritrix's letters of what belongs to a page or a host and is none itself: robots.txt, and what a page embeds.
_NO_PAGES = ("P", "E")
_REDIRECT = "R"
_HTML = "text/html"  # of a conversion: what a browser made of a page (rules/archive/rendered_records.py)


def pages_of(warc: Path, *, text: bool, progress: Progress) -> Iterator[WaczPage]:
    """Every HTML answer with status 200, up to the file's first flaw; its metadata record, if any, follows it.

    And each page as its scripts left it, which is to be told apart by ``rendered``: maybe of a file before this one.
    """
    page, page_id = None, ""
    for member in members(warc, progress=progress):
        if isinstance(member, Flaw):
            break
        if member.kind == "metadata" and page is not None and member.field("warc-concurrent-to") == page_id:
            found = _HOPS.search(member.block)
            hops = found[1].decode().rstrip(_REDIRECT) if found else None
            if hops is None or not hops.endswith(_NO_PAGES):
                yield page._replace(seed=hops == "")
            page = None
        elif member.kind == "response":
            if page is not None:  # another program's, without a metadata record
                yield page
            page, page_id = _page(member, text=text), member.field("warc-record-id")
        elif member.kind == "conversion" and member.field("content-type").startswith(_HTML):
            yield _render(member, text=text)
    if page is not None:
        yield page


def _page(member: Member, *, text: bool) -> WaczPage | None:
    row = row_of_member(member)
    if row.status != 200 or row.mime not in PAGE_TYPES:
        return None
    head = Head(member.block)
    read = read_page(body_of(head, member), url=row.url, content_type=head.content_type or None)
    shown = read.text if text else ""
    return WaczPage(row.url, row.timestamp, read.title, shown, seed=False, record_id=member.field("warc-record-id"))


def _render(member: Member, *, text: bool) -> WaczPage:
    """Under the name of the plain answer, whose page it is."""
    url = member.field("warc-target-uri")
    read = read_page(member.block, url=url, content_type=member.field("content-type"))
    shown, plain_id = read.text if text else "", member.field("warc-refers-to")
    return WaczPage(url, "", read.title, shown, seed=False, record_id=plain_id, rendered=True)
