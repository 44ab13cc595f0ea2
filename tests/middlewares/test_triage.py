"""Triage: which pages go to the browser, decided on what the reader has read."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from crawlerproject.middlewares.triage import TriageMiddleware, goes_to_browser
from crawlerproject.reading.jobs import ReadPage
from crawlerproject.rules.page.page import PageFacts
from crawlerproject.rules.rendering.thin_pages import RenderNeed, Triage
from crawlerproject.rules.row_kinds import FLAG_RENDER, ROW_KINDS
from tests.exchanges import under_lease

URL = "http://a.test/app"
SHELL = (
    b"<div id=root></div><noscript>You need to enable JavaScript</noscript><script src=/assets/index-abc.js></script>"
)
NEEDS = ReadPage(PageFacts(words=3), 1, Triage(RenderNeed.RENDER, 9, ("empty root",)))


class Budgets:
    """The frontier's renders, which answer as the test says."""

    def __init__(self, *, wanted: bool = True) -> None:
        self.asked: list[tuple[str, str, RenderNeed]] = []
        self._wanted = wanted

    def wanted(self, url: str, host: str, verdict: RenderNeed) -> bool:
        """Whether there is room."""
        self.asked.append((url, host, verdict))
        return self._wanted

    def decide(self, page: ReadPage, *, is_render: bool = False) -> bool:
        """Whether a page that was read goes to the browser."""
        lease: Any = SimpleNamespace(
            row=SimpleNamespace(url=URL, host="a.test", kind=ROW_KINDS[FLAG_RENDER if is_render else 0])
        )
        renders: Any = self
        return goes_to_browser(lease, page, renders)


@pytest.mark.parametrize("wanted", [True, False])
def test_the_frontiers_budgets_have_the_last_word(wanted: bool) -> None:
    """They are asked with the verdict."""
    budgets = Budgets(wanted=wanted)

    assert budgets.decide(NEEDS) == wanted
    assert budgets.asked == [(URL, "a.test", RenderNeed.RENDER)]


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
    budgets = Budgets()

    assert not budgets.decide(page)
    assert budgets.asked == []


def test_a_rendered_page_is_not_sent_again() -> None:
    """Once is all it gets."""
    budgets = Budgets()

    assert not budgets.decide(NEEDS, is_render=True)
    assert budgets.asked == []


def test_outside_a_crawl_it_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """Only where a crawl would render: a page that was rendered, or leased, has no line."""
    middleware = TriageMiddleware("TestBot")
    html = {"Content-Type": "text/html"}
    with caplog.at_level(logging.INFO, "crawlerproject.middlewares.triage"):
        for meta in ({}, {"rendered": object()}):
            middleware.process_response(Request(URL, meta=meta), HtmlResponse(URL, body=SHELL, headers=html))
        leased = under_lease(Request(URL), SimpleNamespace())
        middleware.process_response(leased, HtmlResponse(URL, body=SHELL, headers=html))
        plain = Response(URL, body=b"{}", headers={"Content-Type": "application/json"})
        middleware.process_response(Request(URL), plain)

    said = [record.getMessage() for record in caplog.records if record.name == TriageMiddleware.__module__]
    assert [line.partition(": render")[0] for line in said] == [f"triage: {URL} would be rendered"]
