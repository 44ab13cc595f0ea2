"""One line of a CDXJ index per capture, with the fields and the spelling of Common Crawl's."""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

from crawlerproject.rules.archive.http_heads import media_type, redirect_target
from crawlerproject.rules.archive.surt_keys import surt_key
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.archive.warc_records import CaptureInfo, digest_text, payload_digest

INDEXED = frozenset({"response", "revisit"})
"""WARC-Types that get a line."""
REVISIT_MIME = "warc/revisit"
NO_MIME = "unk"
"""Common Crawl's word for an answer without a Content-Type."""
EMPTY_DIGEST = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""sha1 of nothing: the payload of a 304."""

_NO_DIGIT = re.compile(r"\D")
_TIMESTAMP_DIGITS = 14  # YYYYmmddHHMMSS
_WHOLE_SECONDS = len("YYYY-mm-ddTHH:MM:SS")
_STATUS = re.compile(rb"\S+\s+(\d{3})")


class CdxjEntry(NamedTuple):
    """What the index says of one capture, and the span of the capture in its file."""

    start: int  # first byte of the capture (its request)
    end: int  # first byte after it
    url: str
    timestamp: str  # YYYYmmddHHMMSS
    mime: str
    identified: str
    status: int
    digest: str  # base32 without "sha1:"
    offset: int  # of the response's or revisit's gzip member
    length: int
    redirect: str
    truncated: str


def row_of_capture(info: CaptureInfo, start: int) -> CdxjEntry:
    """The row of a capture written at ``start``."""
    return CdxjEntry(
        start=start,
        end=start + info.total,
        url=info.url,
        timestamp=info.date[:_WHOLE_SECONDS].replace("-", "").replace("T", "").replace(":", ""),
        mime=REVISIT_MIME if info.revisit else info.mime or NO_MIME,
        identified=info.identified or "",
        status=info.status,
        digest=digest_text(info.payload_digest),
        offset=start + info.offset,
        length=info.length,
        redirect=info.redirect,
        truncated=info.truncated or "",
    )


def row_of_member(member: Member) -> CdxjEntry:
    """The row of a response or revisit record read from a file; its span is that of the one member."""
    head = member.head
    found = _STATUS.match(head)
    status = int(found[1]) if found else 0
    url = member.url
    revisit = member.kind == "revisit"
    return CdxjEntry(
        start=member.offset,
        end=member.end,
        url=url,
        timestamp=_timestamp(member.field("warc-date")),
        mime=REVISIT_MIME if revisit else media_type(head) or NO_MIME,
        identified=member.field("warc-identified-payload-type"),
        status=status,
        digest=digest_of(member),
        offset=member.offset,
        length=member.length,
        redirect=redirect_target(head, status, url),
        truncated="" if revisit else member.field("warc-truncated"),
    )


def digest_of(member: Member) -> str:
    """As the record states it, without "sha1:"; of a response that states none, as others write them, its body's."""
    if stated := member.field("warc-payload-digest").removeprefix("sha1:"):
        return stated
    return digest_text(payload_digest(member.body)) if member.kind == "response" else EMPTY_DIGEST


def line(row: CdxjEntry, filename: str) -> bytes:
    """The index line ``SURT YYYYmmddHHMMSS {json}`` without a line end; numbers are strings, as there."""
    fields = {
        "url": row.url,
        "mime": row.mime,
        "mime-detected": row.identified,
        "status": str(row.status),
        "digest": row.digest,
        "length": str(row.length),
        "offset": str(row.offset),
        "filename": filename,
        "redirect": row.redirect,
        "truncated": row.truncated,
    }
    present = {name: value for name, value in fields.items() if value}
    return b"%b %b %b" % (surt_key(row.url).encode(), row.timestamp.encode(), orjson.dumps(present))


def parse(index_line: bytes) -> tuple[CdxjEntry, str] | None:
    """The row and the WARC's name of an index line, its span that of the record; None when it is none of ours."""
    try:
        _, timestamp, text = index_line.split(b" ", 2)
        fields = orjson.loads(text)
        offset, length = int(fields["offset"]), int(fields["length"])
        row = CdxjEntry(
            start=offset,
            end=offset + length,
            url=fields["url"],
            timestamp=timestamp.decode("ascii"),
            mime=fields.get("mime", NO_MIME),
            identified=fields.get("mime-detected", ""),
            status=int(fields.get("status", 0)),
            digest=fields.get("digest", ""),
            offset=offset,
            length=length,
            redirect=fields.get("redirect", ""),
            truncated=fields.get("truncated", ""),
        )
        return row, fields["filename"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def pack(row: CdxjEntry) -> bytes:
    """The row as one line of the journal."""
    return orjson.dumps(row._asdict()) + b"\n"


def unpack(journal_line: bytes) -> CdxjEntry | None:
    """The row of a journal line; None for a torn or foreign one."""
    try:
        return CdxjEntry(**orjson.loads(journal_line))
    except (ValueError, TypeError):
        return None


def _timestamp(warc_date: str) -> str:
    return _NO_DIGIT.sub("", warc_date)[:_TIMESTAMP_DIGITS]
