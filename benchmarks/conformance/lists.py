"""Feeds and sitemaps: feedparser's own files, and the flawed lists beside feedparser and ultimate-sitemap-parser."""

from __future__ import annotations

import ast
import calendar
import logging
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.conformance.flawed_lists import Made, made
from benchmarks.conformance.suite import Case, Suite, unpacked
from crawlerproject.rules.feeds.feeds import read_feed, read_sitemap
from crawlerproject.rules.url.urls import Base

_HEADER = re.compile(rb"^Header:\s*([^:]+?)\s*:\s*(.+?)\s*$", re.MULTILINE | re.IGNORECASE)
_URL = "http://127.0.0.1:8097/"  # where feedparser's tests are served


def _as_fetched(urls: list[str]) -> list[str]:
    """What an answer at ``_URL`` leads to: spellings of one address are one."""
    base = Base(_URL)
    return [address.url for url in urls if (address := base.join(url)) is not None]


def _feedparser(body: bytes, headers: dict[str, str]) -> list[dict[str, Any]]:
    import feedparser

    parsed = feedparser.parse(body, response_headers={"content-location": _URL, **headers})
    return [entry for entry in parsed.entries if entry.get("link")]


def _feedparser_date(entry: dict[str, Any]) -> int | None:
    """Of published and updated, the later, as we take it."""
    moments = [entry.get(name) for name in ("published_parsed", "updated_parsed")]
    return max((calendar.timegm(moment) for moment in moments if moment is not None), default=None)


def _usp(body: bytes) -> list[str]:
    """The pages or sitemaps that ultimate-sitemap-parser finds."""
    from usp.fetch_parse import SitemapFetcher
    from usp.web_client.abstract_client import LocalWebClient, LocalWebClientSuccessResponse

    class Answer(LocalWebClientSuccessResponse):  # type: ignore[misc]  # without types
        def raw_data(self) -> bytes:
            return body

    class Client(LocalWebClient):  # type: ignore[misc]
        def get(self, url: str) -> Any:
            return Answer(url=url, data="")

    named: list[str] = []

    def all_of(urls: list[str], level: int, parents: set[str]) -> list[str]:
        named.extend(urls)
        return []

    logging.getLogger("usp").setLevel(logging.CRITICAL)
    url = _URL + ("sitemap.xml.gz" if body.startswith(b"\x1f\x8b") else "sitemap.xml")
    sitemap = SitemapFetcher(url, 0, web_client=Client(), parent_urls=set(), recurse_list_callback=all_of).sitemap()
    return named or [page.url for page in sitemap.pages]


def _files(sources: Path) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    tests = unpacked(sources, "feedparser") / "tests"
    for path in sorted(tests.rglob("*.xml")):
        body = path.read_bytes()
        headers = {name.decode().lower(): text.decode("latin-1") for name, text in _HEADER.findall(body[:2000])}
        yield str(path.relative_to(tests)), body, headers


def _addresses(sources: Path) -> Iterator[Case]:
    for name, body, headers in _files(sources):
        entries = read_feed(body, headers.get("content-type"), _URL).entries
        peers = _feedparser(body, headers)
        yield Case(name, _as_fetched([entry.url for entry in entries]), _as_fetched([entry["link"] for entry in peers]))
        if entries and len(entries) == len(peers):
            ours = [None if entry.modified is None else math.floor(entry.modified) for entry in entries]
            yield Case(f"{name}, dates", ours, [_feedparser_date(entry) for entry in peers])


def _ours(one: Made) -> list[str]:
    if one.is_feed:
        return _as_fetched([entry.url for entry in read_feed(one.body, one.content_type, _URL).entries])
    return _as_fetched([entry.url for entry in read_sitemap(one.body, one.content_type, _URL).entries])


def _scrapy(sources: Path) -> Iterator[Case]:
    """What stands in Scrapy's tests of sitemaps, as its own reader and as ours reads it."""
    from scrapy.utils.sitemap import Sitemap

    tests = ast.parse((unpacked(sources, "scrapy") / "tests/test_utils_sitemap.py").read_bytes())
    bodies = [
        node.value for node in ast.walk(tests) if isinstance(node, ast.Constant) and isinstance(node.value, bytes)
    ]
    for body in bodies:
        if b"<loc>" in body:
            urls = [row["loc"] for row in Sitemap(body) if "loc" in row]
            first = body.partition(b"<loc>")[2][:40].decode("latin-1")
            ours = [entry.url for entry in read_sitemap(body).entries]
            yield Case(f"from {first!r}", _as_fetched(ours), _as_fetched(urls))


def _as_written(_: Path) -> Iterator[Case]:
    for one in made():
        yield Case(one.name, _ours(one), _as_fetched(one.urls))


def _as_feedparser(_: Path) -> Iterator[Case]:
    for one in made():
        if one.is_feed:
            urls = [entry["link"] for entry in _feedparser(one.body, {"content-type": one.content_type})]
            yield Case(one.name, _ours(one), _as_fetched(urls))


def _as_usp(_: Path) -> Iterator[Case]:
    for one in made():
        if not one.is_feed:
            yield Case(one.name, _ours(one), _as_fetched(_usp(one.body)))


_IDENTIFIER = "an identifier is an address only where it is a whole one"
_NOT_CLOSED = "feedparser takes the address for text of what was not closed; ours is as written"
_STOPS = "expat ends at the first flaw; ours reads on, as written"
_OF_EXPAT = (
    *("warnings first", "blank lines", "comment first", "bare ampersand", "HTML's entities", "unknown entity"),
    *("control characters", "less-than", "end tag without", "not closed", "two documents", "attribute"),
    *("prefix not declared", "no namespace+prefix"),
)
SUITES = (
    Suite(
        "feedparser's tests", "feedparser 6.0.14, tests/", _addresses,
        {
            "wellformed/*cdf*": "Microsoft's CDF of 1997 is not read",
            "*_content_location.xml": "Content-Location is no base (RFC 7231, appendix B)",
            "*_id*.xml": _IDENTIFIER,
            "*/http_content_language_entry_title_inherit_2.xml": _IDENTIFIER,
        },
    ),
    Suite("Scrapy's sitemaps", "Scrapy 2.19.0, tests/test_utils_sitemap.py", _scrapy,
        {"*&xxe;*": "Scrapy takes the declared entity out of the address; ours leaves such an address out"},
    ),
    Suite("flawed lists as written", "flawed_lists.py", _as_written, {}, offline=True),
    Suite(
        "flawed feeds as feedparser", "flawed_lists.py, feedparser 6.0.14", _as_feedparser,
        {
            "*title that is not closed*": _NOT_CLOSED,
            "*title closed otherwise*": _NOT_CLOSED,
            "*address that is not closed*": _NOT_CLOSED,
            "*guid in place of a link*": "feedparser keeps the &amp; of a guid once the feed is not well-formed",
            "*not UTF-8*": "feedparser reads all as windows-1252 for one letter; ours that letter",
        },
    ),
    Suite(
        "flawed sitemaps as usp", "flawed_lists.py, ultimate-sitemap-parser 1.8.1", _as_usp,
        {f"*{flaw}*": _STOPS for flaw in _OF_EXPAT},
    ),
)  # fmt: skip
