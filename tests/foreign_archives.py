"""Archive files in the shapes in which other programs write them, made by warcio or by hand."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

DATE = "2026-03-01T10:00:00Z"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
_LAST = b"\r\n\r\n"


class Page(NamedTuple):
    """What was archived."""

    url: str
    body: bytes


class Shape(NamedTuple):
    """How a program writes it."""

    suffix: str
    make: Callable[[Sequence[Page]], bytes]
    placed: bool = True  # an index can name its records


def chunked(body: bytes, size: int = 7, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    """As a server sends it in chunks of so many bytes."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    frames = [b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts]
    return b"".join(frames) + b"0%b\r\n%b\r\n" % (extension, trailer)


def warcs(pages: Sequence[Page], *, packed: bool, head: bytes = _HEAD, framed: bool = False) -> bytes:
    """By warcio: a warcinfo, then a response a page; ``framed``: with the chunks of the transfer."""
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=packed)
    writer.write_record(writer.create_warcinfo_record("theirs.warc", {"software": "Other/1.0"}))
    lines = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line]
    for page in pages:
        fields = StatusAndHeaders("200 OK", [(name, value) for name, value in lines], protocol="HTTP/1.1")
        body = io.BytesIO(chunked(page.body) if framed else page.body)
        about = {"WARC-Date": DATE}
        writer.write_record(
            writer.create_warc_record(page.url, "response", body, http_headers=fields, warc_headers_dict=about)
        )
    return out.getvalue()


def by_hand(page: Page, number: int, block: bytes, version: bytes = b"1.0") -> bytes:
    """A response record as wget writes it, without compression."""
    return (
        b"WARC/%b\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012d>\r\n"
        b"WARC-Date: %b\r\nWARC-Target-URI: <%b>\r\nContent-Type: application/http;msgtype=response\r\n"
        b"Content-Length: %d\r\n\r\n%b\r\n\r\n"
    ) % (version, number, DATE.encode(), page.url.encode(), len(block), block)


def _wget(pages: Sequence[Page]) -> bytes:
    return b"".join(
        gzip.compress(by_hand(page, number, _HEAD + _CHUNKED + b"\r\n" + chunked(page.body)))
        for number, page in enumerate(pages)
    )


def _old(pages: Sequence[Page]) -> bytes:
    return b"".join(by_hand(page, number, _HEAD + b"\r\n" + page.body, b"0.18") for number, page in enumerate(pages))


def _line_feeds(pages: Sequence[Page]) -> bytes:
    head = _HEAD.replace(b"\r\n", b"\n") + b"\n"
    return b"".join(gzip.compress(by_hand(page, number, head + page.body)) for number, page in enumerate(pages))


def _arcs(pages: Sequence[Page]) -> Iterable[bytes]:
    """The records of an ARC of version 1."""
    about = b"1 0 Other\nURL IP-address Archive-date Content-type Archive-length\n"
    yield b"filedesc://theirs.arc 0.0.0.0 20260301100000 text/plain %d\n%b\n" % (len(about), about)
    yield b"dns:a.test 10.0.0.1 20260301100000 text/dns 9\n127.0.0.1\n"
    for page in pages:
        block = _HEAD + b"\r\n" + page.body
        head = b"%b 127.0.0.1 %b text/html %d\n" % (page.url.encode(), re.sub(rb"\D", b"", DATE.encode()), len(block))
        yield head + block + b"\n"


def _without_end(pages: Sequence[Page]) -> bytes:
    """Each record in a member of its own, the last one of them without its line breaks."""
    whole = gzip.decompress(warcs(pages, packed=True))
    first, last = whole.rsplit(b"WARC/1.0\r\n", 1)
    return gzip.compress(b"WARC/1.0\r\n" + last.removesuffix(_LAST)) if not first else b"".join(
        [*(gzip.compress(b"WARC/1.0\r\n" + part) for part in first.split(b"WARC/1.0\r\n")[1:]),
         gzip.compress(b"WARC/1.0\r\n" + last.removesuffix(_LAST))]
    )  # fmt: skip


SHAPES = {
    "ordinary": Shape(".warc.gz", lambda pages: warcs(pages, packed=True)),
    "framed": Shape(".warc.gz", lambda pages: warcs(pages, packed=True, head=_HEAD + _CHUNKED, framed=True)),
    "only-said-to-be-framed": Shape(".warc.gz", lambda pages: warcs(pages, packed=True, head=_HEAD + _CHUNKED)),
    "wget": Shape(".warc.gz", _wget),
    "line-feeds": Shape(".warc.gz", _line_feeds),
    "plain": Shape(".warc", lambda pages: warcs(pages, packed=False)),
    "plain-old": Shape(".warc", _old),
    "plain-cut": Shape(".warc", lambda pages: warcs(pages, packed=False).removesuffix(_LAST)),
    "cut": Shape(".warc.gz", _without_end),
    "one-member": Shape(".warc.gz", lambda pages: gzip.compress(warcs(pages, packed=False)), placed=False),
    "arc": Shape(".arc", lambda pages: b"".join(_arcs(pages))),
    "arc-packed": Shape(".arc.gz", lambda pages: b"".join(map(gzip.compress, _arcs(pages)))),
    "arc-one-member": Shape(".arc.gz", lambda pages: gzip.compress(b"".join(_arcs(pages))), placed=False),
}
"""By name."""
