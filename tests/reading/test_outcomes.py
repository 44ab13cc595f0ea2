"""From a response and what was read in it to the outcome of the lease."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.http import HtmlResponse

from crawlerproject.items import FetchedPage, Rendered
from crawlerproject.parse.links import linked
from crawlerproject.reading.jobs import Job, Kind, ReadPage, read_facts
from crawlerproject.reading.outcomes import Outcomes, rendered_page, text_of
from crawlerproject.reasons import Reason
from crawlerproject.rules.page.page import read_html
from crawlerproject.rules.row_kinds import FLAG_ROBOTS, FLAG_SITEMAP
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import QueuedPage
from crawlerproject.wire import Wire

HOST = "http://a.test"
URL = f"{HOST}/page"
PAGE = b"<title>t</title><p>some words<a href=/1>1</a><link rel=canonical href=/one>"
ROBOTS = b"User-agent: *\nDisallow: /no\nSitemap: /map.xml\n"


def row_of(flags: int = 0) -> QueuedPage:
    """The queue's row."""
    address = parse(URL)
    return QueuedPage(address.host, address.key, URL, 10, 1, 1, "L", "", flags=flags)


def read_of(body: bytes = PAGE) -> ReadPage:
    """What is read of an HTML page."""
    facts = read_html(body, url=URL, content_type="text/html", x_robots=[], token="TestBot")
    return read_facts(Job(Kind.HTML, row_of(), URL, "text/html", [], "TestBot"), facts, body)


def fetched(
    read: ReadPage, *, status: int = 200, flags: int = 0, to_render: bool = False, sitemaps: bool = True, **given: Any
) -> FetchedPage:
    """The outcome of a fetch."""
    response = HtmlResponse(URL, status=status, body=given.get("body", PAGE), headers=given.get("headers"))
    outcomes = Outcomes("TestBot", sitemaps=sitemaps, signals=lambda url: ("ai-train=no",))
    return outcomes.fetched(row_of(flags), response, Wire(status=status), read, to_render=to_render)


def test_a_page_with_its_text_and_links() -> None:
    """What the robots.txt of its site states is noted with it."""
    read = read_of()
    page = fetched(read)

    assert (page.reason, page.shell, page.is_feed) == (Reason.FETCHED, None, False)
    assert page.found == read.found
    assert page.text is not None
    assert page.text.canonical is not None
    assert (page.text.canonical.url, page.text.marks) == ("http://a.test/one", read.text_marks)
    assert page.notes[0][0] == "charset-detected"
    assert any("ai-train=no" in value for _, value in page.notes)


def test_a_page_for_the_browser_has_links_and_no_text() -> None:
    """Its words and links are measured without the browser."""
    read = read_of()
    page = fetched(read, to_render=True)

    assert read.facts is not None
    assert (page.shell, page.text) == ((read.facts.words, 2), None)
    assert page.found == read.found


def test_a_list_is_what_it_names() -> None:
    """Its flaw is the page's error; a sitemap has no notes, a feed those of its site."""
    found = linked(row_of(), read_html(PAGE, url=URL, content_type=None, x_robots=[], token="x"))
    sitemap = fetched(ReadPage(found=found, flaw="cut"), flags=FLAG_SITEMAP)

    assert (sitemap.found, sitemap.error, sitemap.notes, sitemap.text) == (found, "cut", [], None)


@pytest.mark.parametrize(("sitemaps", "named"), [(True, ["http://a.test/map.xml"]), (False, [])])
def test_a_robots_txt_names_sitemaps(sitemaps: bool, named: list[str]) -> None:
    """Where the SITEMAPS setting wants them."""
    page = fetched(ReadPage(), flags=FLAG_ROBOTS, sitemaps=sitemaps, body=ROBOTS)

    assert [found.address.url for found in page.found] == named
    assert page.body == ROBOTS


def test_a_robots_txt_that_is_not_there_names_nothing() -> None:
    """Whatever its body says."""
    assert fetched(ReadPage(), status=404, flags=FLAG_ROBOTS, body=ROBOTS).found == ()


def test_a_parser_bomb_says_so() -> None:
    """In the log by its error, in the metadata by a note; it stands without links."""
    read = read_of(b"<a href=/1>1</a><p " + b" ".join(b"a%d" % number for number in range(2_000)) + b">")
    page = fetched(read)

    assert (page.reason, page.found) == (Reason.FETCHED, [])
    assert page.error.startswith("parser bomb: ")
    assert ("unparsed", "parser-bomb") in page.notes
    assert rendered_page(row_of(), Rendered(URL), read).error == page.error


@pytest.mark.parametrize(("status", "reason"), [(200, Reason.FETCHED), (404, Reason.HTTP_ERROR)])
def test_soft_marks_of_walls_are_noted(status: int, reason: Reason) -> None:
    """And nothing else."""
    read = read_of() if status == 200 else ReadPage()
    read.wall_marks = "datadome: x-datadome"
    page = fetched(read, status=status)

    assert (page.reason, page.notes[-1], page.error) == (reason, ("wall-marks", "datadome: x-datadome"), "")
    if status == 200:
        assert ("wall-marks", "datadome: x-datadome") in rendered_page(row_of(), Rendered(URL), read).notes


def test_what_could_not_be_read_is_noted() -> None:
    """The page stands without links."""
    page = fetched(ReadPage(unread="could not be read in 1 s"))

    assert (page.error, page.notes[-1], page.found) == (
        "could not be read in 1 s",
        ("unread", "could not be read in 1 s"),
        (),
    )


@pytest.mark.parametrize("status", [200, 403])
def test_a_wall_is_a_challenge(status: int) -> None:
    """Noted with its vendor."""
    page = fetched(ReadPage(challenge="cloudflare"), status=status)

    assert (page.reason, page.notes[-1]) == (Reason.CHALLENGE, ("challenge", "cloudflare"))


def test_a_redirect_is_no_page() -> None:
    """Its target, and nothing of its body."""
    page = fetched(ReadPage(), status=302, headers={"Location": "/there"})

    assert page.target is not None
    assert (page.target.address.url, page.found, page.text) == ("http://a.test/there", (), None)


def test_a_render_has_the_links_of_its_scripts() -> None:
    """And where they went, unless the page asks for nofollow."""
    rendered = Rendered(URL, navigations=["/went"])
    page = rendered_page(row_of(), rendered, read_of())
    nofollow = rendered_page(row_of(), rendered, read_of(b"<meta name=robots content=nofollow><a href=/1>1</a>"))

    assert [found.address.url for found in page.found] == [
        *(link.address.url for link in read_of().found),
        f"{HOST}/went",
    ]
    assert page.gained is not None
    assert list(nofollow.found) == []


def test_a_render_that_could_not_be_read() -> None:
    """It gained nothing that is known."""
    page = rendered_page(row_of(), Rendered(URL), ReadPage(unread="too slow"))

    assert (page.reason, page.gained, page.text, page.error) == (Reason.RENDERED, None, None, "too slow")


def test_only_html_has_a_text() -> None:
    """Lists and unread pages are not compared."""
    assert text_of(ReadPage()) is None
    assert text_of(read_of()) is not None
