"""What is read of an answer, and where: here, in a reading process, or not at all."""

from __future__ import annotations

import asyncio
import gzip
from inspect import isawaitable
from pathlib import Path
from typing import Any, cast

import pytest
from scrapy.http import HtmlResponse, Response

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.passage import Lease
from crawlerproject.reading import page_reader
from crawlerproject.reading.jobs import Job, Kind, ReadPage
from crawlerproject.reading.page_reader import PageReader
from crawlerproject.reading.process_pool import NotRead
from crawlerproject.rules.rendering.thin_pages import RenderNeed
from crawlerproject.rules.row_kinds import FLAG_HUB, FLAG_RENDER, FLAG_ROBOTS, FLAG_SITEMAP, FLAG_SUBREQUEST
from crawlerproject.stores.poison import Poison, Suspect
from crawlerproject.stores.protocols import QueuedPage

URL = "http://a.test/page"
WORDS = " ".join(f"word{number}" for number in range(300))
PAGE = f"<title>one</title><p>{WORDS}<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>".encode()
SHELL = (
    b"<div id=root></div><noscript>You need to enable JavaScript</noscript><script src=/assets/index-abc.js></script>"
)
WALL = (
    b"<title>Just a moment</title><script>window._cf_chl_opt = {}</script>"
    b"<script src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1'></script>"
)
SITEMAP = b"<urlset><url><loc>http://a.test/1</loc><lastmod>2026-01-02</lastmod></url></urlset>"
FEED = (
    b"<feed xmlns='http://www.w3.org/2005/Atom'><link rel='hub' href='http://hub.test/'/>"
    b"<entry><link href='/1'/></entry></feed>"
)


class Processes:
    """Reading processes that keep their jobs; they cannot read what is ``broken``."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.broken = False
        self.closed = False

    async def read(self, job: Job, body: bytes) -> ReadPage:
        self.jobs.append(job)
        if self.broken:
            raise NotRead("could not be read in 1 s")
        return ReadPage(flaw="read apart")

    def close(self) -> None:
        self.closed = True


class Counts(dict[str, int]):
    """Scrapy's statistics."""

    def inc_value(self, name: str, count: int = 1) -> None:
        self[name] = self.get(name, 0) + count


class Bench:
    """A reader with its surroundings."""

    def __init__(self, folder: Path) -> None:
        self.processes = Processes()
        self.poison = Poison(folder, 0.0)
        self.stats = Counts()
        self.reader = PageReader(cast("Any", self.processes), self.poison, "TestBot", cast("Any", self.stats))

    def read(self, response: Response, flags: int = 0, **lease: Any) -> ReadPage:
        """What the answer says, wherever it is read."""
        read = self.reader.read(lease_of(flags, **lease), response)
        if isinstance(read, ReadPage):
            return read
        return asyncio.run(_awaited(read))


async def _awaited(coming: Any) -> ReadPage:
    page: ReadPage = await coming
    return page


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A fresh one."""
    return Bench(tmp_path)


def row_of(flags: int = 0) -> QueuedPage:
    """A queue's row."""
    return QueuedPage("a.test", b"k" * 24, URL, 10, 1, 2, "LL", "http://a.test/", flags=flags)


def lease_of(flags: int = 0, **fields: Any) -> Lease:
    """A lease of the page."""
    return Lease(row_of(flags), Host("a.test", 0.0), "192.0.2.1", 0.0, 1.0, **fields)


def html(body: bytes = PAGE, status: int = 200, **headers: str) -> Response:
    """An HTML answer."""
    return HtmlResponse(URL, status=status, body=body, headers={"Content-Type": "text/html", **headers})


def typed(body: bytes, content_type: str) -> Response:
    """An answer of another type."""
    return Response(URL, body=body, headers={"Content-Type": content_type})


def test_a_page_is_read_here(bench: Bench) -> None:
    """Its facts, links as the frontier takes them, and the marks of its text."""
    page = bench.read(html())

    assert page.facts is not None
    assert (page.facts.title, page.facts.words, page.links) == ("one", 303, 3)
    assert [(found.address.url, found.depth, found.hops) for found in page.found] == [
        ("http://a.test/1", 3, "LLL"),
        ("http://a.test/2", 3, "LLL"),
        ("http://a.test/3", 3, "LLL"),
    ]
    assert page.text_marks
    assert (page.triage.verdict, page.challenge, page.unread) == (RenderNeed.PLAIN, "", "")
    assert bench.processes.jobs == []


def test_a_shell_wants_a_browser(bench: Bench) -> None:
    """The verdict of the triage comes with the page."""
    assert bench.read(html(SHELL)).triage.verdict is RenderNeed.RENDER


def test_headers_count_as_the_page_does(bench: Bench) -> None:
    """X-Robots-Tag is heard."""
    headers: dict[str, Any] = {"X-Robots-Tag": "nofollow"}
    page = bench.read(html(**headers))

    assert page.facts is not None
    assert page.facts.nofollow
    assert (page.found, page.links) == ([], 0)


@pytest.mark.parametrize(
    ("flags", "response"),
    [
        (FLAG_ROBOTS, html()),
        (FLAG_HUB, html()),
        (0, html(status=301)),
        (0, html(status=404)),
        (0, typed(b"\x89PNG", "image/png")),
    ],
)
def test_what_is_no_page_is_not_read(bench: Bench, flags: int, response: Response) -> None:
    """It is archived as it is."""
    page = bench.read(response, flags)

    assert page == ReadPage()
    assert bench.processes.jobs == []


def test_a_sub_request_is_not_read(bench: Bench) -> None:
    """The browser has it."""
    assert bench.read(html(SHELL), FLAG_SUBREQUEST) == ReadPage()


def test_sitemaps_and_feeds_name_pages(bench: Bench) -> None:
    """A sitemap by its lease, a feed by its type and start."""
    sitemap = bench.read(typed(SITEMAP, "application/xml"), FLAG_SITEMAP)
    assert [found.address.url for found in sitemap.found] == ["http://a.test/1"]
    assert [address.url for address, _ in sitemap.changed] == ["http://a.test/1"]
    assert sitemap.feed is None
    assert sitemap.facts is None

    feed = bench.read(typed(FEED, "application/atom+xml"))
    assert feed.feed is not None
    assert (feed.feed.hubs, feed.feed.entries) == (["http://hub.test/"], [])
    assert [found.address.url for found in feed.found] == ["http://a.test/1"]


@pytest.mark.parametrize("status", [200, 403, 503])
def test_a_wall_is_known(bench: Bench, status: int) -> None:
    """Whatever its status; in a sitemap's place too."""
    assert bench.read(html(WALL, status)).challenge == "cloudflare"
    assert bench.read(html(WALL, status), FLAG_SITEMAP).challenge == "cloudflare"
    assert bench.read(html(b"", status, **{"Cf-Mitigated": "challenge"})).challenge == "cloudflare"


def test_a_page_that_speaks_of_walls_is_none(bench: Bench) -> None:
    """An HTML page where a sitemap was looked for is judged by its words as any page is."""
    talk = PAGE + WALL
    assert bench.read(html(talk)).challenge == bench.read(html(talk), FLAG_SITEMAP).challenge == ""


@pytest.mark.parametrize(
    ("kind", "flags", "response"),
    [
        (Kind.HTML, 0, html(PAGE + b" " * 300_000)),
        (Kind.HTML, FLAG_RENDER, html(PAGE + b" " * 300_000)),
        (Kind.SITEMAP, FLAG_SITEMAP, typed(SITEMAP + b" " * 70_000, "application/xml")),
        (Kind.SITEMAP, FLAG_SITEMAP, typed(gzip.compress(SITEMAP * 1000), "application/gzip")),
        (Kind.FEED, 0, typed(FEED + b" " * 70_000, "application/atom+xml")),
    ],
)
def test_what_takes_long_is_read_apart(bench: Bench, kind: Kind, flags: int, response: Response) -> None:
    """And counted by its kind."""
    coming = bench.reader.read(lease_of(flags), response)
    assert isawaitable(coming)
    assert asyncio.run(_awaited(coming)).flaw == "read apart"
    assert [job.kind for job in bench.processes.jobs] == [kind]
    assert bench.stats == {f"reading/{kind}": 1}


def test_a_suspect_is_never_read_here(bench: Bench) -> None:
    """A process has died over it, however small it is."""
    bench.poison.suspects[row_of().key] = Suspect(URL, 1, 0.0)

    assert bench.read(html()).flaw == "read apart"
    assert bench.read(typed(SITEMAP, "application/xml"), FLAG_SITEMAP).flaw == "read apart"


def test_what_cannot_be_read_says_why(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """The page is archived without its links."""
    bench.processes.broken = True
    page = bench.read(html(PAGE + b" " * 300_000))

    assert (page.unread, page.fault, page.facts, page.found) == ("could not be read in 1 s", False, None, [])
    assert bench.stats["reading/failed"] == 1
    assert "its links are not followed" in caplog.text


def test_a_fault_of_ours_costs_one_page(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said, and the spider counts it."""

    def broken(*_: Any) -> ReadPage:
        raise ValueError("ours")

    monkeypatch.setattr(page_reader, "read_facts", broken)
    page = bench.read(html())

    assert (page.unread, page.fault) == ("could not be read", True)
    assert "could not read http://a.test/page" in caplog.text


def test_closing_ends_the_processes(bench: Bench) -> None:
    """With the crawl."""
    bench.reader.close()
    assert bench.processes.closed
