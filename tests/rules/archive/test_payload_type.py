"""What the first bytes of a payload show."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.archive.payload_type import payload_type

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
