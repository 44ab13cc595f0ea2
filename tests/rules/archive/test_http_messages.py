"""What the first bytes of a payload show."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.archive.http_messages import (
    _edited,
    content_encoded,
    media_type,
    payload_type,
    redirect_target,
    stored_head,
)

OK = b"HTTP/1.1 200 OK\r\n"

UNTOUCHED = {
    "odd spacing": OK + b"Content-Type:text/html\r\nX-A:   b  \r\nContent-Length :  5 \r\n\r\n",
    "folded": OK + b"X-Fold: one\r\n  two\r\n\tthree\r\n\r\n",
    "folded length": OK + b"Content-Length:\r\n 5\r\n\r\n",
    "latin-1": OK + b"X-Name: Jos\xe9\r\nContent-Length: 5\r\n\r\n",
    "duplicates": OK + b"Set-Cookie: a=1\r\nset-cookie: b=2\r\nSet-Cookie: a=1\r\n\r\n",
    "same length twice": OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
    "no reason": b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n",
    "empty reason": b"HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\n",
    "latin-1 reason": b"HTTP/1.1 200 Tr\xe8s bien\r\n\r\n",
    "close-delimited": b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\n",
    "no colon": OK + b"this is no header\r\nContent-Length\r\n\r\n",
    "empty value": OK + b"X-E:\r\n\r\n",
    "lone CR": OK + b"X-A: b\r\r\n\r\n",
    "encoding kept": OK + b"Content-Encoding: gzip\r\nTransfer-Encoding: identity\r\n\r\n",
    "304 speaks of another body": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 900\r\n\r\n",
    "204": b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n",
    "only a status line": b"HTTP/1.0 200 OK\r\n\r\n",
}

EDITED = {
    "chunked": (
        OK + b"transfer-encoding:  chunked\r\nX-A: b\r\n\r\n",
        True,
        OK + b"X-Crawler-transfer-encoding:  chunked\r\nX-A: b\r\nContent-Length: 5\r\n\r\n",
    ),
    "chunked and a false length": (
        OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n",
        True,
        OK + b"X-Crawler-Content-Length: 9\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
    ),
    "chunked and a true length": (
        OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        True,
        OK + b"Content-Length: 5\r\nX-Crawler-Transfer-Encoding: chunked\r\n\r\n",
    ),
    "short body": (
        OK + b"Content-Length: 900\r\n\r\n",
        False,
        OK + b"X-Crawler-Content-Length: 900\r\nContent-Length: 5\r\n\r\n",
    ),
    "folded false length": (
        OK + b"Content-Length: 1\r\n 2\r\nX: y\r\n\r\n",
        False,
        OK + b"X-Crawler-Content-Length: 1\r\n 2\r\nX: y\r\nContent-Length: 5\r\n\r\n",
    ),
    "list of lengths": (
        OK + b"Content-Length: 5, 5\r\n\r\n",
        False,
        OK + b"X-Crawler-Content-Length: 5, 5\r\nContent-Length: 5\r\n\r\n",
    ),
    "two lengths, one true": (
        OK + b"Content-Length: 7\r\nContent-Length: 5\r\n\r\n",
        False,
        OK + b"X-Crawler-Content-Length: 7\r\nContent-Length: 5\r\n\r\n",
    ),
    "absurd length": (
        OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        False,
        OK + b"X-Crawler-Content-Length: " + b"9" * 5000 + b"\r\nContent-Length: 5\r\n\r\n",
    ),
    "bare LF": (b"HTTP/1.1 200 OK\nA: b\nC: d\n\n", False, OK + b"A: b\r\nC: d\r\n\r\n"),
    "mixed line ends": (OK + b"A: b\nC: d\r\n\n", False, OK + b"A: b\r\nC: d\r\n\r\n"),
    "no blank line": (OK + b"A: b", False, OK + b"A: b\r\n\r\n"),
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_kept_byte_for_byte(name: str) -> None:
    """A head that does not belie its 5-byte body is stored as it was received."""
    assert stored_head(UNTOUCHED[name], chunked=False, body_bytes=5) == UNTOUCHED[name]


@pytest.mark.parametrize("name", EDITED)
def test_edited_only_where_untrue(name: str) -> None:
    """Only framing lines that no longer hold are prefixed, and one true length is added."""
    head, chunked, expected = EDITED[name]
    assert stored_head(head, chunked=chunked, body_bytes=5) == expected


names = st.sampled_from(
    [b"Content-Length", b"content-length ", b"Transfer-Encoding", b"X-A", b"Cookie", b"Te", b" fold"]
)
values = st.one_of(
    st.integers(0, 20).map(lambda n: b"%d" % n), st.binary(max_size=8).map(lambda v: v.replace(b"\n", b""))
)
heads = st.lists(st.tuples(names, values), max_size=6)


@given(heads, st.booleans(), st.integers(0, 20))
def test_lengths_hold_and_nothing_is_lost(lines: list[tuple[bytes, bytes]], chunked: bool, body_bytes: int) -> None:
    """Every unprefixed one-line Content-Length is true, no line is lost or reordered, twice is the same as once."""
    received = [name + b":" + value for name, value in lines]
    stored = stored_head(
        b"\r\n".join([b"HTTP/1.1 200 OK", *received, b"", b""]), chunked=chunked, body_bytes=body_bytes
    )
    kept = stored.split(b"\r\n")[1:-2]
    stripped = [line.removeprefix(b"X-Crawler-") for line in kept]
    if len(kept) > len(received):
        assert stripped.pop() == b"Content-Length: %d" % body_bytes
    assert [line.rstrip(b"\r") for line in stripped] == [line.rstrip(b"\r") for line in received]
    for index, line in enumerate(kept):
        name, _, value = line.partition(b":")
        folded = index + 1 < len(kept) and kept[index + 1].startswith(b" ")
        if name.strip().lower() == b"content-length" and not folded:
            assert int(value) == body_bytes
        assert not (chunked and name.strip().lower() == b"transfer-encoding")
    assert stored_head(stored, chunked=chunked, body_bytes=body_bytes) == stored


def test_what_the_index_reads() -> None:
    """Media type, encoding and redirect target come from the head's own bytes."""
    head = OK + b"content-TYPE: Text/HTML ; charset=x\r\nContent-Encoding: gzip\r\nLocation: ../b?c\r\n\r\n"
    assert media_type(head) == "text/html"
    assert content_encoded(head)
    assert not content_encoded(OK + b"Content-Encoding: identity\r\n\r\n")
    assert redirect_target(head, 302, "http://a.test/x/y") == "http://a.test/b?c"
    assert redirect_target(head, 200, "http://a.test/x/y") == ""
    assert redirect_target(OK + b"Location: http://[bad\r\n\r\n", 301, "http://a.test/") == "http://[bad"
    assert redirect_target(OK + b"Location: /caf\xe9\r\n\r\n", 301, "http://a.test/") == "http://a.test/café"


_line_ends = st.sampled_from([b"\r\n"] * 9 + [b"\n", b"\r\r\n", b"\r\n\r\n", b""])
_lines = st.sampled_from(
    [
        *(b"HTTP/1.1 200 OK", b"HTTP/1.1 304 x", b"", b"A: b", b" 5", b"Te: x", b"Transfer-Encoding: chunked"),
        *(b"Content-Length: 5", b"content-length:5", b"Content-Length : 5 ", b"CONTENT-LENGTH:\t05", b"Content-Length"),
        *(b"Content-Length: 7", b"Content-Length: 5, 5", b"Content-Length:", b"\tContent-Length: 7"),
        b"Content-Length: " + b"0" * 19 + b"5",
    ]
)


@given(st.lists(st.tuples(_lines, _line_ends), max_size=6), st.sampled_from([b"\r\n", b"\n", b""]), st.booleans())
def test_a_head_that_is_kept_whole_needs_no_edit(lines: list[tuple[bytes, bytes]], end: bytes, chunked: bool) -> None:
    """However it ends its lines and spells its lengths: as if every line had been looked at."""
    head = b"".join([line + line_end for line, line_end in lines]) + end
    assert stored_head(head, chunked=chunked, body_bytes=5) == _edited(head, chunked=chunked, body_bytes=5)


CASES = [
    (b"<!DOCTYPE html><html>", "text/html"),
    (b"\n <!-- by hand --> <HTML lang=en>", "text/html"),
    (b"\xef\xbb\xbf<html>", "text/html"),
    (b"<p>short</p>", "text/html"),
    (b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "x" "y">\n<html xmlns="z">', "application/xhtml+xml"),
    (b'<?xml version="1.0"?><!-- c --><rss version="2.0">', "application/rss+xml"),
    (b'<?xml version="1.0"?><feed xmlns="a">', "application/atom+xml"),
    (b'<?xml version="1.0"?><ns:root>', "application/xml"),
    (b'<svg xmlns="x">', "image/svg+xml"),
    (b"%PDF-1.7\n", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n\x00", "image/png"),
    (b"\xff\xd8\xff\xe0", "image/jpeg"),
    (b"GIF89a", "image/gif"),
    (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp"),
    (b"\x1f\x8b\x08\x00", "application/gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x00\x00\x00\x20ftypisom", "video/mp4"),
    (b' {"a": 1}', "application/json"),
    (b"[1, 2]", "application/json"),
    (b"User-agent: *\nDisallow:\n", "text/plain"),
    (b"caf\xe9", "text/plain"),
    (b"<nothing known>", "text/plain"),
    (b"\x00\x01\x02\x03", None),
    (b"", None),
]


@pytest.mark.parametrize(("sample", "expected"), CASES)
def test_known_beginnings(sample: bytes, expected: str | None) -> None:
    """Each format is known by its beginning; binary data without one has no name."""
    assert payload_type(sample) == expected


@given(st.text(alphabet="ab<> \t\r\n\x0b\x0c\x1a\x1b\x1c\x1f\x00\x08\x0e\x7f", max_size=30))
def test_binary_data_has_no_name(text: str) -> None:
    """The bytes that the standard (MIME Sniffing, section 3) calls binary, and no others."""
    binary = re.search(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]", text)
    assert (payload_type(b"_" + text.encode()) is None) == (binary is not None)


@given(st.binary(max_size=200))
def test_any_bytes_are_read(sample: bytes) -> None:
    """No sample raises."""
    assert payload_type(sample) is None or "/" in str(payload_type(sample))
