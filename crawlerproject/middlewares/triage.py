"""Decides which pages are nothing without their scripts, and go to the browser.

In a crawl the spider asks for it once the page is read: such a page goes back to the frontier marked "render", and
meets scrapy-playwright on a later lease. Anywhere else (``scrapy shell``) the middleware logs the verdict in one line.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Self

from crawlerproject.middlewares.leased import leased
from crawlerproject.parse.response_page import header, html_facts
from crawlerproject.rules.page.page import is_html, looks_whole
from crawlerproject.rules.rendering.thin_pages import RenderNeed, judge

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlerproject.frontier.learned.renders import Renders
    from crawlerproject.frontier.passage import Lease
    from crawlerproject.reading.jobs import ReadPage

logger = logging.getLogger(__name__)


def goes_to_browser(lease: Lease, read: ReadPage, renders: Renders) -> bool:
    """Whether a page that was read is rendered, too: once, no anti-bot wall, and within the budgets of the crawl."""
    return (
        read.facts is not None
        and not (read.challenge or lease.row.kind.is_render)
        and renders.wanted(lease.row.url, lease.row.host, read.triage.verdict)
    )


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
