"""A robots.txt by two readers: which line decides, what Protego says, and when it is not asked."""

from __future__ import annotations

import gzip
import time
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path

import pytest

from crawlerproject.inspection.robots_opinions import Opinions, opinions, robots_versions, then_and_now
from crawlerproject.rules.archive.warc_records import Context, Original
from crawlerproject.stores.archive.archive import Archive, Written
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.commands.running import archive_of
from tests.warc_samples import STARTED_AT, exchange

FILE = b"""\
User-agent: other
Disallow: /private/

User-agent: *
Disallow: /private/
Allow: /private/open
Disallow: /*.pdf$
Disallow: /caf%3F
"""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/private/x", Opinions(False, "Disallow: /private/", 5, False)),
        ("/private/open", Opinions(True, "Allow: /private/open", 6, True)),
        ("/a.pdf", Opinions(False, "Disallow: /*.pdf$", 7, False)),
        ("/a.pdfs", Opinions(True, "", 0, True)),
        ("/robots.txt", Opinions(True, "", 0, True)),
    ],
)
def test_the_line_that_decides(path: str, found: Opinions) -> None:
    """Of equal lines the one that counts for us, as an editor numbers it."""
    assert opinions(FILE, "TestBed", f"http://a.test{path}") == found
    assert not found.differ


def test_a_group_of_ones_own() -> None:
    """Its lines decide, and not those of everyone."""
    body = b"User-agent: *\nDisallow: /\nUser-agent: testbed\r\nDisallow: /\n\rAllow: /open\r"

    assert opinions(body, "TestBed", "http://a.test/x").line == 4
    assert opinions(body, "TestBed", "http://a.test/open").line == 6
    assert opinions(body, "Another", "http://a.test/open") == Opinions(False, "Disallow: /", 2, False)


def test_where_they_differ() -> None:
    """Protego decodes a question mark that the owner escaped (RFC 9309 2.2.2 leaves it)."""
    found = opinions(FILE, "TestBed", "http://a.test/caf?")

    assert found == Opinions(True, "", 0, False)
    assert found.differ
    assert found.text() == "allowed: no rule matches; Protego forbids it all the same"
    assert found.values() == {
        "robots_allowed": True, "robots_rule": None, "robots_line": None, "protego_allowed": False,
    }  # fmt: skip


def test_no_single_line_decides() -> None:
    """An owner who asks for a pause of months is left alone; so is one whose rules cost too much to try."""
    found = opinions(b"User-agent: *\nCrawl-delay: 9999999\n", "TestBed", "http://a.test/")

    assert (found.allowed, found.line, found.protego) == (False, 0, True)
    assert found.rule.startswith("Crawl-delay: 1e+07: beyond 31 days")


def test_protego_is_not_asked_what_it_may_take_minutes_for() -> None:
    """Wildcards upon wildcards: an answer comes at once all the same."""
    body = b"User-agent: *\nDisallow: /" + b"*a" * 30 + b"b\n"
    began = time.monotonic()

    found = opinions(body, "TestBed", f"http://a.test/{'a' * 1000}")

    assert found.protego is None
    assert not found.differ
    assert "Protego is not asked" in found.text()
    assert time.monotonic() - began < 5


def test_an_empty_file_forbids_nothing() -> None:
    """Nor does one that is no text."""
    assert opinions(b"", "TestBed", "http://a.test/") == Opinions(True, "", 0, True)
    assert opinions(b"\xff\xfe\x00", "TestBed", "http://a.test/").allowed
    assert opinions(b"\xef\xbb\xbf" + FILE, "TestBed", "http://a.test/private/x").protego is False  # a byte order mark


ORIGIN = "http://a.test"
URL = f"{ORIGIN}/robots.txt"
HOUR_SECONDS = 3600.0


def write(
    made: Archive,
    hour: int,
    body: bytes,
    *lines: str,
    url: str = URL,
    status: str = "200 OK",
    of: Written | None = None,
) -> Written:
    """A capture that many hours after the first."""
    head = "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()
    wire = exchange(body, head, started_at=STARTED_AT + hour * HOUR_SECONDS)
    return made.write(wire, Context(url), original=of and Original(of.record_id, URL, of.date))


def moment(hour: int) -> datetime:
    """Of that capture."""
    return datetime.fromtimestamp(int(STARTED_AT + hour * HOUR_SECONDS), UTC)


def test_each_version_once_with_its_text(tmp_path: Path) -> None:
    """The same again is none, whether it came whole, as a revisit or as 304; a failure is none; one that returns is."""
    made = archive_of(tmp_path)
    first = write(made, 0, b"one")
    write(made, 1, b"one", of=first)
    write(made, 2, b"", status="304 Not Modified")
    write(made, 3, b"gone", status="404 Not Found")
    write(made, 4, gzip.compress(b"two"), "Content-Encoding: gzip")
    write(made, 5, b"one", of=first)
    write(made, 6, b"other", url="http://a.test/robots.txt?x")
    write(made, 7, b"<!doctype html><p>a wall's", "Content-Type: text/html", "cf-mitigated: challenge")
    made.close()

    found = robots_versions([CrawlDir(tmp_path)], ORIGIN)

    assert [(version.since, version.body) for version in found] == [
        (moment(0), b"one"), (moment(4), b"two"), (moment(5), b"one")
    ]  # fmt: skip
    assert all(".warc.gz at byte " in version.place for version in found)
    then, now = then_and_now([CrawlDir(tmp_path)], [ORIGIN, "https://a.test"], moment(4))
    assert [version.body for version in (*then, *now)] == [b"two", b"one"]


def test_a_redirect_leads_to_its_file(tmp_path: Path) -> None:
    """At another host too; the version is that of the origin that was asked for. One that leads in a circle is none."""
    made = archive_of(tmp_path)
    write(made, 0, b"", "Location: /moved.txt", status="301 Moved Permanently")
    write(made, 1, b"", "Location: https://b.test/ü.txt", url=f"{ORIGIN}/moved.txt", status="302 Found")
    write(made, 2, b"theirs", url="https://b.test/%C3%BC.txt")
    write(made, 3, b"", "Location: /robots.txt", url="http://c.test/robots.txt", status="301 Moved Permanently")
    made.close()

    (version,) = robots_versions([CrawlDir(tmp_path)], ORIGIN)

    assert (version.origin, version.since, version.body) == (ORIGIN, moment(2), b"theirs")
    assert robots_versions([CrawlDir(tmp_path)], "http://c.test") == []


def test_copies_of_older_crawls_count(tmp_path: Path) -> None:
    """As 1.7.0 wrote them; what the archive has too is one version, since it was first seen."""
    made = archive_of(tmp_path)
    write(made, 1, b"now")
    made.close()
    home = tmp_path / "log" / "robots" / sha1(ORIGIN.encode()).hexdigest()[:2] / "http_a.test"
    home.mkdir(parents=True)
    for hour, body in ((0, b"before"), (1, b"now")):
        (home / f"{moment(hour):%Y%m%dT%H%M%SZ}-{sha1(body).hexdigest()[:12]}.txt").write_bytes(body)
    (home / "note.txt").write_text("not one of ours")

    found = robots_versions([CrawlDir(tmp_path)], ORIGIN)

    assert [(version.since, version.body) for version in found] == [(moment(0), b"before"), (moment(1), b"now")]
