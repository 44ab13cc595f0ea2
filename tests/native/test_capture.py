"""Records, index row and log line of a page, as the native reader writes them: as Python does, which does the rest."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject import native
from crawlerproject.crawl.page_completion import log_fields, log_line
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.passage import Lease
from crawlerproject.items import LeaseResult, Rendered
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import Wire, payload_digest
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Capture, Context, Original, capture_in_python
from crawlerproject.stores.archive.archive import Written, record_ids
from crawlerproject.stores.protocols import QueuedPage
from tests.warc_samples import PAGE, STARTED_AT, WARCINFO_ID, exchange

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
IDS = record_ids(bytes(range(48)))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["", "http://a.test/", "a\r\nb", '"\\\x00\x08\x0b\x0c\x1f\x7f', "é€😀", "x" * 5000, "\ud800"]
)
BODIES = st.sampled_from([b"", PAGE, PAGE * 500, bytes(range(256))])
MOMENTS = (
    st.floats(0, 4e9)
    | st.floats()
    | st.sampled_from([0.0, -1.0, STARTED_AT, 951_782_400.0, 4_107_542_399.9999996, 253402300799.9, 2.0**60])
)
SECONDS = st.floats(0, 100) | st.floats() | st.sampled_from([0, 0.0, 1e-5, 9e-6, 0.0005, 5.0, 0.1234565, 1e6])
TRUNCATED = st.sampled_from([None, "", "length", "time", "disconnect"])
ORIGINALS = st.none() | st.builds(Original, TEXTS, TEXTS, TEXTS) | st.just(Original("<urn:x>", "u", "d", NOT_MODIFIED))
WIRES = st.builds(
    Wire,
    request_bytes=st.sampled_from([b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", b"", b"\xff" * 10, b"x" * 6000]),
    body=BODIES,
    status=st.sampled_from([0, 200, 304, 999]),
    ip=st.sampled_from(["", "127.0.0.1"]),
    protocols=st.sampled_from([(), ("http/1.1",), ("h2", "tls/1.3")]),
    cipher=st.sampled_from([None, "", "TLS_AES_128_GCM_SHA256"]),
    started_at=MOMENTS,
    ended_at=MOMENTS,
    ttfb_seconds=st.none() | SECONDS,
    received_bytes=st.integers(0, 2**40),
    truncated=TRUNCATED,
)
NOTES = st.lists(st.tuples(TEXTS, TEXTS), max_size=3)


def found(context: Context, original: Original | None = None, **changes: Any) -> tuple[Any, ...]:
    """What is known of a capture besides its exchange."""
    known: dict[str, Any] = {"digest": payload_digest(PAGE), "head": HEAD, "level": 2, "mime": "text/html"}
    known |= {"ip": "127.0.0.1", "identified": "text/html", "redirect": "", "start": 7} | changes
    said = known["head"], known["level"], known["mime"], known["ip"], known["identified"], known["redirect"]
    return (context, known["digest"], original, WARCINFO_ID, IDS, known["start"], *said)


def made(wire: Wire, *about: Any) -> Capture | None:
    """What the native reader makes of it, if anything: what Python makes."""
    reader = native.reader
    assert reader is not None
    capture = reader.capture(Capture, wire, *about)
    assert capture is None or (type(capture) is Capture and capture == capture_in_python(wire, *about))
    return capture


@settings(max_examples=400)
@given(WIRES, TEXTS, TEXTS, st.none() | SECONDS, st.none() | SECONDS, NOTES, ORIGINALS, TEXTS, st.integers(0, 2**40))
def test_any_capture_is_python_s(
    wire: Wire,
    url: str,
    via: str,
    delay: float | None,
    waited: float | None,
    notes: list[tuple[str, str]],
    original: Original | None,
    text: str,
    start: int,
) -> None:
    """Odd times, texts and sizes, revisits and empty bodies: the same bytes, or none."""
    context = Context(url, via, "LLE", delay, waited, b"", notes)
    made(wire, *found(context, original, mime=text, identified=text, redirect=text, start=start))


@pytest.mark.parametrize(
    "original", [None, Original("<urn:x>", "http://é.test/", "d"), Original("i", "u", "d", NOT_MODIFIED)]
)
@pytest.mark.parametrize("body", [b"", PAGE, PAGE * 500])
def test_usual_ones_are_made_natively(body: bytes, original: Original | None) -> None:
    """Also of names that are not of ASCII, and of what is longer than a short record."""
    context = Context(
        "http://a.test/é", "http://a.test/", "LL", 5.0, 7.1237, b"", [("via", "x\ny"), ("long", "x" * 5000)]
    )
    assert made(exchange(body, truncated="length"), *found(context, original, ip="::1")) is not None


@pytest.mark.parametrize(
    "odd",
    [{"digest": b"short"}, {"head": "text"}, {"mime": None}, {"start": -1}, {"start": 2**70}, {"level": "2"}],
    ids=str,
)
def test_what_is_no_capture_is_left_to_python(odd: dict[str, Any]) -> None:
    """A digest of another length, a text in place of bytes, a negative place."""
    reader = native.reader
    assert reader is not None
    assert reader.capture(Capture, exchange(), *found(Context("http://a.test/"), **odd)) is None
    nothing: dict[str, Any] = {"body": None}
    assert reader.capture(Capture, object(), *found(Context("http://a.test/"))) is None
    assert reader.capture(Capture, exchange(ended_at=-inf), *found(Context("http://a.test/"))) is None
    assert reader.capture(Capture, replace(exchange(), **nothing), *found(Context("http://a.test/"))) is None


def visited(wire: Wire | None, row: QueuedPage, delay: float = 5.0, **changes: Any) -> LeaseResult:
    """A page that has ended."""
    host: Any = None
    lease = Lease(row, host, "127.0.0.1", STARTED_AT, delay)
    return LeaseResult(row, Reason.FETCHED, 200, lease=lease, wire=wire, **changes)


ROWS = st.builds(
    QueuedPage, TEXTS, st.just(bytes(24)), TEXTS, st.just(3), st.just(4), st.integers(0, 300), TEXTS, TEXTS
)
WRITTEN = st.none() | st.builds(
    Written,
    TEXTS,
    st.integers(0, 2**40),
    st.integers(0, 2**40),
    st.sampled_from([b"", payload_digest(PAGE)]),
    st.just("<urn:x>"),
    st.just("d"),
)


def line(fields: dict[str, object]) -> bytes | None:
    """As the log packs them; None of what it cannot pack."""
    try:
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return None


@settings(max_examples=400)
@given(
    st.none() | WIRES,
    ROWS,
    SECONDS,
    TEXTS,
    TEXTS,
    st.none() | st.builds(Duplicate, st.sampled_from(["exact", "near"]), TEXTS),
    WRITTEN,
    MOMENTS,
)
def test_any_log_line_is_python_s(
    wire: Wire | None,
    row: QueuedPage,
    delay: float,
    error: str,
    location: str,
    duplicate: Duplicate | None,
    written: Written | None,
    now: float,
) -> None:
    """Attempts without an answer, odd times and texts, duplicates, what was not archived: the same bytes, or none."""
    reader = native.reader
    assert reader is not None
    result = visited(wire, row, delay, error=error, location=location, mime=error, duplicate=duplicate)
    packed = reader.log_line(result, written, now)
    assert packed is None or packed == line(log_fields(result, written, now))


def test_usual_log_lines_are_made_natively() -> None:
    """Of a page with an answer and of one without; a render and odd arguments are left to Python."""
    reader, row = native.reader, QueuedPage("a.test", bytes(24), "http://a.test/é", 1, 2, 3, "LL", "")
    assert reader is not None
    for wire in (None, exchange(ttfb_seconds=0.012)):
        assert reader.log_line(visited(wire, row), None, STARTED_AT + 1) is not None
    render = visited(None, row, rendered=Rendered("http://a.test/"), is_render=True)
    assert reader.log_line(render, None, STARTED_AT) is None
    assert isinstance(log_line(render, None, STARTED_AT), dict)
    assert reader.log_line(object(), None, 1.0) is reader.log_line(render, ("short",), 1.0) is None
