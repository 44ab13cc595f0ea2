"""The strict walk finds every kind of damage that other readers pass over."""

import gzip
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject import native as native_package
from crawlerproject.rules.archive import warc_members
from crawlerproject.rules.archive.index_rows import row_of_member
from crawlerproject.rules.archive.warc_members import (
    CHUNK_BYTES,
    LARGE_KEPT_BYTES,
    Fields,
    Flaw,
    Member,
    walk,
    whole_length,
    wrong_digest,
)
from tests.warc_samples import exchange, info_member, make

FILE = info_member() + make().members + make().members
MEMBERS = [member for member in walk([FILE]) if isinstance(member, Member)]
STARTS = [member.offset for member in MEMBERS]


def last(data: bytes) -> Member | Flaw:
    """What the walk ends with."""
    return list(walk([data]))[-1]


def test_a_good_file() -> None:
    """Seven members cover every byte, and the digests hold."""
    assert [member.kind for member in MEMBERS] == ["warcinfo"] + ["request", "response", "metadata"] * 2
    assert MEMBERS[-1].end == len(FILE)
    assert not any(wrong_digest(member) for member in MEMBERS)
    assert whole_length(walk([FILE])) == len(FILE)


@given(st.integers(1, 300))
@settings(max_examples=30)
def test_chunks_do_not_matter(size: int) -> None:
    """However the bytes arrive, the members are the same."""
    chunks = [FILE[i : i + size] for i in range(0, len(FILE), size)]
    assert list(walk(chunks)) == MEMBERS


def test_members_larger_than_a_chunk() -> None:
    """A member spans many chunks."""
    data = make(exchange(bytes(range(256)) * 4000)).members
    chunks = [data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES)]
    assert sum(member.length for member in walk(chunks) if isinstance(member, Member)) == len(data)


@given(st.integers(0, len(FILE) - 1))
@settings(max_examples=200)
def test_any_cut_is_seen(cut: int) -> None:
    """A file cut anywhere but between members ends in a flaw at the torn member; whole captures end before it."""
    found = list(walk([FILE[:cut]]))
    if cut in (0, *STARTS):
        assert not any(isinstance(member, Flaw) for member in found)
    else:
        assert isinstance(found[-1], Flaw)
        assert found[-1].offset == max(start for start in STARTS if start < cut)
    assert whole_length(walk([FILE[:cut]])) == max([end for end in (STARTS[1], STARTS[4]) if end <= cut], default=0)


@given(st.integers(0, len(FILE) * 8 - 1))
@settings(max_examples=300)
def test_any_bit_flip_is_seen_or_harmless(bit: int) -> None:
    """A flipped bit is a flaw, or one that no record depends on (a time stamp, padding, an unused code)."""
    data = bytearray(FILE)
    data[bit // 8] ^= 1 << (bit % 8)
    found = list(walk([bytes(data)]))
    if not isinstance(found[-1], Flaw):
        assert [member[2:] for member in found] == [member[2:] for member in MEMBERS]


@pytest.mark.parametrize("trailer_byte", range(1, 9))
def test_crc_and_size_are_checked(trailer_byte: int) -> None:
    """Each of the eight bytes of a member's trailer counts."""
    data = bytearray(FILE)
    data[-trailer_byte] ^= 0x10
    assert isinstance(last(bytes(data)), Flaw)


@pytest.mark.parametrize(
    "tail", [b"\0" * 100, b"\0", b"\x1f", b"junk", b"\x1f\x8b\x08\xe0junk", b"\x1f\x8b\x08\0\0\0\0\0\0\0"]
)
def test_tails_are_seen(tail: bytes) -> None:
    """NULs of a power loss, junk, a lone gzip header: a flaw where the good bytes end."""
    flaw = last(FILE + tail)
    assert isinstance(flaw, Flaw)
    assert flaw.offset == len(FILE)


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"WARC/1.1\r\nWARC-Type: metadata\r\n\r\n\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: x\r\n\r\n\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 3\r\n\r\nab\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 1\r\n\r\nab\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 2\r\n\r\nab\r\n\n\n",
    ],
)
def test_good_gzip_bad_record(record: bytes) -> None:
    """A member that inflates but does not hold one exact record is a flaw."""
    assert isinstance(last(gzip.compress(record)), Flaw)


def test_bomb() -> None:
    """A member that inflates past the bound is a flaw, not a full memory."""
    data = gzip.compress(bytes(1 << 20))
    chunks = [data[:400], data[400:]]
    assert "more than 1000" in str(list(walk(chunks, max_bytes=1000))[-1])


# --- records that are not held whole --------------------------------------------------------------

MOST = 2 * CHUNK_BYTES
BIG = make(exchange(random.Random(1).randbytes(3 * CHUNK_BYTES) + bytes(MOST))).members


def changed(member: bytes, old: bytes, new: bytes) -> bytes:
    """The same member with something else in its record."""
    return gzip.compress(gzip.decompress(member).replace(old, new, 1))


@pytest.mark.parametrize("native", [True, False])
def test_a_large_record_hides_nothing_behind_it(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its place, its fields and the beginning of its block; its digests are looked at as it comes."""
    if not native:
        monkeypatch.setattr(native_package, "reader", None)
    data = info_member() + BIG + make().members
    whole, found = list(walk([data])), list(walk(batched(data), max_bytes=MOST))

    assert [member.kind for member in whole if isinstance(member, Member)] == [
        *("warcinfo", "request", "response", "metadata"),
        *("request", "response", "metadata"),
    ]
    assert [member.is_large for member in found if isinstance(member, Member)] == [False, False, True, *[False] * 4]
    for one, other in zip(whole, found, strict=True):
        assert isinstance(one, Member)
        assert isinstance(other, Member)
        assert (one.offset, one.length, list(one.fields)) == (other.offset, other.length, list(other.fields))
        assert wrong_digest(other) == ""
        assert row_of_member(one) == row_of_member(other)
    assert isinstance(found[2], Member)
    assert found[2].block == whole[2].block[:LARGE_KEPT_BYTES]  # type: ignore[union-attr]


@pytest.mark.parametrize("below", [0, 100, 400, 1000])
def test_a_record_about_as_large_as_is_held_hides_nothing_either(below: int) -> None:
    """Its head counts: with it, it may be larger than what is held, though its block is not."""
    data = info_member() + make(exchange(bytes(MOST - below))).members + make().members
    found = list(walk(batched(data), max_bytes=MOST))

    assert [type(each) for each in found] == [Member] * 7


@pytest.mark.parametrize("kept", [CHUNK_BYTES // 2, MOST])
def test_of_a_large_record_the_beginning_is_held(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So much and no more, however it comes."""
    monkeypatch.setattr(warc_members, "LARGE_KEPT_BYTES", kept)
    (large,) = [found for found in walk(batched(BIG), max_bytes=MOST) if isinstance(found, Member) and found.is_large]

    assert len(large.block) == kept
    assert wrong_digest(large) == ""


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (bytes(8), b"12345678", "WARC-Block-Digest"),
        (b"WARC-Block-Digest", b"X-Was", ""),
        (b"\r\nContent-Length: ", b"\r\nContent-Length: 1", "two line breaks were due"),
    ],
)
def test_a_large_record_that_is_not_good(old: bytes, new: bytes, what: str) -> None:
    """Damage is found as in others."""
    request, response, _ = [gzip.compress(part) for part in parts_of(BIG)]
    data = request + changed(response, old, new)
    found = list(walk(batched(data), max_bytes=MOST))[-1]

    assert (wrong_digest(found) == what) if isinstance(found, Member) else (what in found.what)


def batched(data: bytes) -> list[bytes]:
    """As files are read."""
    return [data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES)]


def parts_of(data: bytes) -> list[bytes]:
    """What each member holds."""
    spans = [(found.offset, found.end) for found in walk([data]) if isinstance(found, Member)]
    return [gzip.decompress(data[start:end]) for start, end in spans]


def test_wrong_digest_is_named() -> None:
    """A record that was changed and packed again is told by its digest."""
    member = MEMBERS[2]
    assert wrong_digest(member._replace(block=member.block + b"x")) == "WARC-Block-Digest"
    fields = Fields((name, value) for name, value in member.fields if name != "warc-block-digest")
    assert wrong_digest(member._replace(fields=fields, block=member.block + b"x")) == "WARC-Payload-Digest"
