"""The columns mean what Common Crawl's mean; values from its schema's and its tests' own examples."""

from __future__ import annotations

import json
from base64 import b32encode
from datetime import UTC, datetime
from hashlib import md5, sha1, sha256, sha512
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlerproject.rules.archive import index_rows
from crawlerproject.rules.archive.http_messages import digest_text, payload_digest
from crawlerproject.rules.archive.index_rows import (
    COLUMNS,
    CdxjEntry,
    _library_key,
    _plain_key,
    columns,
    crawl_of,
    fetch_time,
    sha1_of,
    subset_of,
    surt_key,
)
from crawlerproject.rules.archive.warc_members import Member, walk
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Original
from tests.warc_samples import PAGE, exchange, info_member, make, row_of

NOT_CHANGED = exchange(b"", b"HTTP/1.1 304 Not Modified\r\n\r\n")
MOVED = exchange(b"", b"HTTP/1.1 302 Found\r\nLocation: //b.test/x\r\nContent-Length: 0\r\n\r\n")
FIRST = Original("<urn:uuid:1>", "http://a.test/first", "2026-01-01T00:00:00Z")


def test_a_line() -> None:
    """SURT, 14 digits, JSON with strings; only fields that say something."""
    built = make(url="http://www.Example.test:8080/b?x=1", start=1000)
    key, timestamp, fields = index_rows.line(row_of(built), "f.warc.gz").split(b" ", 2)
    assert key == b"test,example:8080)/b?x=1"
    assert timestamp == b"20260921141320"
    assert json.loads(fields) == {
        "url": "http://www.Example.test:8080/b?x=1",
        "mime": "text/html",
        "mime-detected": "text/html",
        "status": "200",
        "digest": digest_text(payload_digest(PAGE)),
        "length": str(built.length),
        "offset": str(built.offset),
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
        read = [member for member in walk([info_member() + built.members]) if isinstance(member, Member)]
        start, row = len(info_member()), row_of(built)
        row = row._replace(start=start, end=start + row.end, offset=start + row.offset)
        assert index_rows.line(index_rows.row_of_member(read[2]), "f") == index_rows.line(row, "f")
        assert row.end == read[-1].end


def test_redirect_is_absolute() -> None:
    """The target of a redirect is resolved against the URL."""
    assert row_of(make(MOVED, url="https://a.test/")).redirect == "https://b.test/x"


def test_journal_lines_come_back() -> None:
    """pack and unpack are inverse; a torn or foreign line is None."""
    row = row_of(make(start=7))
    assert index_rows.unpack(index_rows.pack(row)) == row
    assert index_rows.unpack(index_rows.pack(row)[:40]) is None
    assert index_rows.unpack(b"{}") is None
    assert index_rows.unpack(b"[1]") is None


BODY = b"a payload"
SHA1 = sha1(BODY).digest()
BASE32 = b32encode(SHA1).decode()


@pytest.mark.parametrize(
    "text",
    [
        BASE32, f"sha1:{BASE32}", f"SHA1:{BASE32}", f"sha-1:{BASE32}", BASE32.lower(), f" sha1: {BASE32} ",
        SHA1.hex(), f"sha1:{SHA1.hex()}", f"sha1:{SHA1.hex().upper()}",
    ],
)  # fmt: skip
def test_a_sha1_in_every_common_form(text: str) -> None:
    """Label or none, base32 (Common Crawl, pywb, warcio) or hex (other indexers), any case."""
    assert sha1_of(text) == SHA1


@pytest.mark.parametrize(
    "text",
    [
        "", "-", "sha1:", "sha1:-", None, 7, {}, "unk", "ä" * 32, "=" * 32, "A" * 31, "0" * 32, "z" * 40,
        f"sha256:{sha256(BODY).hexdigest()}", f"sha-256:{b32encode(sha256(BODY).digest()).decode()}",
        sha256(BODY).hexdigest(), f"sha512:{sha512(BODY).hexdigest()}", f"md5:{md5(BODY).hexdigest()}",
        md5(BODY).hexdigest(), f"md5:{BASE32}", "A" * 30 + "==", "::::", "\x00" * 40,
    ],
)  # fmt: skip
def test_what_is_no_sha1_is_not_known(text: object) -> None:
    """Another algorithm, nothing, or nonsense: no digest, and never an error."""
    assert sha1_of(text) == b""


_HOSTS = ["example.com", "www.example.co.uk", "www3.a.b", "www", "www.com", "a.1", "a-b.c_d", "ex.com.", "A.b"]
_PORTS = ["", ":8080", ":80", ":443", ":065", ":65535", ":59999", ":70000", ":"]
_PIECES = [
    *("/", "//", "/.", "/..", ".", "?", "&", "=", "==", "#", "%", "%41", "%2f", "A", "b", "Index.HTML", "0", "~", "+"),
    *("(", ")", ".aspx", "/(s(abcdefghijklmnopqrstuvwx))/", "sid=", "JSESSIONID=", "cfid=1&cftoken=2", "0aB1" * 8),
    *("é", " ", "\n", "\\", "|", "@", ":", ";", ",", "'", '"', "!", "$", "*", "http://", "ASPSESSIONIDABCDEFGH="),
]
_URLS = st.builds(
    lambda scheme, host, port, rest: f"{scheme}://{host}{port}{''.join(rest)}",
    st.sampled_from(["http", "https", "HTTP", "ftp"]),
    st.sampled_from(_HOSTS),
    st.sampled_from(_PORTS),
    st.lists(st.sampled_from(_PIECES), max_size=9),
)


@given(_URLS)
def test_a_plain_key_is_that_of_the_package(url: str) -> None:
    """Of URLs of all shapes: a key of ours is the package's, to the letter."""
    key = _plain_key(url)
    assert key is None or key == _library_key(url)
    assert surt_key(url) == _library_key(url)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.example.com/", "com,example)/"),
        ("https://a.example.com:8080/Dir/Index.html", "com,example,a:8080)/dir/index.html"),
        ("http://example.com/dir/?", "com,example)/dir"),
        ("http://example.com/?b=2&A=1&b=", "com,example)/?a=1&b=&b=2"),
        ("http://example.com/a?b", "com,example)/a?b"),
    ],
)
def test_the_common_case_needs_no_package(url: str, key: str) -> None:
    """What most addresses are like is written here."""
    assert _plain_key(url) == key == _library_key(url)


@pytest.mark.parametrize("url", ["http://[::1]:80/x", "http://1.2.3.4/", "http://a.test/a b", "http://[bad/", "x", ""])
def test_odd_urls_are_the_packages(url: str) -> None:
    """A URL the package cannot read still gets a key without blanks."""
    assert _plain_key(url) is None
    assert " " not in surt_key(url)


NAMES = [name for name, _, _ in COLUMNS]


def row(url: str, **changes: Any) -> CdxjEntry:
    """A plain capture of ``url``."""
    plain = CdxjEntry(0, 9, url, "20220127163355", "text/html", "text/html", 200, "3I42H3S6", 5, 4, "", "")
    return plain._replace(**changes)


def values(url: str, **changes: object) -> dict[str, object]:
    """The columns of a capture by name."""
    capture = row(url, **changes)
    found = columns(capture, "crawl-20261121161516497-00007-vm.warc.gz", surt_key(url), fetch_time(capture))
    return dict(zip(NAMES, found, strict=True))


# url, host, tld, 2nd, 3rd, 4th, 5th, registry suffix and domain, private suffix and domain, reversed
HOSTS = [
    ("https://www.example.com/", "www.example.com", "com", "example", "www", None, None,
     "com", "example.com", "com", "example.com", "com.example.www"),
    ("http://bbc.co.uk/", "bbc.co.uk", "uk", "co", "bbc", None, None,
     "co.uk", "bbc.co.uk", "co.uk", "bbc.co.uk", "uk.co.bbc"),
    ("http://mypublicbucket.s3.amazonaws.com/", "mypublicbucket.s3.amazonaws.com", "com", "amazonaws", "s3",
     "mypublicbucket", None, "com", "amazonaws.com", "s3.amazonaws.com", "mypublicbucket.s3.amazonaws.com",
     "com.amazonaws.s3.mypublicbucket"),
    ("http://myblog.blogspot.com/", "myblog.blogspot.com", "com", "blogspot", "myblog", None, None,
     "com", "blogspot.com", "blogspot.com", "myblog.blogspot.com", "com.blogspot.myblog"),
    ("http://host1.sub2.subdomain.example.com/", "host1.sub2.subdomain.example.com", "com", "example", "subdomain",
     "sub2", "host1", "com", "example.com", "com", "example.com", "com.example.subdomain.sub2.host1"),
    ("http://192.0.2.7:81/", "192.0.2.7", *[None] * 10),
    ("http://[2001:db8::1]/", "[2001:db8::1]", *[None] * 10),
    ("http://plain1.test:8080/", "plain1.test", "test", "plain1", None, None, None,
     None, None, None, None, "test.plain1"),
    ("http://localhost/", "localhost", "localhost", None, None, None, None, None, None, None, None, "localhost"),
    ("http://co.uk/", "co.uk", "uk", "co", None, None, None, "co.uk", None, "co.uk", None, "uk.co"),
]  # fmt: skip


@pytest.mark.parametrize("expected", HOSTS, ids=lambda expected: expected[1])
def test_host_columns(expected: tuple[str, ...]) -> None:
    """Parts, suffixes and domains; null where there is none, and all of them for an IP address."""
    found = values(expected[0])

    assert [found[name] for name in NAMES if name.startswith("url_host")] == list(expected[1:])


@pytest.mark.parametrize(
    ("url", "protocol", "port", "path", "query"),
    [
        ("https://www.example.com/path/index.html", "https", None, "/path/index.html", None),
        ("https://a.example:8443/search?q=abc&lang=en", "https", 8443, "/search", "q=abc&lang=en"),
        ("http://a.example/?", "http", None, "/", ""),
        ("http://a.example/x?y?z", "http", None, "/x", "y?z"),
        ("http://user:secret@a.example:80/x#part", "http", 80, "/x", None),
        ("http://a.example", "http", None, "", None),
        ("dns:a.example", "dns", None, "", None),
    ],
)
def test_url_columns(url: str, protocol: str, port: int | None, path: str, query: str | None) -> None:
    """Protocol, port as written, path and query."""
    found = values(url)

    assert (found["url_protocol"], found["url_port"], found["url_path"], found["url_query"]) == (
        protocol,
        port,
        path,
        query,
    )


def test_a_row_of_common_crawls_own_test() -> None:
    """The capture of TestCCIndex2Table.java, but for the file's name."""
    found = values("https://commoncrawl.org/faq/", status=301, redirect="https://commoncrawl.org/big-picture/")

    assert found["url_surtkey"] == "org,commoncrawl)/faq"
    assert str(found["fetch_time"]) == "2022-01-27 16:33:55+00:00"
    assert (found["fetch_status"], found["fetch_redirect"]) == (301, "https://commoncrawl.org/big-picture/")
    assert (found["warc_record_offset"], found["warc_record_length"], found["warc_segment"]) == (5, 4, "00007")


def test_what_is_unknown_is_null() -> None:
    """No Content-Type, no type by the bytes, no redirect, not truncated: null, as there."""
    found = values("http://a.example/", mime="unk", identified="")

    assert [name for name in NAMES if name.startswith(("content", "fetch")) and found[name] is None] == [
        "fetch_redirect",
        "content_mime_type",
        "content_mime_detected",
        "content_charset",
        "content_languages",
        "content_truncated",
    ]


@pytest.mark.parametrize(
    ("timestamp", "time"), [("2020", "2020-01-01 00:00:00+00:00"), ("20201231", "2020-12-31 00:00:00+00:00"),
                            ("", "1970-01-01 00:00:00+00:00"), ("20209999999999", "1970-01-01 00:00:00+00:00")]
)  # fmt: skip
def test_dates_of_others(timestamp: str, time: str) -> None:
    """WARC 1.1 allows dates of less precision; one that is none does not stop the index."""
    assert str(values("http://a.example/", timestamp=timestamp)["fetch_time"]) == time


@pytest.mark.parametrize(
    ("capture", "subset"),
    [
        (row("http://a.example/"), "warc"),
        (row("http://a.example/robots.txt"), "robotstxt"),
        (row("http://a.example/robots.txt", status=404), "robotstxt"),
        (row("http://a.example/x/robots.txt"), "warc"),
        (row("http://a.example/", status=301), "crawldiagnostics"),
        (row("http://a.example/", status=404), "crawldiagnostics"),
        (row("http://a.example/", mime="warc/revisit"), "crawldiagnostics"),
    ],
)
def test_subsets(capture: CdxjEntry, subset: str) -> None:
    """Pages with their bodies in one, robots.txt in one, all else in one."""
    assert subset_of(capture) == subset


def test_the_crawl_is_the_warcinfos() -> None:
    """isPartOf wins over the folder's name; either is safe as the name of a folder."""
    first = next(walk([info_member()]))
    assert isinstance(first, Member)
    named = first._replace(block=b"software: x\r\nisPartOf: a/b c\r\n")

    assert crawl_of(named, "folder") == "a%2Fb%20c"
    assert crawl_of(first, "folder") == "folder"
    assert crawl_of(None, "") == "crawl"


@given(st.from_regex(r"[0-9]{14}", fullmatch=True) | st.text(alphabet="0123456789 -T٣", max_size=15))
@example("20260228235960")
@example("20260229000000")
@example("00000101000000")
def test_a_time_is_what_strptime_says(timestamp: str) -> None:
    """Of any 14 digits, and of whatever else an index may have; what is no time is the epoch."""
    whole = timestamp + "00000101000000"[len(timestamp) :]
    try:
        expected = datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        expected = datetime.fromtimestamp(0, UTC)
    assert values("http://a.test/", timestamp=timestamp)["fetch_time"] == expected
