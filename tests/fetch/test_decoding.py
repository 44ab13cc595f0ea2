"""Content-Encoding: what is right, what is wrong, and what is a bomb."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.fetch.decoding import MAX_GZIP_MEMBERS, decode
from tests.spending import bounded

TEXT = b"<p>a page of ordinary text, number %d</p>\n" * 400
LIMIT = 1_000_000


def raw_deflate(data: bytes) -> bytes:
    """Deflate without zlib's frame, as some servers send it."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


RIGHT = {
    "gzip": (gzip.compress(TEXT), b"gzip"),
    "GZIP": (gzip.compress(TEXT), b"GZIP"),
    "x-gzip": (gzip.compress(TEXT), b"x-gzip"),
    "two members": (gzip.compress(TEXT[:900]) + gzip.compress(TEXT[900:]), b"gzip"),
    "junk after gzip": (gzip.compress(TEXT) + b"\0" * 600, b"gzip"),
    "zlib": (zlib.compress(TEXT), b"deflate"),
    "raw deflate": (raw_deflate(TEXT), b"deflate"),
    "brotli": (brotli.compress(TEXT), b"br"),
    "junk after brotli": (brotli.compress(TEXT) + b"\n\n", b"br"),
    "identity": (TEXT, b"identity"),
    "empty value": (TEXT, b""),
    "stacked": (brotli.compress(gzip.compress(TEXT)), b"gzip, br"),
    "stacked with identity": (gzip.compress(TEXT), b"identity, gzip"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_codings_are_undone(name: str) -> None:
    """Every coding that we ask for, and its usual variants."""
    body, coding = RIGHT[name]
    decoded = decode(body, coding, LIMIT)
    assert decoded == (TEXT, len(body), False, "")


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"gzip, br"])
@pytest.mark.parametrize("body", [TEXT, b'{"json": true}' * 9, b"x"], ids=["html", "json", "x"])
def test_plain_body_under_a_wrong_header_is_kept(coding: bytes, body: bytes) -> None:
    """A body that was never encoded is given back as it is, flagged."""
    decoded = decode(body, coding, LIMIT)
    assert (decoded.body, decoded.truncated) == (body, False)
    assert decoded.flag == "encoding-wrong"


@pytest.mark.parametrize("coding", [b"zstd", b"utf-8", b"gzip, zstd", b"gzip,gzip,gzip,gzip"])
def test_unknown_coding_leaves_the_body_alone(coding: bytes) -> None:
    """What we never asked for is not touched, nor a pile of codings."""
    assert decode(TEXT, coding, LIMIT) == (TEXT, len(TEXT), False, "encoding-unknown")


@pytest.mark.parametrize("name", ["gzip", "zlib", "raw deflate", "brotli"])
def test_broken_off_body_keeps_its_start(name: str) -> None:
    """A body cut on the way still gives the text before the cut."""
    text = bytes(random.Random(5).choices(b"abcdefgh ", k=40_000))
    body = {"gzip": gzip.compress, "zlib": zlib.compress, "raw deflate": raw_deflate, "brotli": brotli.compress}[name](
        text
    )
    decoded = decode(body[: len(body) // 2], RIGHT[name][1], LIMIT)
    assert len(decoded.body) > 5_000
    assert text.startswith(decoded.body)


def test_damaged_gzip_keeps_what_came_before() -> None:
    """A wrong check sum at the end loses nothing."""
    body = gzip.compress(TEXT)
    decoded = decode(body[:-8] + b"01234567", b"gzip", LIMIT)
    assert (decoded.body, decoded.flag) == (TEXT, "encoding-damaged")


@pytest.mark.parametrize("name", ["gzip", "zlib", "raw deflate", "brotli", "gzip in gzip"])
def test_bomb_is_bounded(name: str) -> None:
    """A small body that unpacks to 100 MB gives the limit, quickly, and marks itself."""
    zeros = b"\0" * 100_000_000
    makers: dict[str, Callable[[], tuple[bytes, bytes]]] = {
        "gzip": lambda: (gzip.compress(zeros, 1), b"gzip"),
        "zlib": lambda: (zlib.compress(zeros, 1), b"deflate"),
        "raw deflate": lambda: (raw_deflate(zeros), b"deflate"),
        "brotli": lambda: (brotli.compress(zeros, quality=1), b"br"),
        "gzip in gzip": lambda: (gzip.compress(gzip.compress(zeros, 1)), b"gzip, gzip"),
    }
    body, coding = makers[name]()
    with bounded(1.0):
        decoded = decode(body, coding, LIMIT)
    assert decoded.body == zeros[:LIMIT]
    assert decoded.truncated
    assert 0 < decoded.encoded_bytes <= len(body)
    if name in ("gzip", "zlib", "raw deflate"):  # cut where the limit was reached
        assert decoded.encoded_bytes < len(body) / 5


def test_exactly_the_limit_is_not_cut() -> None:
    """The bound is the last byte that is allowed."""
    for packed, coding in ((gzip.compress(b"x" * 1000), b"gzip"), (brotli.compress(b"x" * 1000), b"br")):
        assert not decode(packed, coding, 1000).truncated
        assert decode(packed, coding, 999).truncated


def test_a_million_empty_members_cost_nothing() -> None:
    """The number of members is bounded as well."""
    with bounded(1.0):
        assert decode(gzip.compress(b"") * (MAX_GZIP_MEMBERS * 200), b"gzip", LIMIT).body == b""


@given(st.binary(max_size=300), st.sampled_from([b"gzip", b"deflate", b"br", b"br, gzip", b"x, gzip", b",", b"\xff"]))
def test_any_bytes_raise_nothing_and_stay_bounded(body: bytes, coding: bytes) -> None:
    """No body under no header raises, and nothing passes the limit but a body given back as it was."""
    decoded = decode(body, coding, 50)
    assert len(decoded.body) <= 50 or decoded.flag or decoded.body == body
    assert decoded.encoded_bytes <= len(body)


@given(st.binary(max_size=2000))
def test_round_trip(data: bytes) -> None:
    """What was packed comes back."""
    for packed, coding in (
        (gzip.compress(data), b"gzip"),
        (zlib.compress(data), b"deflate"),
        (brotli.compress(data), b"br"),
    ):
        assert decode(packed, coding, 5000).body == data
