"""Sends pages that are nothing without their scripts to the browser, and knows an anti-bot wall when it sees one.

In a crawl the page goes back to the frontier marked "render" and meets scrapy-playwright on a later lease; anywhere
else (``scrapy shell``) the verdict is left in ``response.meta["triage"]`` and said in one line.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self, cast

from crawlerproject.rules.challenge import HEADERS, challenge
from crawlerproject.rules.page import PageFacts, is_html, read_html
from crawlerproject.rules.triage import PLAIN, Triage, Verdict, looks_whole, triage

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlerproject.crawl.scheduler import FrontierScheduler
    from crawlerproject.frontier.lease import Lease

logger = logging.getLogger(__name__)

_WALLS = [(name, name.title().encode()) for name in HEADERS]


class TriageMiddleware:
    """Sets ``facts`` (what the page says), ``triage``, ``to_render`` and ``challenge`` of ``request.meta``."""

    def __init__(self, crawler: Crawler, token: str) -> None:
        self.crawler = crawler
        self.token = token

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler, crawler.settings["CRAWLER_NAME"])

    def process_response(self, request: Request, response: Response) -> Response:
        """Judge every HTML answer; costs a page that is whole nothing beyond the reading that the spider needs."""
        meta = request.meta
        lease = meta.get("lease")
        meta.pop("to_render", None)
        no_page = lease is not None and (lease.is_robots or lease.embed is not None)
        if no_page or not response.body or response.status in (301, 302, 303, 307, 308):
            return response
        answer, get = response.headers, dict.get  # names in title case, as Scrapy keeps them
        content_type = get(answer, b"Content-Type", [b""])[-1].decode("latin-1") or None
        if not is_html(content_type, response.body):
            return response
        facts = meta["facts"] = facts_of(response, content_type, self.token) if response.status == 200 else None
        headers = {name: values[0].decode("latin-1") for name, known_as in _WALLS if (values := get(answer, known_as))}
        meta["challenge"] = challenge(response.status, headers, response.body, facts.words if facts else None)
        if facts is None or meta["challenge"] or "rendered" in meta:
            return response
        whole = looks_whole(facts.words, len(facts.links) + facts.nofollow_links)
        found = PLAIN if whole else triage(response.body, content_type)
        meta["triage"] = found
        if lease is not None:
            self._route(meta, lease, facts, found)
        elif found.verdict is not Verdict.PLAIN:
            logger.info("triage: %s would be rendered: %s", request.url, found)
        return response

    def _route(self, meta: dict[str, Any], lease: Lease, facts: PageFacts, found: Triage) -> None:
        scheduler = cast("FrontierScheduler", self.crawler.engine.scheduler)
        renders = scheduler.crawl.frontier.renders
        if not lease.is_render and renders.wanted(lease.row.url, lease.row.host, found.verdict):
            meta["to_render"] = (facts.words, len(facts.links))


def facts_of(response: Response, content_type: str | None, token: str) -> PageFacts:
    """What an HTML answer says."""
    return read_html(
        response.body,
        url=response.url,
        content_type=content_type,
        x_robots=[value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")],
        token=token,
    )
