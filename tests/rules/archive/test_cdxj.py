"""Index lines: as the capture says them, as the file says them, as Common Crawl spells them."""

import json

from crawlerproject.rules.archive import cdxj
from crawlerproject.rules.archive.warc_members import Member, walk
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Original, digest_text
from tests.warc_samples import exchange, info_member, make

NOT_CHANGED = exchange(b"", b"HTTP/1.1 304 Not Modified\r\n\r\n")
MOVED = exchange(b"", b"HTTP/1.1 302 Found\r\nLocation: //b.test/x\r\nContent-Length: 0\r\n\r\n")
FIRST = Original("<urn:uuid:1>", "http://a.test/first", "2026-01-01T00:00:00Z")


def test_a_line() -> None:
    """SURT, 14 digits, JSON with strings; only fields that say something."""
    built = make(url="http://www.Example.test:8080/b?x=1")
    key, timestamp, fields = cdxj.line(cdxj.row_of_capture(built.info, 1000), "f.warc.gz").split(b" ", 2)
    assert key == b"test,example:8080)/b?x=1"
    assert timestamp == b"20260921141320"
    assert json.loads(fields) == {
        "url": "http://www.Example.test:8080/b?x=1",
        "mime": "text/html",
        "mime-detected": "text/html",
        "status": "200",
        "digest": digest_text(built.info.payload_digest),
        "length": str(built.info.length),
        "offset": str(1000 + built.info.offset),
        "filename": "f.warc.gz",
    }


def test_the_file_says_the_same() -> None:
    """A line made at writing and one made from the file are the same bytes, for every kind of answer."""
    for built in (
        make(),
        make(MOVED),
        make(NOT_CHANGED),
        make(NOT_CHANGED, original=FIRST._replace(profile=NOT_MODIFIED)),
        make(original=FIRST),
        make(exchange(truncated="time")),
        make(exchange(truncated="time"), original=FIRST),
        make(exchange(b"\0\1")),
        make(exchange(b"x", b"HTTP/1.0 404\nContent-Type:  Text/Plain;charset=x\n\n")),
    ):
        start = len(info_member())
        read = [member for member in walk([info_member() + built.members]) if isinstance(member, Member)]
        row = cdxj.row_of_capture(built.info, start)
        assert cdxj.line(cdxj.row_of_member(read[2]), "f") == cdxj.line(row, "f")
        assert row.end == read[-1].end


def test_redirect_is_absolute() -> None:
    """The target of a redirect is resolved against the URL."""
    assert cdxj.row_of_capture(make(MOVED, url="https://a.test/").info, 0).redirect == "https://b.test/x"


def test_journal_lines_come_back() -> None:
    """pack and unpack are inverse; a torn or foreign line is None."""
    row = cdxj.row_of_capture(make().info, 7)
    assert cdxj.unpack(cdxj.pack(row)) == row
    assert cdxj.unpack(cdxj.pack(row)[:40]) is None
    assert cdxj.unpack(b"{}") is None
    assert cdxj.unpack(b"[1]") is None
