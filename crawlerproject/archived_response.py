"""A capture as the Scrapy response that the spider saw: the body decoded, the headers as they were received."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from crawlerproject.fetch.handler import response_of
from crawlerproject.fetch.http1_head import read_headers
from crawlerproject.fetch.wire import Wire
from crawlerproject.rules.http_heads import EDITED_PREFIX

if TYPE_CHECKING:
    from scrapy.http import Response

    from crawlerproject.rules.warc_members import Member

_END = b"\r\n\r\n"
_EDITED = EDITED_PREFIX.lower()
_CODING = b"content-encoding"


def archived_at(member: Member) -> float:
    """Its WARC-Date in epoch seconds; ValueError for one that is none."""
    return datetime.fromisoformat(member.field("warc-date")).timestamp()


def archived_wire(member: Member, original: Member | None = None) -> Wire:
    """What crossed the wire, as far as a response or revisit tells; the body is that of its ``original``, if any."""
    head, end, body = member.block.partition(_END)
    if original is not None:
        body = original.payload
    code = head.split(None, 2)[1:2]
    started_at = archived_at(member)
    return Wire(
        head_bytes=head + end,
        body=body,
        status=int(code[0]) if code and code[0].isdigit() else 0,
        ip=member.field("warc-ip-address"),
        protocols=tuple(member.all("warc-protocol")) or ("http/1.1",),
        cipher=member.field("warc-cipher-suite") or None,
        started_at=started_at,
        ended_at=started_at,
        truncated=(original or member).field("warc-truncated") or None,
    )


def archived_response(url: str, wire: Wire, max_bytes: int, original: Member | None = None) -> Response:
    """The response of ``wire``, whose body has the Content-Encoding of its ``original``, if any."""
    pairs = [(name.removeprefix(_EDITED), value) for name, value in read_headers(wire.head_bytes)]
    if original is not None:
        pairs = [pair for pair in pairs if pair[0] != _CODING]
        pairs += [pair for pair in read_headers(original.block.partition(_END)[0] + _END) if pair[0] == _CODING]
    return response_of(url, wire, pairs, max_bytes)
