"""The spider: from a response, or from an error, to the end of the lease and a project's items."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response

from crawlerproject.errors import FetchError, LeaseOver
from crawlerproject.frontier.passage import Lease
from crawlerproject.guard.guard import Refused
from crawlerproject.items import Ending, LeaseResult, Rendered, RenderFailed
from crawlerproject.reading import page_reader
from crawlerproject.reading.jobs import ReadPage
from crawlerproject.reading.page_reader import PageReader
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.row_kinds import FLAG_HUB, FLAG_RENDER, FLAG_SITEMAP
from crawlerproject.spiders.web import WebSpider
from tests.crawl.sessions import HOST
from tests.spiders.lines import Line, answer, html, unread

SITEMAP = b"<urlset><url><loc>http://a.test/listed</loc></url><url><loc>http://b.test/</loc></url></urlset>"
FEED = b"<feed xmlns='http://www.w3.org/2005/Atom'><link rel='hub' href='http://hub.test/'/></feed>"
WALL = "<script>window._cf_chl_opt = {}; a = '/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1'</script>"


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """With a page queued."""
    line = Line(tmp_path)
    line.add(f"{HOST}/one")
    return line


def lease_with(line: Line, flags: int, url: str = f"{HOST}/odd") -> Lease:
    """A lease that the frontier has not handed out: nothing of it is queued."""
    lease = line.page_lease()
    row = lease.row._replace(flags=flags, url=url)
    return Lease(row, lease.host, lease.address, line.now, 1.0, stored=False)


def fetched(line: Line) -> LeaseResult:
    """The result of the last lease, a response."""
    assert line.last.answered
    return line.last


# --- pages ------------------------------------------------------------------------------------------


def test_a_page_ends_with_its_links_queued(line: Line) -> None:
    """Compared, archived, logged, its lease over."""
    lease = line.page_lease()
    assert line.respond(lease, html(lease, "<title>t</title><a href=/two>2</a><a href=/three>3</a>")) == []

    page = fetched(line)
    assert (page.reason, page.status, page.mime) == (Reason.FETCHED, 200, "text/html")
    assert lease.ended
    assert line.last.new_links == 2
    assert page.is_text
    assert ("charset-detected", "utf-8") in line.last.notes
    assert line.web.errors == 0


@pytest.mark.parametrize(
    ("status", "reason"),
    [(404, Reason.HTTP_ERROR), (500, Reason.HTTP_ERROR), (429, Reason.RATE_LIMITED), (304, Reason.HTTP_ERROR)],
)
def test_other_statuses_are_answers_too(line: Line, status: int, reason: Reason) -> None:
    """Their bodies are not read."""
    lease = line.page_lease()
    line.respond(lease, html(lease, "<a href=/two>2</a>", status))

    assert (fetched(line).reason, line.last.found, fetched(line).is_text) == (reason, (), False)
    assert lease.ended


def test_a_redirects_target_is_queued(line: Line) -> None:
    """In the page's place; the page has no links."""
    lease = line.page_lease()
    line.respond(lease, answer(lease, b"", status=301, Location="/there"))

    assert (fetched(line).reason, fetched(line).location) == (Reason.REDIRECT, f"{HOST}/there")
    assert line.page_lease().row.url == f"{HOST}/there"


def test_redirects_in_a_row_end(line: Line) -> None:
    """At the eleventh."""
    lease = line.page_lease()
    lease.row = lease.row._replace(hops="R" * 10)
    line.respond(lease, answer(lease, b"", status=302, Location="/there"))

    assert fetched(line).error == "more than 10 redirects in a row"
    assert line.frontier.hosts.waiting_urls == 0


def test_a_page_for_the_browser_is_not_compared(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The triage has decided; its words and links go with the lease."""
    lease = line.page_lease()
    monkeypatch.setattr(line.frontier.renders, "mode", "auto")
    monkeypatch.setattr(line.frontier.renders, "wanted", lambda url, host, verdict: True)
    line.respond(lease, html(lease, "<a href=/two>two words</a>"))

    assert fetched(line).shell == (2, 1)
    assert fetched(line).is_text is False
    assert line.last.new_links == 1


def test_a_page_is_waited_for_that_another_process_reads(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """And goes back without blame where this machine has no process for it."""
    ends: list[ReadPage | FetchError] = [ReadPage(unread="too slow"), FetchError(Reason.OUR_LIMIT, "no process")]

    async def read() -> ReadPage:
        end = ends.pop(0)
        if isinstance(end, FetchError):
            raise end
        return end

    monkeypatch.setattr(line.web.services[PageReader], "read", lambda lease, response: read())
    line.respond(lease := line.page_lease(), html(lease))
    assert ("unread", "too slow") in line.last.notes
    line.add(f"{HOST}/two")
    line.respond(lease := line.page_lease(), html(lease))
    assert line.last.reason is Reason.OUR_LIMIT
    assert lease.ended


def test_a_wall_is_its_own_reason(line: Line) -> None:
    """And noted with its vendor."""
    lease = line.page_lease()
    line.respond(lease, html(lease, "<script>window._cf_chl_opt = {}</script>", 403))

    assert fetched(line).reason is Reason.CHALLENGE
    assert ("challenge", "cloudflare") in line.last.notes


def test_a_page_that_cannot_be_read_is_archived(line: Line) -> None:
    """Without links, and with the reason in log and record."""
    lease = line.page_lease()
    line.respond(lease, html(lease, "<a href=/two>2</a>"), read=unread("could not be read in 1 s"))

    assert fetched(line).error == "could not be read in 1 s"
    assert ("unread", "could not be read in 1 s") in line.last.notes
    assert (line.last.found, line.web.errors) == ((), 0)


def test_a_fault_of_the_reader_is_counted(line: Line) -> None:
    """The page is archived all the same."""
    lease = line.page_lease()
    line.respond(lease, html(lease), read=unread("could not be read", fault=True))

    assert (line.web.errors, lease.ended, fetched(line).reason) == (1, True, Reason.FETCHED)


# --- lists and hubs ---------------------------------------------------------------------------------


def test_a_robots_txt_names_sitemaps(line: Line) -> None:
    """They are queued as such."""
    lease = line.lease()
    assert lease.row.kind.is_robots
    line.respond(lease, answer(lease, b"Sitemap: /map.xml\nUser-agent: *\nDisallow: /no", "text/plain"))

    assert [found.address.url for found in line.last.found] == [f"{HOST}/map.xml"]
    assert line.last.found[0].flags == FLAG_SITEMAP


def test_a_robots_txt_that_was_cut_is_none(line: Line) -> None:
    """To the host it is as if it had not answered."""
    lease = line.lease()
    response = answer(lease, b"User-agent: *", "text/plain")
    response.flags.append("truncated-time")
    line.respond(lease, response)

    assert (fetched(line).status, fetched(line).reason) == (None, Reason.BAD_RESPONSE)
    assert "as if it could not be reached" in fetched(line).error


def test_a_sitemap_lists_pages(line: Line) -> None:
    """Those of its host; others are counted."""
    lease = lease_with(line, FLAG_SITEMAP, f"{HOST}/map.xml")
    line.respond(lease, answer(lease, SITEMAP, "application/xml"))

    assert [found.address.url for found in line.last.found] == [f"{HOST}/listed"]
    assert line.counts["refused/foreign-entry"] == 1
    assert fetched(line).is_text is False


def test_a_feeds_hub_is_asked(line: Line) -> None:
    """With the links of its headers."""
    lease = line.page_lease()
    line.respond(lease, answer(lease, FEED, "application/atom+xml", Link="<http://hub2.test/>; rel=hub"))

    assert line.asked_hubs == [(["<http://hub2.test/>; rel=hub"], ["http://hub.test/"])]
    assert line.counts["websub/asked"] == 1
    assert fetched(line).is_feed


@pytest.mark.parametrize(
    ("status", "reason", "error"), [(202, Reason.SUBSCRIBED, ""), (400, Reason.HTTP_ERROR, "no such topic")]
)
def test_a_hub_answers(line: Line, status: int, reason: Reason, error: str) -> None:
    """It is no page: nothing is read."""
    lease = lease_with(line, FLAG_HUB, "http://hub.test/")
    assert line.respond(lease, answer(lease, b"no such topic", status=status)) == []

    assert (fetched(line).reason, fetched(line).error) == (reason, error)


def test_a_hub_may_name_another(line: Line) -> None:
    """307 and 308 keep the method."""
    lease = lease_with(line, FLAG_HUB, "http://hub.test/")
    line.respond(lease, answer(lease, b"", status=308, Location="http://hub2.test/"))

    assert line.asked_hubs == [("http://hub2.test/", "LR")]
    assert fetched(line).location == "http://hub2.test/"


# --- renders ----------------------------------------------------------------------------------------


def test_what_the_browser_made_of_a_page(line: Line) -> None:
    """Its links and where its scripts went; what it gained is known."""
    lease = lease_with(line, FLAG_RENDER, f"{HOST}/app")
    rendered = Rendered(lease.row.url, html=b"<a href=/shown>2</a>", navigations=["/went"])
    line.respond(lease, html(lease, "<a href=/shown>two</a>"), wire=None, rendered=rendered)

    outcome = line.last
    assert outcome.is_render
    assert (outcome.reason, outcome.gained) == (Reason.RENDERED, (1, 1))
    assert [found.address.url for found in outcome.found] == [f"{HOST}/shown", f"{HOST}/went"]


def test_a_render_that_shows_a_wall(line: Line) -> None:
    """It is obeyed like any."""
    lease = lease_with(line, FLAG_RENDER)
    line.respond(lease, html(lease, WALL), wire=None, rendered=Rendered(lease.row.url))

    assert line.last.reason is Reason.CHALLENGE


def test_a_render_that_cannot_be_read_gained_nothing_that_is_known(line: Line) -> None:
    """It is archived without links."""
    lease = lease_with(line, FLAG_RENDER)
    rendered, page = Rendered(lease.row.url), unread("could not be read in 1 s")
    line.respond(lease, html(lease), wire=None, rendered=rendered, read=page)

    outcome = line.last
    assert outcome.is_render
    assert (outcome.gained, outcome.error) == (None, "could not be read in 1 s")


# --- a project's middlewares ------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [0, FLAG_RENDER])
def test_a_middleware_that_answers_by_itself(line: Line, flags: int) -> None:
    """Nothing crossed the network, and nothing is archived."""
    lease = lease_with(line, flags)
    assert line.respond(lease, html(lease), wire=None) == []

    assert (line.last.answered, line.last.is_render) == (False, bool(flags))
    assert line.last.reason is Reason.MIDDLEWARE


def test_a_request_of_a_middlewares_own_is_no_lease(line: Line) -> None:
    """Its answer is what ``parse`` makes of it."""

    class Own(WebSpider):
        def extract(self, response: Response) -> Iterator[Any]:
            yield {"url": response.url}

    response = HtmlResponse(f"{HOST}/x", body=b"<p>x", request=Request(f"{HOST}/x"))
    own = Own.from_crawler(line.web.crawler, seeds=f"{HOST}/")

    async def answered() -> list[Any]:
        return await own.answered(response)

    assert asyncio.run(answered()) == [{"url": f"{HOST}/x"}]
    assert line.ended == []


# --- derived spiders --------------------------------------------------------------------------------


class Generating(WebSpider):
    """A generator."""

    def extract(self, response: Response) -> Iterator[Any]:
        yield {"n": 1}
        yield {"n": 2}


class Single(WebSpider):
    """One item."""

    def extract(self, response: Response) -> Any:
        return {"n": 1}


class Late(WebSpider):
    """A coroutine."""

    async def extract(self, response: Response) -> Any:
        await asyncio.sleep(0)
        return [{"n": 1}, {"n": 2}]


class Streaming(WebSpider):
    """An asynchronous generator."""

    async def extract(self, response: Response) -> AsyncIterator[Any]:
        yield {"n": 1}


class Parsing(WebSpider):
    """As Scrapy's tutorial has it."""

    def parse(self, response: Response, **kwargs: Any) -> Any:
        return [{"n": 1}]


@pytest.mark.parametrize(("spider", "count"), [(Generating, 2), (Single, 1), (Late, 2), (Streaming, 1), (Parsing, 1)])
def test_a_projects_items_are_handed_on(tmp_path: Path, spider: type[WebSpider], count: int) -> None:
    """Of whatever kind; only of answers with status 200 that are pages."""
    line = Line(tmp_path, spider)
    line.add(f"{HOST}/one", f"{HOST}/two")
    robots = line.lease()
    assert line.respond(robots, answer(robots, b"", "text/plain")) == []
    lease = line.page_lease()
    assert [item["n"] for item in line.respond(lease, html(lease))] == list(range(1, count + 1))
    lease = line.page_lease()
    assert line.respond(lease, html(lease, status=404)) == []


class Failing(WebSpider):
    """A fault of the project's."""

    def extract(self, response: Response) -> Iterator[Any]:
        yield {"n": 1}
        raise ValueError("theirs")


class FailingLate(WebSpider):
    """The same, later."""

    async def extract(self, response: Response) -> Any:
        raise ValueError("theirs")


@pytest.mark.parametrize("spider", [Failing, FailingLate])
def test_a_fault_in_extract_costs_no_page(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spider: type[WebSpider]
) -> None:
    """It is archived with a line that says so, and counted; many in a row stop the crawl, an answer in between not."""
    line = Line(tmp_path, spider)
    line.add(*(f"{HOST}/{number}" for number in range(3)))
    for number in range(3):
        lease = line.page_lease()
        assert line.respond(lease, html(lease, f"<p>{number}")) == []
        assert (fetched(line).error, lease.ended) == ("could not be read", True)

    assert line.counts["errors/ours"] == 3
    assert line.web.errors_in_a_row == 3
    assert "3 errors of our own in a row: the crawl stops" in caplog.text


class Choosing(WebSpider):
    """Follows what lies below one folder."""

    def choose_links(self, page: LeaseResult) -> None:
        page.found = [found for found in page.found if "/kept/" in found.address.url]


class ChoosingAsBefore(WebSpider):
    """Written for version 1.7: a response is a record beside the page."""

    def choose_links(self, page: Ending) -> None:
        if b"other" in page.outcome.body and page.outcome.reason == "fetched" and page.outcome.status == 200:
            page.found = page.found[:1]


class FailingChoice(WebSpider):
    """A fault of the project's, where it chooses."""

    def choose_links(self, page: LeaseResult) -> None:
        raise ValueError("theirs")


@pytest.mark.parametrize(
    ("spider", "links", "error", "errors"),
    [(Choosing, 1, "", 0), (ChoosingAsBefore, 1, "", 0), (FailingChoice, 0, "could not be read", 1)],
)
def test_a_project_chooses_links(tmp_path: Path, spider: type[WebSpider], links: int, error: str, errors: int) -> None:
    """Those that it leaves are queued; where it fails none is, and the page is archived as ever."""
    line = Line(tmp_path, spider)
    line.add(f"{HOST}/one")
    lease = line.page_lease()

    line.respond(lease, html(lease, '<a href="/kept/a">a</a> <a href="/other">b</a>'))

    assert (len(line.last.found), fetched(line).error, lease.ended) == (links, error, True)
    assert line.counts.get("errors/ours", 0) == line.web.errors == errors


@pytest.mark.parametrize(("body", "reason"), [("<p>words", Reason.RENDERED), (WALL, Reason.CHALLENGE)])
def test_a_choice_that_fails_on_a_rendered_page(tmp_path: Path, body: str, reason: Reason) -> None:
    """The end of the page names the fault, whatever the browser was shown."""
    line = Line(tmp_path, FailingChoice)
    line.add(f"{HOST}/one")
    lease = lease_with(line, FLAG_RENDER)

    line.respond(lease, html(lease, body), wire=None, rendered=Rendered(lease.row.url))

    assert (line.last.reason, line.last.error, line.last.found) == (reason, "could not be read", ())


def test_a_page_without_a_fault_ends_the_row(line: Line) -> None:
    """Errors count in a row only."""
    line.web.count_error()
    lease = line.page_lease()
    line.respond(lease, html(lease))

    assert (line.web.errors, line.web.errors_in_a_row) == (1, 0)


# --- errors -----------------------------------------------------------------------------------------


def test_a_failed_fetch_is_its_reason(line: Line) -> None:
    """With the line for humans, and what came before it failed."""
    lease, wire = line.page_lease(), Wire(status=200, received_bytes=7)
    line.fail(lease, FetchError(Reason.DISCONNECTED, "in the middle", wire))

    result = line.last
    assert (result.reason, result.error, result.wire) == (Reason.DISCONNECTED, "in the middle", wire)
    assert not result.answered
    assert lease.ended


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Refused(Reason.NEVERCRAWL), Reason.NEVERCRAWL),
        (IgnoreRequest("theirs"), Reason.MIDDLEWARE),
        (FetchError(Reason.POISON), Reason.POISON),
    ],
)
@pytest.mark.parametrize("flags", [0, FLAG_RENDER])
def test_refusals_are_theirs(line: Line, error: Exception, reason: Reason, flags: int) -> None:
    """The list's, a middleware's; none is an error of ours."""
    line.fail(lease_with(line, flags), error)

    assert line.last.reason is reason
    assert (line.last.answered, line.last.is_render) == (False, bool(flags))
    assert line.web.errors == 0


def test_a_failed_render_says_whose_fault_it_was(line: Line) -> None:
    """The browser's own fault is not the page's."""
    lease = lease_with(line, FLAG_RENDER)
    rendered = Rendered(lease.row.url)
    line.fail(lease, RenderFailed(Reason.RENDER_FAILED, "the browser has died", rendered, again=True))

    result = line.last
    assert (result.reason, result.error) == (Reason.RENDER_FAILED, "the browser has died")
    assert (result.rendered, result.again) == (rendered, True)


def test_an_unexpected_failure_is_ours(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its traceback and counted; the lease ends all the same."""
    lease = line.page_lease()
    line.fail(lease, ValueError("ours"))

    assert (line.web.errors, lease.ended, line.last.reason) == (1, True, Reason.INTERNAL_ERROR)
    assert "unexpected failure of" in caplog.text


def test_a_lease_that_was_over_before_it_was_sent_goes_back(line: Line) -> None:
    """Nothing was asked, and nothing is logged."""
    lease = line.page_lease()
    line.fail(lease, LeaseOver(lease.row.url))

    assert (lease.ended, line.ended) == (True, [])
    assert line.page_lease().row.url == lease.row.url


# --- start and the shell ----------------------------------------------------------------------------


def test_the_seeds_are_queued_and_no_request_is_made(line: Line) -> None:
    """The frontier leases them in its own time."""

    async def started() -> list[Any]:
        return [request async for request in line.web.start()]

    before = line.frontier.hosts.waiting_urls
    assert asyncio.run(started()) == []
    assert line.frontier.hosts.waiting_urls == before + 1


def test_outside_a_crawl_a_page_is_shown(line: Line) -> None:
    """``scrapy parse``: its facts as one item, and a request for each link that is let in."""
    spider = WebSpider.from_crawler(line.web.crawler)
    response = HtmlResponse(f"{HOST}/", body=b"<title>t</title><a href=/two>2</a><a href=/film.mp4>3</a>")
    item, *requests = spider.parse(response)

    assert (item["title"], item["status"]) == ("t", 200)
    assert item["links"] == {f"{HOST}/two": "open", f"{HOST}/film.mp4": "extension"}
    assert [request.url for request in requests] == [f"{HOST}/two"]


def test_the_page_is_marked_while_it_is_read(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a page that ends the process is known afterwards; the mark goes with the reading."""
    marked: list[int] = []
    mark = line.folder / "reading"

    def read(*_: object) -> ReadPage:
        marked.append(mark.read_bytes()[0])
        return ReadPage()

    monkeypatch.setattr(page_reader, "read_facts", read)
    lease = line.page_lease()
    line.respond(lease, html(lease), mark=lambda: line.poison.reading(lease.row))

    assert marked == [1]
    assert mark.read_bytes()[0] == 0
