"""The strict walk finds every kind of damage that other readers pass over."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject.rules.archive.warc_members import (
    CHUNK_BYTES,
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


def test_wrong_digest_is_named() -> None:
    """A record that was changed and packed again is told by its digest."""
    member = MEMBERS[2]
    assert wrong_digest(member._replace(block=member.block + b"x")) == "WARC-Block-Digest"
    fields = Fields((name, value) for name, value in member.fields if name != "warc-block-digest")
    assert wrong_digest(member._replace(fields=fields, block=member.block + b"x")) == "WARC-Payload-Digest"
