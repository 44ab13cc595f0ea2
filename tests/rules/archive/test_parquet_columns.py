"""The columns mean what Common Crawl's mean; values from its schema's and its tests' own examples."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlerproject.rules.archive.cdxj import CdxjEntry
from crawlerproject.rules.archive.parquet_columns import COLUMNS, columns, crawl_of, subset_of
from crawlerproject.rules.archive.warc_members import Member, walk
from tests.warc_samples import info_member

NAMES = [name for name, _, _ in COLUMNS]


def row(url: str, **changes: Any) -> CdxjEntry:
    """A plain capture of ``url``."""
    plain = CdxjEntry(0, 9, url, "20220127163355", "text/html", "text/html", 200, "3I42H3S6", 5, 4, "", "")
    return plain._replace(**changes)


def values(url: str, **changes: object) -> dict[str, object]:
    """The columns of a capture by name."""
    found = columns(row(url, **changes), "crawl-20261121161516497-00007-vm.warc.gz")
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
