"""The native reader of WARC records and the Python one: what it reads they read alike, what it leaves is Python's."""

from base64 import b32encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject import native
from crawlerproject.rules.archive.http_messages import _base32
from crawlerproject.rules.archive.warc_members import Fields, Flaw, Member, judged

GOOD = (
    b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI:  http://h.test/ \r\nContent-Type: text/plain; a=b:c\r\n"
    b"X\r\nCONTENT-Length:\t7\r\nContent-Length: 9\r\n\r\nbl\r\n\r\nk\r\n\r\n"
)
PARTS = [
    b"WARC/1.0",
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b": ",
    b":",
    b"Content-Length",
    b"7",
    b" ",
    b"\x1c",
    b"\xe9",
    b"\xc3\xa9",
]


def _said(fields: Fields) -> tuple[int, int, str]:
    return len(fields), hash(fields), repr(fields)


def same(record: bytes) -> bool:
    """Whether the native reader reads it, and as the Python one."""
    reader = native.reader
    assert reader is not None
    found, due = reader.record(record), judged(record, 3, 5)
    if found is None:
        return False
    assert isinstance(due, Member)
    assert Member(3, 5, *found) == due == Member(3, 5, *found)
    fields = found[0]
    assert (list(fields), len(fields), hash(fields), repr(fields)) == (list(due.fields), *_said(due.fields))
    for name in {name for name, _ in due.fields} | {"", "content", "é", "content-length"}:
        assert (fields.first(name), fields.all(name)) == (due.fields.first(name), due.fields.all(name))
    return True


def test_a_plain_record_is_read() -> None:
    """Blanks, tabs, a line without a colon, a second length and line breaks in the block: all natively."""
    assert same(GOOD)
    assert same(b"WARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\n")


@pytest.mark.parametrize(
    "record",
    [
        *(b"", b"WARC/1.", b"\r\n\r\n", b"WARC/1.1\r\n\r\n", b"ARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\n"),
        *(GOOD[:end] for end in range(1, len(GOOD), 7)),
        *(GOOD + tail for tail in (b"\r\n", b"WARC/1.1", b"\0")),
        *(GOOD.replace(b"7", length) for length in (b"6", b"8", b"-7", b"7x", b"", b"9" * 30, b"\xd9\xa7", b"07 7")),
    ],
)
def test_flaws_are_left_to_python(record: bytes) -> None:
    """None of them is a member of either reader."""
    assert isinstance(judged(record, 0, 1), Flaw)
    assert not same(record)


@pytest.mark.parametrize("line", [b"X: \xc3\xa9", b"\xc3\x89: x", b"X: \x1c1", b"X: \x7f", b"X: a\nb: c", b"X: a\rb"])
def test_lines_that_are_not_plain_are_left_to_python(line: bytes) -> None:
    """Python knows more blanks and letters than ASCII has; such a record is none the less good."""
    record = GOOD.replace(b"X\r\n", line + b"\r\n")
    assert isinstance(judged(record, 0, 1), Member)
    assert not same(record)


def test_digests_are_written_alike() -> None:
    """A sha1 in base32, natively and in Python."""
    reader = native.reader
    assert reader is not None
    for digest in (bytes(20), b"\xff" * 20, bytes(range(20)), bytes(range(236, 256))):
        assert reader.base32(digest) == _base32(digest) == b32encode(digest).decode()
    with pytest.raises(ValueError, match="groups of five"):
        reader.base32(b"1234")


def test_heads_without_an_end() -> None:
    """More fields, or a longer head, than the native reader has room for."""
    for lines in (b"A: b\r\n" * 100, b"A: " + b"b" * 9000 + b"\r\n"):
        assert not same(GOOD.replace(b"X\r\n", lines))


@given(st.lists(st.tuples(st.integers(0, len(GOOD)), st.sampled_from(PARTS) | st.binary(max_size=3)), max_size=4))
@settings(max_examples=300)
def test_any_record(changes: list[tuple[int, bytes]]) -> None:
    """Whatever is written over a good one, and wherever."""
    record = GOOD
    for place, part in changes:
        record = record[:place] + part + record[place + len(part) :]
    same(record)
