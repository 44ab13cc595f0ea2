"""Members of WARC files by the native reader and by isal and Python: records, flaws, digests and rows of an index."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha1
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject import native
from crawlerproject.rules.archive.http_messages import content_encoded, digest_text, media_type, stored_head
from crawlerproject.rules.archive.index_rows import row_of_member
from crawlerproject.rules.archive.warc_members import Member, records_in, walk, wrong_digest
from crawlerproject.rules.archive.warc_records import sealed_in_python
from crawlerproject.stores.archive.archive import record_ids
from tests.warc_samples import PAGE, exchange, info_member, make

FILE = info_member() + make().members + make(exchange(bytes(range(256)) * 300)).members
RECORDS = [member for member in walk([FILE]) if isinstance(member, Member)]
TEXT = b"WARC/1.1\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
WHOLE = 1 << 24
Answer = TypeVar("Answer")


@contextmanager
def in_python() -> Iterator[None]:
    """Without the native reader."""
    native.choose(native.NEVER)
    try:
        yield
    finally:
        native.choose(native.AUTO)


def both(read: Callable[[], Answer]) -> Answer:
    """What both readers answer."""
    found = read()
    with in_python():
        assert read() == found
    return found


def packed(data: bytes, level: int = 6, strategy: int = zlib.Z_DEFAULT_STRATEGY, flush: int = 0) -> bytes:
    """A gzip member; with ``flush`` in several blocks."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 31, 9, strategy)
    parts = (
        [packer.compress(data[at : at + flush]) + packer.flush(zlib.Z_FULL_FLUSH) for at in range(0, len(data), flush)]
        if flush
        else [packer.compress(data)]
    )
    return b"".join(parts) + packer.flush()


STRATEGIES = [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("level", [0, 1, 9])
def test_every_kind_of_block_is_inflated(level: int, strategy: int) -> None:
    """Stored, with fixed and with own codes, of one symbol and of all, in one block and in many."""
    reader = native.reader
    assert reader is not None
    samples = [b"", b"a", b"ab" * 40_000, bytes(range(256)) * 300, PAGE * 50, zlib.compress(PAGE) * 9]
    samples.append(b"".join(number.to_bytes(3) * (number % 7) for number in range(40_000)))
    for sample in samples:
        for flush in (0, 700):
            record = TEXT % (len(sample), sample)
            member = packed(record, level, strategy, flush)
            found = Member(9, len(member), (("content-length", str(len(sample))),), sample)  # type: ignore[arg-type]
            assert reader.members(b"before" + member + b"after", 6, WHOLE, 9, Member) == (
                6 + len(member),
                [found],
                None,
            )
            other = packed(sample, level, strategy, flush)
            assert reader.members(other, 0, WHOLE, 0, Member) == (len(other), [], sample)
            behind = found._replace(offset=9 + len(member))
            assert reader.members(2 * member + other, 0, WHOLE, 9, Member) == (2 * len(member), [found, behind], None)


def test_what_is_not_plain_is_left_to_python() -> None:
    """Names in the gzip head, a member that is cut, one that is larger than it may be, a place behind the end."""
    reader = native.reader
    assert reader is not None
    record = TEXT % (len(PAGE), PAGE)
    member = packed(record)
    named = member[:3] + b"\x08" + member[4:10] + b"name\0" + member[10:]
    for odd, at, most in ((named, 0, WHOLE), (member, 0, 100), (member, len(member), WHOLE), (member, 9999, WHOLE)):
        assert reader.members(odd, at, most, 0, Member) == (at, [], None)
    assert not any(any(reader.members(member[:end], 0, WHOLE, 0, Member)) for end in range(len(member)))
    assert [found for found in both(lambda: list(walk([named]))) if isinstance(found, Member)]
    with pytest.raises(TypeError):
        reader.members(memoryview(member), 0, WHOLE, 0, Member)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        reader.members(member, 0, WHOLE, 0, int)


@given(st.data())
@settings(max_examples=300)
def test_damage_is_found_alike(data: st.DataObject) -> None:
    """Bytes that are changed, left out or put in, a torn end, and chunks of any size: the same records and flaws."""
    file = bytearray(FILE)
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(file)))
        file[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    size = data.draw(st.sampled_from([50, 700, len(FILE)]))
    chunks = [bytes(file[at : at + size]) for at in range(0, len(file), size)]
    both(lambda: [(type(found), found[:2] if isinstance(found, Member) else found.offset) for found in walk(chunks)])
    both(lambda: [found for found in walk(chunks, cut=records_in) if isinstance(found, Member)])


@given(st.binary(max_size=400), st.integers(0, 300))
@settings(max_examples=300)
def test_any_stream(tail: bytes, cut: int) -> None:
    """What may be no gzip at all behind a good head, and behind the beginning of a good member."""
    both(lambda: [isinstance(found, Member) for found in walk([FILE[:10] + tail])])
    both(lambda: [isinstance(found, Member) for found in walk([FILE[:cut] + tail])])


LINES = st.sampled_from(
    (
        b"Content-Length: 5|content-length:5|Content-Length : 5|Content-Length: 6|Content-Length:  5|Content-Length:|"
        b"Content-Length: 5 |Content-Length: 05|Content-Length: 00000000000000000005|Content-Length| folded|X: y||"
        b"Content-Encoding: gzip|content-encoding:Identity|Content-Encoding \t:\t br|Content-Encoding: |"
        b"Content-Encoding:\0|Content-Encoding:\x0b|Content-Encoding: identit|Content-Encodings: br|"
        b"Content-Type: A/B ; c|Content-Type:\xe4|Content-Type: \tc/d|HTTP/1.1 200 OK"
    ).split(b"|")
)
BREAKS = st.sampled_from([b"\r\n"] * 9 + [b"\n", b"\r", b"\n\r\n"])


@given(st.lists(st.tuples(LINES, BREAKS), max_size=6), st.sampled_from([b"\r\n", b"\r\n\r\n", b"\n", b""]))
@settings(max_examples=400)
def test_a_head_says_the_same(lines: list[tuple[bytes, bytes]], end: bytes) -> None:
    """Of one that is stored as it came: its media type, and whether its body is compressed. Others Python edits."""
    reader = native.reader
    assert reader is not None
    head = b"".join(part for line in lines for part in line) + end
    found = reader.head(head, 5)
    as_it_came = stored_head(head, chunked=False, body_bytes=5) == head
    assert found is None or (as_it_came and found == (media_type(head), content_encoded(head)))


def test_an_ordinary_head_is_read() -> None:
    """It is not left to Python."""
    reader = native.reader
    assert reader is not None
    head = b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=utf-8\r\nContent-Length: 5\r\n\r\n"
    assert reader.head(head, 5) == ("text/html", False)
    assert reader.head(head[:-2] + b"Content-Encoding: gzip\r\n\r\n", 5) == ("text/html", True)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.binary(max_size=200), st.binary(max_size=200))
def test_a_record_is_sealed_the_same(fields: str, block: bytes, body: bytes) -> None:
    """Digest, length, and the blank lines behind."""
    reader = native.reader
    assert reader is not None
    assert reader.sealed(fields, block, body) == sealed_in_python(fields, block, body)


@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(0, 30), st.data())
@settings(max_examples=300)
def test_both_digests_hold_alike(head: bytes, body: bytes, times: int, data: st.DataObject) -> None:
    """Of block and payload at once, of any lengths; with one byte changed they do not."""
    reader = native.reader
    assert reader is not None
    head, body = head.replace(b"\n", b"") + b"\r\n\r\n", body * times
    digest = digest_text(sha1(body, usedforsecurity=False).digest())
    fields = f"WARC/1.1\r\nContent-Type: application/http\r\nWARC-Payload-Digest: sha1:{digest}\r\n"
    found = reader.record(sealed_in_python(fields, head, body))
    assert found is not None
    assert reader.holds(*found)
    changed = bytearray(found[1])
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= 1
    assert not reader.holds(found[0], bytes(changed))
    assert not reader.holds(found[0], found[1] + b"x")


LETTERS = st.one_of(st.text(st.characters(min_codepoint=9, max_codepoint=126)), st.text("ab\r\n"))


@given(LETTERS, LETTERS, st.integers(1, 90))
def test_a_short_record_is_packed_whole(fields: str, text: str, times: int) -> None:
    """A gzip member of ours holds the record that isal's would, whatever repeats in it."""
    reader = native.reader
    assert reader is not None
    block = (text * times).encode()
    record, member = sealed_in_python(fields, block, b""), reader.short(fields, block)
    odd = any(not (32 <= byte < 127 or byte in b"\t\r\n") for byte in record)
    assert member is None if odd or len(record) > 4096 else zlib.decompress(member or b"", 31) == record


def test_the_code_of_short_records_is_known_by_all_its_bits() -> None:
    """One bit changed anywhere in the head of the block, or a torn end: as isal reads it."""
    reader = native.reader
    assert reader is not None
    member = reader.short("WARC/1.1\r\nWARC-Type: metadata\r\n", b"via: http://a.example/\r\n")
    assert member is not None
    assert len(reader.members(member * 2, 0, WHOLE, 0, Member)[1]) == 2
    for bit in range(8 * 80):
        changed = bytearray(member)
        changed[bit // 8] ^= 1 << bit % 8
        both(lambda changed=changed: [isinstance(found, Member) for found in walk([bytes(changed)])])  # type: ignore[misc]
    assert not any(any(reader.members(member[:end], 0, WHOLE, 0, Member)) for end in range(len(member)))


def test_a_short_record_is_as_small() -> None:
    """One code for all of them takes little more room than one for each, even for one that is unlike ours."""
    reader = native.reader
    assert reader is not None
    metadata = next(member for member in RECORDS if member.kind == "metadata")
    lines = "".join(f"{name}: {value}\r\n" for name, value in metadata.fields)
    member = reader.short(f"WARC/1.1\r\n{lines}", metadata.block)
    assert member is not None
    assert len(member) < 1.15 * len(packed(sealed_in_python(f"WARC/1.1\r\n{lines}", metadata.block, b"")))


@given(st.integers(0, 4).flatmap(lambda count: st.binary(min_size=16 * count, max_size=16 * count)))
def test_record_ids_are_the_same(random: bytes) -> None:
    """UUIDs of version 4, as Python writes them."""
    reader = native.reader
    assert reader is not None
    assert reader.ids(random) == record_ids(random)


@pytest.mark.parametrize(
    "given", [(), ("a", b""), (b"a", b"", b""), ("a", "b", b""), ("a", b"", None), ("\ud800", b"", b"")]
)
def test_what_is_no_record_is_an_error(given: tuple[object, ...]) -> None:
    """No crash."""
    reader: Any = native.reader
    with pytest.raises((TypeError, ValueError)):
        reader.sealed(*given)
    for odd in ((), ("a",), ("a", "b"), (b"a", b""), ("\ud800", b"")):
        with pytest.raises((TypeError, ValueError)):
            reader.short(*odd)
    with pytest.raises(TypeError):
        reader.ids(b"a")
    with pytest.raises((TypeError, ValueError, OverflowError)):
        reader.head(b"a", -1)


HEADS = [
    b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML ; charset=utf-8\r\nContent-Type: a/b\r\n\r\n",
    b"HTTP/1.1 200\r\ncontent-type:\r\n\r\n",
    b"HTTP/2 404 Not Found\r\nContent\rType: a/b\r\nContent-Types: a/b\r\nCONTENT-TYPE \t: \tc/d\t\r\n\r\n",
    b"HTTP/1.1 301 Moved\r\nLocation: /b\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\n\r\n",
    b"HTTP/1.1 200 OK\nContent-Type: a/b\n\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: a/\xe4\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: a/\x0bb\x0b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: " + b"a" * 200 + b"\r\n\r\n",
    *(
        b"HTTP/1.1  200 OK\r\nX: y",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1\t200\r\n\r\n",
        b"",
        b"\n",
    ),
]
FIELDS = [
    {},
    {"WARC-Target-URI": "<http://a.test/b>", "WARC-Date": "2026-11"},
    {"WARC-Payload-Digest": "sha1:"},
    {"WARC-Payload-Digest": "sha256:00"},
    {"WARC-Payload-Digest": "md5:00", "WARC-Block-Digest": "SHA1:00"},
    {"WARC-Type": "revisit", "WARC-Truncated": "length"},
    {"WARC-Truncated": "length", "Content-Type": "text/plain"},
]


@pytest.mark.parametrize("head", HEADS)
def test_rows_and_digests_are_the_same(head: bytes) -> None:
    """Of heads as they are and as they are not to be, and of fields of all kinds."""
    response = RECORDS[2]
    given = {
        "-".join(map(str.title, name.split("-"))).replace("Warc", "WARC"): value for name, value in response.fields
    }
    for changes in FIELDS:
        for body in (b"", PAGE, b"\n\n" + PAGE):
            fields = given | changes | {"Content-Length": str(len(head + body))}
            lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            record = f"WARC/1.1\r\n{lines}\r\n".encode() + head + body + b"\r\n\r\n"
            (member,) = both(lambda record=record: list(walk([packed(record)])))  # type: ignore[misc]
            assert isinstance(member, Member)
            both(lambda member=member: (row_of_member(member), wrong_digest(member)))  # type: ignore[misc]


def test_true_digests_are_held_natively() -> None:
    """Of each of our records, and none of them after a change of its block."""
    reader = native.reader
    assert reader is not None
    for member in RECORDS:
        assert both(lambda member=member: wrong_digest(member)) == ""  # type: ignore[misc]
        stated = member.field("warc-block-digest")
        assert not (stated and reader.holds(member.fields, member.block + b"x"))
    assert any(reader.holds(member.fields, member.block) for member in RECORDS)
    assert any(reader.row(member.fields, member.block) for member in RECORDS)
