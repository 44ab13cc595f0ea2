"""Sends pages that are nothing without their scripts to the browser.

In a crawl the page is read by the ``PageReader`` (``reading/page_reader.py``); what this middleware decides on the
result goes with the request to the spider, and the page back to the frontier marked "render": it meets
scrapy-playwright on a later lease. Anywhere else (``scrapy shell``) the verdict is logged in one line.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Self

from crawlerproject.frontier.learned.renders import Renders
from crawlerproject.middlewares.leased import LeasedExchange, leased
from crawlerproject.parse.response_page import header, html_facts
from crawlerproject.reading.jobs import ReadPage
from crawlerproject.reading.page_reader import PageReader
from crawlerproject.rules.page.page import is_html, looks_whole
from crawlerproject.rules.rendering.triage import RenderNeed, judge
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


logger = logging.getLogger(__name__)


class TriageMiddleware:
    """Sets ``page`` and ``to_render`` of a leased request's exchange."""

    def __init__(self, crawler: Crawler, token: str) -> None:
        self.services = services_of(crawler)
        self.token = token

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler, crawler.settings["CRAWLER_NAME"])

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        """Decide on every HTML answer. Costs nothing beyond the reading that the spider needs."""
        exchange = leased(request)
        if exchange is None:
            self._judge_for_a_person(request, response)
            return response
        page = self.services[PageReader].read(exchange.lease, response)
        if not isinstance(page, ReadPage):
            return self._decide_later(exchange, page, response)
        self._decide(exchange, page)
        return response

    async def _decide_later(
        self, exchange: LeasedExchange, coming: Awaitable[ReadPage], response: Response
    ) -> Response:
        self._decide(exchange, await coming)
        return response

    def _decide(self, exchange: LeasedExchange, page: ReadPage) -> None:
        lease, exchange.page = exchange.lease, page
        exchange.to_render = (
            page.facts is not None
            and not (page.challenge or lease.row.kind.is_render)
            and self.services[Renders].wanted(lease.row.url, lease.row.host, page.triage.verdict)
        )

    def _judge_for_a_person(self, request: Request, response: Response) -> None:
        """Log that a crawl would have a page rendered."""
        if response.status != 200 or not response.body or "rendered" in request.meta:
            return
        content_type = header(response.headers, b"Content-Type") or None
        if is_html(content_type, response.body):
            facts = html_facts(response, content_type, self.token)
            if not looks_whole(facts.words, len(facts.links) + facts.nofollow_links):
                found = judge(facts.shell, response.body)
                if found.verdict is not RenderNeed.PLAIN:
                    logger.info("triage: %s would be rendered: %s", request.url, found)
