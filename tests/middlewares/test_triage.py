"""The triage middleware: which pages go to the browser, decided on what the reader has read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from inspect import isawaitable
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from crawlerproject.frontier.learned.renders import Renders
from crawlerproject.middlewares.leased import LeasedExchange, leased
from crawlerproject.middlewares.triage import TriageMiddleware
from crawlerproject.reading.jobs import ReadPage
from crawlerproject.reading.page_reader import PageReader
from crawlerproject.rules.page.page import PageFacts
from crawlerproject.rules.rendering.triage import RenderNeed, Triage
from crawlerproject.rules.row_kinds import FLAG_RENDER, ROW_KINDS
from crawlerproject.runtime.services import services_of
from tests.exchanges import under_lease

URL = "http://a.test/app"
SHELL = (
    b"<div id=root></div><noscript>You need to enable JavaScript</noscript><script src=/assets/index-abc.js></script>"
)
NEEDS = ReadPage(PageFacts(words=3), 1, Triage(RenderNeed.RENDER, 9, ("empty root",)))


class Bench:
    """The middleware in a crawl whose reader and renders answer as the test says."""

    def __init__(self, page: ReadPage | Awaitable[ReadPage], *, wanted: bool = True) -> None:
        self.asked: list[tuple[str, str, RenderNeed]] = []
        self.reads = 0
        crawler = get_crawler(settings_dict={"CRAWLER_NAME": "TestBot"})
        self.middleware = TriageMiddleware.from_crawler(crawler)

        def read(lease: Any, response: Response) -> ReadPage | Awaitable[ReadPage]:
            self.reads += 1
            return page

        def answer(url: str, host: str, verdict: RenderNeed) -> bool:
            self.asked.append((url, host, verdict))
            return wanted

        services_of(crawler)._by_type.update(
            {PageReader: SimpleNamespace(read=read), Renders: SimpleNamespace(wanted=answer)}
        )

    def decide(self, *, is_render: bool = False) -> LeasedExchange:
        """The exchange after the answer has passed."""
        row = SimpleNamespace(url=URL, host="a.test", kind=ROW_KINDS[FLAG_RENDER if is_render else 0])
        request = under_lease(Request(URL), SimpleNamespace(row=row))
        response = HtmlResponse(URL, body=SHELL)
        passed = self.middleware.process_response(request, response)
        assert (asyncio.run(_awaited(passed)) if isawaitable(passed) else passed) is response
        exchange = leased(request)
        assert exchange is not None
        return exchange


async def _awaited(passed: Awaitable[Response]) -> Response:
    return await passed


@pytest.mark.parametrize("wanted", [True, False])
def test_the_frontiers_budgets_have_the_last_word(wanted: bool) -> None:
    """The page and the decision go with the request."""
    bench = Bench(NEEDS, wanted=wanted)
    exchange = bench.decide()

    assert (exchange.page, exchange.to_render) == (NEEDS, wanted)
    assert bench.asked == [(URL, "a.test", RenderNeed.RENDER)]
    assert bench.reads == 1


@pytest.mark.parametrize(
    "page",
    [
        ReadPage(),
        ReadPage(unread="could not be read in 1 s"),
        ReadPage(PageFacts(), challenge="cloudflare"),
    ],
)
def test_what_is_no_readable_page_is_not_sent(page: ReadPage) -> None:
    """Lists, pictures, walls."""
    bench = Bench(page)

    assert not bench.decide().to_render
    assert bench.asked == []


def test_a_rendered_page_is_not_sent_again() -> None:
    """Once is all it gets."""
    bench = Bench(NEEDS)

    assert not bench.decide(is_render=True).to_render
    assert bench.asked == []


def test_a_page_that_is_read_elsewhere_is_waited_for() -> None:
    """Then as ever."""

    async def coming() -> ReadPage:
        return NEEDS

    assert Bench(coming()).decide().to_render


def test_outside_a_crawl_it_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """Only where a crawl would render; nothing is read for pages that were rendered."""
    bench = Bench(NEEDS)
    with caplog.at_level(logging.INFO, "crawlerproject.middlewares.triage"):
        for meta in ({}, {"rendered": object()}):
            bench.middleware.process_response(
                Request(URL, meta=meta), HtmlResponse(URL, body=SHELL, headers={"Content-Type": "text/html"})
            )
        plain = Response(URL, body=b"{}", headers={"Content-Type": "application/json"})
        bench.middleware.process_response(Request(URL), plain)

    said = [record.getMessage() for record in caplog.records if record.name == TriageMiddleware.__module__]
    assert [line.partition(": render")[0] for line in said] == [f"triage: {URL} would be rendered"]
    assert bench.reads == 0
