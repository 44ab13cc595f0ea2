"""Archives of other programs are read like our own: the same records whatever their shape, and damage is damage."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject.rules.archive.warc_members import Flaw, Member, records_in, unchunked, walk
from crawlerproject.rules.archive.warc_records import make_member
from crawlerproject.stores.archive.warc_reader import (
    captures_in,
    first_member,
    member_at,
    members,
    next_member,
    status_of,
)
from tests.commands.running import archive
from tests.foreign_archives import DATE, SHAPES, Page, chunked, warcs
from tests.warc_samples import info_member, make

PAGES = [
    Page(f"http://a.test/{number}", b"<title>%d</title><p>words of page %d" % (number, number)) for number in range(4)
]


@pytest.mark.parametrize("name", SHAPES)
def test_the_records_are_the_same_in_every_shape(tmp_path: Path, name: str) -> None:
    """Address, time and body; each is found again at its place, which an index may name."""
    path = tmp_path / f"theirs{SHAPES[name].suffix}"
    path.write_bytes(SHAPES[name].make(PAGES))

    found = [member for member in members(path) if isinstance(member, Member)]
    pages = [member for member in found if member.kind == "response"]

    assert len(found) == len(list(members(path)))
    assert [Page(member.url, member.body) for member in pages] == PAGES
    assert {member.field("warc-date") for member in pages} == {DATE}
    assert len({member.field("warc-record-id") for member in pages}) == len(pages)
    assert all(member.head.endswith(b"charset=utf-8\r\n\r\n") or b"chunked" in member.head for member in pages)
    assert {member.shared for member in found} == {not SHAPES[name].placed}
    if SHAPES[name].placed:
        at_places = [member_at(path, member.offset, member.length) for member in pages]
        assert [(at.url, at.body) for at in at_places if isinstance(at, Member)] == PAGES
    assert [member.field("warc-record-id") for member in members(path) if isinstance(member, Member)] == [
        member.field("warc-record-id") for member in found
    ]


@pytest.mark.parametrize("name", ["plain", "one-member", "arc", "arc-packed", "wget"])
def test_a_torn_end_is_no_end(tmp_path: Path, name: str) -> None:
    """What stands before is read, and then it is said that something is missing."""
    path = tmp_path / f"theirs{SHAPES[name].suffix}"
    path.write_bytes(SHAPES[name].make(PAGES)[:-12])

    *before, last = members(path)

    assert isinstance(last, Flaw)
    assert "torn" in last.what
    assert all(isinstance(member, Member) for member in before)


@pytest.mark.parametrize(
    "data",
    [b"<html>no archive", b"five words of some text\nand more\n" * 9, b"\0" * 100, gzip.compress(b"x")],
    ids=["html", "text", "zeros", "gzip"],  # a gzip header holds the moment of its making
)
def test_what_is_no_archive_has_no_records(tmp_path: Path, data: bytes) -> None:
    """Though a line of five words looks like one of ARC."""
    path = tmp_path / "none.arc"
    path.write_bytes(data)

    (flaw,) = members(path)

    assert isinstance(flaw, Flaw)
    assert (flaw.offset, flaw.what) == (0, "no WARC or ARC record")
    assert first_member(path) is None
    assert next_member(path, 1) is None


def test_in_a_file_of_ours_another_shape_is_damage(tmp_path: Path) -> None:
    """A member with two records, behind good ones: strictly read, as ever."""
    (path,) = (archive(tmp_path) / "warc").iterdir()
    good = path.read_bytes()
    path.write_bytes(good + gzip.compress(warcs(PAGES[:2], packed=False)))

    *before, last = members(path)

    assert isinstance(last, Flaw)
    assert (last.offset, last.what.partition(";")[0]) == (len(good), "several records in one gzip member")
    assert len(before) == len(list(walk([good])))


def test_progress_is_the_size(tmp_path: Path) -> None:
    """Of a file without compression the first bytes are read twice, no more."""
    path = tmp_path / "theirs.warc"
    path.write_bytes(warcs([Page("http://a.test/", b"x" * 1_000_000)], packed=False))
    read: list[int] = []

    assert len(list(members(path, progress=read.append))) == 2

    assert path.stat().st_size <= sum(read) <= path.stat().st_size + 70_000


@given(
    st.binary(max_size=200),
    st.integers(1, 50),
    st.sampled_from([b"", b";name=value", b" "]),
    st.sampled_from([b"", b"A: b\r\n"]),
)
def test_chunks_are_taken_off(body: bytes, size: int, extension: bytes, trailer: bytes) -> None:
    """Of any body in any chunks, and of one that broke off in a chunk what had come (RFC 9112, 7.1)."""
    framed = chunked(body, size, extension, trailer)

    assert unchunked(framed) == body
    for cut in range(len(framed)):
        assert (
            unchunked(framed[:cut]) == body[: len(unchunked(framed[:cut]))] or unchunked(framed[:cut]) == framed[:cut]
        )


@given(st.binary(max_size=100))
def test_what_is_not_in_chunks_stays(body: bytes) -> None:
    """A page never begins as a chunk does."""
    page = b"<!doctype html>" + body
    assert unchunked(page) == page
    assert unchunked(b"4\r\nfour, and what does not follow") == b"4\r\nfour, and what does not follow"


@settings(max_examples=200)
@given(st.binary(max_size=400), st.data())
def test_anything_ends_in_records_or_a_flaw(data: bytes, more: st.DataObject) -> None:
    """Spoilt archives raise nothing."""
    whole = SHAPES[more.draw(st.sampled_from(["plain", "arc"]))].make(PAGES[:1])
    at = more.draw(st.integers(0, len(whole)))
    found = list(records_in(whole[:at] + data + whole[at:], 7, 9))

    assert all(isinstance(record, Member) for record in found[:-1])
    assert all((record.offset, record.length) == (7, 9) for record in found if isinstance(record, Member))


def record(kind: str, url: str, block: bytes = b"", *fields: str) -> bytes:
    """A record of another writer."""
    more = "".join(f"{field}\r\n" for field in fields)
    return make_member(f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\n{more}", block)


def written(folder: Path, *records: bytes) -> Path:
    """A file of them."""
    path = folder / "some.warc.gz"
    path.write_bytes(b"".join(records))
    return path


def test_ours_is_whole_with_its_notes(tmp_path: Path) -> None:
    """The answer, its place, its status and the lines of its metadata record."""
    built = make()
    (capture,) = captures_in(written(tmp_path, info_member(), built.members), number=7)

    assert capture.whole
    assert capture.place == (7, len(info_member()) + built.offset)
    assert (capture.status, capture.answer_id, capture.rendered) == (200, built.record_id, False)
    assert "fetchTimeMs" in capture.notes
    assert capture.ended_at >= 0


def test_notes_belong_to_the_record_that_they_name(tmp_path: Path) -> None:
    """One that names another record, or no record and another address, is about none of these answers."""
    named = record("metadata", "http://a.test/", b"via: http://s.test/\r\n", "WARC-Refers-To: <urn:a>")
    other = record("metadata", "http://b.test/", b"via: http://s.test/\r\n", "WARC-Concurrent-To: <urn:c>")
    manifest = record("metadata", "metadata://gnu.org/software/wget/warc/MANIFEST.txt", b"via: x\r\n")
    unnamed = record("metadata", "http://d.test/", b"origin: elsewhere\r\n")
    answers = [record("response", f"http://{x}.test/", b"", f"WARC-Record-ID: <urn:{x}>") for x in "abcd"]
    found = captures_in(
        written(tmp_path, answers[0], named, answers[1], other, answers[2], manifest, answers[3], unnamed)
    )

    assert [(capture.url, capture.notes, capture.whole) for capture in found] == [
        ("http://a.test/", {"via": "http://s.test/"}, True),
        ("http://b.test/", {}, False),
        ("http://c.test/", {}, False),
        ("http://d.test/", {"origin": "elsewhere"}, True),
    ]


def test_what_stands_before_a_flaw_counts(tmp_path: Path) -> None:
    """The last whole record before it is given, the rest is not."""
    good, torn = (record("response", f"http://{name}.test/", b"x") for name in ("good", "torn"))

    assert [capture.url for capture in captures_in(written(tmp_path, good, torn[:-9]))] == ["http://good.test/"]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", 200),
        (b"HTTP/1.1  404\r\n\r\n", 404),
        (b"HTTP/1.1 2000 OK\r\n\r\n", 0),
        (b"HTTP/1.1\r\n200 x\r\n\r\n", 0),
        (b"", 0),
    ],
)
def test_the_status_of_a_head(head: bytes, status: int) -> None:
    """Three digits behind the version; 0 for a line that has none."""
    assert status_of(head) == status
