"""A robots.txt by two readers: which line decides, what Protego says, and when it is not asked."""

from __future__ import annotations

import time

import pytest

from crawlerproject.inspection.robots_opinions import Opinions, opinions

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
