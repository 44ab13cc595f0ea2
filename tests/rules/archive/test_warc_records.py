"""Our records against the standard's fields and against two independent readers."""

import gzip
import io
import zlib
from base64 import b32encode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import brotli
import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from hypothesis import example, given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord

from crawlerproject.rules.archive.http_messages import digest_text
from crawlerproject.rules.archive.index_rows import REVISIT_MIME
from crawlerproject.rules.archive.warc_members import Member, walk
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Original, warc_date
from tests.warc_samples import PAGE, WARCINFO_ID, exchange, info_member, make, row_of

GZ = gzip.compress(PAGE, mtime=0)
FIRST = Original("<urn:uuid:1>", "http://a.test/first", "2026-01-01T00:00:00.000000Z")


def head(fields: bytes, status: bytes = b"200 OK") -> bytes:
    """An answer's head."""
    return b"HTTP/1.1 " + status + b"\r\n" + fields + b"\r\n"


def encoded(name: bytes, body: bytes) -> Any:
    """An answer whose body is content-encoded."""
    return exchange(body, head(b"Content-Type: text/html\r\nContent-Encoding: " + name + b"\r\n"))


ANSWERS = {
    "plain": exchange(),
    "empty": exchange(b""),
    "binary": exchange(bytes(range(256)) * 20),
    "body with line ends": exchange(b"\r\n\r\nWARC/1.1\r\n\r\n"),
    "gzip": encoded(b"gzip", GZ),
    "br": encoded(b"br", brotli.compress(PAGE)),
    "deflate": encoded(b"deflate", zlib.compress(PAGE)),
    "chunked": exchange(PAGE, head(b"Transfer-Encoding: chunked\r\n"), chunked=True),
    "looks chunked": exchange(b"5\r\nhello\r\n0\r\n\r\n", head(b"Transfer-Encoding: chunked\r\n"), chunked=True),
    "cut": exchange(PAGE[:100], head(b"Content-Length: 5000\r\n"), truncated="length"),
    "late": exchange(PAGE[:100], head(b"Content-Length: 5000\r\n"), truncated="time"),
    "lost": exchange(b"", head(b"Transfer-Encoding: chunked\r\n"), chunked=True, truncated="disconnect"),
    "bare LF": exchange(PAGE, b"HTTP/1.1 200 OK\nX-A: b\n\n"),
    "no reason": exchange(PAGE, b"HTTP/1.0 200\r\n\r\n"),
    "latin-1": exchange(PAGE, head(b"X-Name: Jos\xe9\r\n", b"200 Tr\xe8s bien")),
    "folded": exchange(PAGE, head(b"X-Fold: a\r\n b\r\n")),
    "error": exchange(b"gone", head(b"Content-Length: 4\r\n", b"410 Gone")),
    "redirect": exchange(b"", head(b"Location: /x\r\nContent-Length: 0\r\n", b"301 Moved")),
    "not modified": exchange(b"", head(b'ETag: "x"\r\nContent-Length: 99\r\n', b"304 Not Modified")),
    "no content": exchange(b"", head(b"", b"204 No Content")),
    "ipv6 and tls": exchange(
        ip="2001:0db8:0:0::0001", protocols=("http/1.1", "tls/1.3"), cipher="TLS_AES_128_GCM_SHA256"
    ),
}


def members(data: bytes) -> list[Member]:
    """Every member; all must be good."""
    found = list(walk([data]))
    good = [member for member in found if isinstance(member, Member)]
    assert good == found
    return good


def checked(data: bytes) -> Iterator[tuple[ArcWarcRecord, bytes]]:
    """Records and raw bodies as warcio reads them, digests verified."""
    for record in ArchiveIterator(io.BytesIO(data), check_digests="raise"):
        yield record, record.raw_stream.read()


@pytest.mark.parametrize("name", ANSWERS)
def test_warcio_reads_what_was_on_the_wire(name: str) -> None:
    """Body and digests of each answer come out of warcio as they went in."""
    built = make(ANSWERS[name])
    records = list(checked(info_member() + built.members))
    assert [record.rec_type for record, _ in records] == ["warcinfo", "request", "response", "metadata"]
    assert records[2][1] == ANSWERS[name].body
    assert all(record.digest_checker.passed is not False for record, _ in records)


@pytest.mark.parametrize("name", ANSWERS)
def test_fastwarc_agrees(name: str) -> None:
    """FastWARC finds both digests right and, decoding, the page."""
    data = info_member() + make(ANSWERS[name]).members
    for record in FastIterator(io.BytesIO(data), parse_http=False):
        assert record.verify_block_digest()
    for record in FastIterator(io.BytesIO(data), auto_decode="all"):
        if record.headers["WARC-Type"] == "response":
            body = record.reader.read()
            assert body == (PAGE if name in ("gzip", "br", "deflate") else ANSWERS[name].body)
    for record in FastIterator(io.BytesIO(data), parse_http=True):
        if record.headers["WARC-Type"] == "response":
            assert record.verify_payload_digest()


def test_fields_of_a_capture() -> None:
    """The three records name each other, share date, address and warcinfo, and carry the transport's facts."""
    built = make(ANSWERS["ipv6 and tls"])
    request, response, metadata = members(built.members)
    for member in (request, response, metadata):
        assert member.field("warc-date") == built.date == "2026-09-21T14:13:20.250000Z"
        assert member.field("warc-target-uri") == "http://a.test/"
        assert member.field("warc-warcinfo-id") == WARCINFO_ID
    assert request.field("warc-concurrent-to") == response.field("warc-record-id") == built.record_id
    assert metadata.field("warc-concurrent-to") == built.record_id
    assert response.all("warc-concurrent-to") == [request.field("warc-record-id"), metadata.field("warc-record-id")]
    assert request.field("warc-ip-address") == response.field("warc-ip-address") == "2001:db8::1"
    assert response.all("warc-protocol") == ["http/1.1", "tls/1.3"]
    assert response.field("warc-cipher-suite") == "TLS_AES_128_GCM_SHA256"
    assert response.field("warc-identified-payload-type") == "text/html"
    assert not metadata.field("warc-payload-digest")
    assert not metadata.field("warc-ip-address")
    assert request.block == exchange().request_bytes


def test_row_points_at_the_response() -> None:
    """Offset and length of the row are those of the response's own member; the digest is the payload's."""
    row, data = row_of(built := make(start=9)), built.members
    (response,) = members(data[row.offset - 9 : row.offset - 9 + row.length])
    assert response.kind == "response"
    assert response.field("warc-payload-digest") == f"sha1:{row.digest}"
    assert (row.start, row.end) == (9, 9 + len(data))


@pytest.mark.parametrize("why", ["length", "time", "disconnect"])
def test_truncation_is_marked(why: str) -> None:
    """WARC-Truncated says why a body ends early."""
    built = make(exchange(truncated=why))
    assert members(built.members)[1].field("warc-truncated") == row_of(built).truncated == why


def test_metadata_says_how_it_came_about() -> None:
    """via, hops, time and the politeness decision; a line break in a value cannot add a line."""
    built = make(via="http://b.test/\r\nevil: 1", hops="LL", delay_seconds=5, waited_seconds=5.25, extra=[("a", "b")])
    assert members(built.members)[2].block.decode() == (
        "via: http://b.test/  evil: 1\r\nhopsFromSeed: LL\r\nfetchTimeMs: 123\r\n"
        "politenessDelaySeconds: 5.000\r\npolitenessWaitedSeconds: 5.250\r\na: b\r\n"
    )


def test_revisit_of_an_identical_payload() -> None:
    """A revisit keeps the head, drops the body and names the original three ways."""
    built = make(original=FIRST)
    revisit = members(built.members)[1]
    assert revisit.kind == "revisit"
    assert revisit.block == exchange().head_bytes
    assert revisit.field("warc-profile").endswith("/identical-payload-digest")
    assert revisit.field("warc-refers-to") == FIRST.record_id
    assert revisit.field("warc-refers-to-target-uri") == FIRST.url
    assert revisit.field("warc-refers-to-date") == FIRST.date
    assert revisit.field("warc-payload-digest") == f"sha1:{row_of(built).digest}"
    assert revisit.field("warc-truncated") == "length"
    assert row_of(built).mime == REVISIT_MIME
    assert len(list(checked(built.members))) == 3


def test_revisit_of_a_304() -> None:
    """A 304 revisit keeps its head as received and claims no payload."""
    built = make(ANSWERS["not modified"], original=FIRST._replace(profile=NOT_MODIFIED))
    revisit = members(built.members)[1]
    assert revisit.block == ANSWERS["not modified"].head_bytes
    assert revisit.field("warc-profile") == NOT_MODIFIED
    assert not revisit.field("warc-payload-digest")
    assert len(list(checked(built.members))) == 3


def test_warcinfo() -> None:
    """The first record names its file, holds its lines, says what form the file has; an empty line is left out."""
    (member,) = members(info_member("name.warc.gz"))
    assert member.field("warc-filename") == "name.warc.gz"
    assert member.block == (
        b"software: Test/1.0\r\nformat: WARC File Format 1.1\r\n"
        b"conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n"
    )
    assert not member.field("warc-target-uri")


def test_members_can_be_found_again() -> None:
    """Every member starts with the same ten bytes, so that a reader can resynchronise after damage."""
    data = make().members
    assert all(
        data[member.offset :].startswith(bytes.fromhex("1f8b0800000000000000ff")[:9]) for member in members(data)
    )


@given(st.binary(min_size=20, max_size=20))
def test_a_digest_in_base32(digest: bytes) -> None:
    """Every sha1 is written as the standard library writes it."""
    assert digest_text(digest) == b32encode(digest).decode()


@given(st.floats(min_value=-3_000_000_000, max_value=200_000_000_000) | st.integers(0, 4_000_000_000).map(float))
@example(0.9999999)
@example(1763832000.9999998)
@example(-0.25)
def test_a_date_to_the_microsecond(moment: float) -> None:
    """Every moment is rounded and written as the standard library does it."""
    assert warc_date(moment) == datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds")[:-6] + "Z"
