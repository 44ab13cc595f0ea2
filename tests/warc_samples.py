"""Exchanges and captures that the archive's tests share."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count, islice
from typing import Any

from crawlerproject.rules.archive.http_messages import Wire, payload_digest
from crawlerproject.rules.archive.index_rows import CdxjEntry, unpack
from crawlerproject.rules.archive.warc_records import Capture, Context, Original, capture, warcinfo

STARTED_AT = 1_790_000_000.25
PAGE = b"<!DOCTYPE html><title>A page</title><p>" + b"Words of a page. " * 40
WARCINFO_ID = "<urn:uuid:00000000-0000-4000-8000-00000000ffff>"


def ids() -> Callable[[], str]:
    """Record ids that count up."""
    numbers = count(1)
    return lambda: f"<urn:uuid:00000000-0000-4000-8000-{next(numbers):012d}>"


def exchange(body: bytes = PAGE, head: bytes | None = None, **changes: Any) -> Wire:
    """A plain answer, with changes."""
    if head is None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
    made = Wire(
        request_bytes=b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        head_bytes=head,
        body=body,
        status=int(head.split()[1]),
        chunked=False,
        ip="127.0.0.1",
        protocols=("http/1.1",),
        cipher=None,
        started_at=STARTED_AT,
        ended_at=STARTED_AT + 0.1234,
    )
    return replace(made, **changes)


def make(
    what: Wire | None = None,
    url: str = "http://a.test/",
    original: Original | None = None,
    warcinfo_id: str = WARCINFO_ID,
    new_id: Callable[[], str] | None = None,
    start: int = 0,
    **context: Any,
) -> Capture:
    """A capture of ``what`` with counting record ids."""
    what = what or exchange()
    about = Context(url=url, sample=what.body)._replace(**context)
    digest, fresh = payload_digest(what.body), islice(iter(new_id or ids(), None), 3)
    return capture(what, about, digest, original, warcinfo_id=warcinfo_id, ids=[*fresh], start=start)


def row_of(made: Capture) -> CdxjEntry:
    """What the index has of a capture."""
    row = unpack(made.line)
    assert row is not None
    return row


def info_member(filename: str = "x.warc.gz") -> bytes:
    """The first member of a file."""
    return warcinfo(
        [("software", "Test/1.0"), ("operator", "")], filename=filename, record_id=WARCINFO_ID, now=STARTED_AT
    )
