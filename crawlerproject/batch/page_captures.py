"""The captures of a WARC file that may be pages: every answer, and every page as a browser left it.

What a browser made of a page is a ``conversion`` record behind the answer that it names, in the same file or in a later
one (``rules/archive/rendered_records.py``). Title, text and links are then the conversion's: the answer is a shell. The
metadata record of either follows it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from crawlerproject.fetch.decoding import decode
from crawlerproject.rules.archive.rendered_records import is_render
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.page.extract import PageText, read_page
from crawlerproject.rules.page.page import is_html
from crawlerproject.stores.archive.warc_reader import notes_of

_MAX_BODY_BYTES = 20 * 1024 * 1024  # of a body once decoded: four times what a crawl keeps by default
_OK = 200
_STATUS = re.compile(r"\S+\s+([0-9]{3})(?!\S)")
_NO_MOMENT = datetime.fromtimestamp(0, UTC)  # of a record whose WARC-Date is none


class Head:
    """What is needed of an HTTP head."""

    def __init__(self, block: bytes) -> None:
        start, _, rest = block.partition(b"\r\n\r\n")[0].decode("latin-1").partition("\r\n")
        status = _STATUS.match(start)
        self.start = start
        self.status = int(status[1]) if status is not None else 0
        self.fields = [
            (name.strip(), value.strip())
            for name, colon, value in (f.partition(":") for f in rest.split("\r\n"))
            if colon
        ]
        known = {name.lower(): value for name, value in self.fields}
        self.content_type = known.get("content-type", "")
        self.encoding = known.get("content-encoding", "")
        self.content_language = known.get("content-language", "")


class PageCapture:
    """An answer, or what a browser made of one."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.url = member.url
        self.rendered = is_render(member)
        self.record_id = member.field("warc-record-id")
        self.answer_id = member.field("warc-refers-to") if self.rendered else self.record_id
        self.notes: dict[str, str] = {}  # the lines of its metadata record
        if self.rendered:
            self.head = Head(b"")
            self.status, self.content_type, self.body = _OK, member.field("content-type"), member.block
        else:
            self.head = head = Head(member.head)
            self.status, self.content_type = head.status, head.content_type
            coding = head.encoding.encode("latin-1")
            # That of another answer is not read.
            self.body = decode(member.body, coding, _MAX_BODY_BYTES).body if head.status == _OK else b""
        self.mime = self.content_type.partition(";")[0].strip().lower()

    @property
    def fetched_at(self) -> datetime:
        """Its WARC-Date."""
        try:
            return datetime.fromisoformat(self.member.field("warc-date"))
        except ValueError:
            return _NO_MOMENT

    def read_html(self, *, structured: bool = False) -> PageText | None:
        """Title, text and links; None of what is no HTML."""
        if not is_html(self.content_type, self.body):
            return None
        return read_page(self.body, url=self.url, content_type=self.content_type or None, structured=structured)


class PageCaptures:
    """Takes the records of a file in their order, gives captures: each when its metadata record has come, or cannot."""

    def __init__(self) -> None:
        self._waiting: PageCapture | None = None

    def take(self, member: Member) -> PageCapture | None:
        """The capture that ends with or before this record, if one does."""
        waiting = self._waiting
        if member.kind == "response" or is_render(member):
            self._waiting = PageCapture(member)
            return waiting
        if member.kind != "metadata" or waiting is None or waiting.record_id not in _named(member):
            return None
        waiting.notes = notes_of(member)
        self._waiting = None
        return waiting

    def rest(self) -> PageCapture | None:
        """The last one, where no metadata record follows it."""
        waiting, self._waiting = self._waiting, None
        return waiting


def _named(metadata: Member) -> tuple[str, str]:
    """The records that it may be about: of an answer, of a render."""
    return metadata.field("warc-concurrent-to"), metadata.field("warc-refers-to")
