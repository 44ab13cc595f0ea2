"""Index lines and their keys: those of the package surt and of Common Crawl, and digests as others write them."""

from __future__ import annotations

import json
from base64 import b32encode
from hashlib import md5, sha1, sha256, sha512

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.archive import cdxj
from crawlerproject.rules.archive.cdxj import _library_key, _plain_key, sha1_of, surt_key
from crawlerproject.rules.archive.digests import digest_text
from crawlerproject.rules.archive.warc_members import Member, walk
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Original
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
