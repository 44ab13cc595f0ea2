"""Captures of a file in order: each with the metadata record that is about it, whoever wrote the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlerproject.rules.archive.warc_records import make_member
from crawlerproject.stores.archive.archived_captures import captures_in, status_of
from tests.warc_samples import info_member, make


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
    assert capture.place == (7, len(info_member()) + built.info.offset)
    assert (capture.status, capture.answer_id, capture.rendered) == (200, built.info.record_id, False)
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
