"""Says in ``scrapy shell`` and its like which pages are nothing without their scripts, and would go to the browser."""

from __future__ import annotations

import logging
from typing import Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from crawlerproject.parse.page_view import html_facts
from crawlerproject.request_meta import header, leased
from crawlerproject.rules.page.page import is_html, looks_whole
from crawlerproject.rules.rendering.thin_pages import RenderNeed, judge

logger = logging.getLogger(__name__)


class TriageMiddleware:
    """Says of an answer outside a crawl that a crawl would have the page rendered."""

    def __init__(self, token: str) -> None:
        self.token = token

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings["CRAWLER_NAME"])

    def process_response(self, request: Request, response: Response) -> Response:
        """Log it in one line. What the frontier leased is judged by the spider."""
        if response.status != 200 or not response.body or "rendered" in request.meta or leased(request) is not None:
            return response
        content_type = header(response.headers, b"Content-Type") or None
        if is_html(content_type, response.body):
            facts = html_facts(response, content_type, self.token)
            if not looks_whole(facts.words, len(facts.links) + facts.nofollow_links):
                found = judge(facts.shell, response.body)
                if found.verdict is not RenderNeed.PLAIN:
                    logger.info("triage: %s would be rendered: %s", request.url, found)
        return response
