"""``page`` in the shell: what the crawler reads in a response, and what it would do with its links."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from crawlerproject.guard.guard import guard_of
from crawlerproject.parse.page_view import PageView, html_facts
from crawlerproject.settings import OURS

URL = "http://a.test/dir/"
BODY = b"""<html><head><title>A page</title><link rel=canonical href=/home>
<meta name=robots content=noindex></head><body><p>Some words to read.</p>
<a href=next>next</a><a href=picture.jpg>picture</a><a href=http://never.test/>never</a><a href=/no>no</a>
<a href=x rel=nofollow>x</a></body></html>"""
ROBOTS = b"User-agent: *\nCrawl-delay: 7\nDisallow: /no\n"


@pytest.fixture
def crawler(tmp_path: Path) -> Crawler:
    """A crawler with our settings, which excludes never.test."""
    (tmp_path / "never.txt").write_text("never.test\n")
    given: dict[str, Any] = {"NEVERCRAWL_FILE": str(tmp_path / "never.txt"), "NEVERCRAWL_USER_FILE": ""}
    made = get_crawler(settings_dict=OURS | given)
    made._apply_settings()
    return made


def viewed(crawler: Crawler) -> PageView:
    """The page as the shell shows it."""
    return PageView(crawler, HtmlResponse(URL, body=BODY, headers={"Content-Type": "text/html"}))


def ask_robots(crawler: Crawler) -> None:
    """What a request of the shell does first."""

    async def download(request: Request) -> Response:
        return Response(request.url, body=ROBOTS)

    asyncio.run(guard_of(crawler).robots.judge(Request(URL), download))


def test_what_the_page_says(crawler: Crawler) -> None:
    """Title, text, canonical address and wishes."""
    page = viewed(crawler)
    assert (page.title, page.canonical, page.facts.noindex) == ("A page", "http://a.test/home", True)
    assert "Some words to read." in page.text
    assert page.fingerprint is None  # too little text
    assert page.triage is not None
    assert "noindex" in repr(page)


def test_each_link_has_the_gate_that_refuses_it(crawler: Crawler) -> None:
    """Extension, NeverCrawl, and robots.txt once it is known; a nofollow link is none."""
    assert {link.url.rpartition("/")[2]: link.refusal for link in viewed(crawler).links} == {
        "home": "", "next": "", "picture.jpg": "extension", "": "nevercrawl", "no": "",
    }  # fmt: skip
    ask_robots(crawler)
    refusals = {link.url: link.refusal for link in viewed(crawler).links}
    assert refusals["http://a.test/no"] == "robots"
    assert "robots               L http://a.test/no" in repr(viewed(crawler).links)


def test_robots_and_pace_are_the_guards(crawler: Crawler) -> None:
    """Looking asks for nothing: robots.txt is unknown until a request needed it."""
    assert viewed(crawler).robots == "robots.txt is not known"
    assert viewed(crawler).pace == (5.0, 0.0, 0.0)
    ask_robots(crawler)
    assert viewed(crawler).robots == "allowed, Crawl-delay 7 s"
    assert viewed(crawler).pace == (7.0, 0.0, 7.0)


def test_what_is_no_html_has_no_words(crawler: Crawler) -> None:
    """And no links, no triage."""
    page = PageView(crawler, Response("http://a.test/x.bin", body=b"\x00\x01"))
    assert (page.words, list(page.links), page.triage) == (0, [], None)
    assert "no HTML" in repr(page)


def test_a_page_is_read_with_what_its_headers_ask() -> None:
    """Each X-Robots-Tag counts beside the page's own meta elements."""
    headers = {"Content-Type": "text/html", "X-Robots-Tag": ["noindex", "noai"]}
    facts = html_facts(Response("http://a.test/", body=b"<a href=/1>1</a>", headers=headers), "text/html", "TestBot")

    assert ([link.url for link in facts.links], facts.noindex) == (["http://a.test/1"], True)
