"""Sends pages that are nothing without their scripts to the browser, and knows an anti-bot wall when it sees one.

In a crawl the page goes back to the frontier marked "render" and meets scrapy-playwright on a later lease; anywhere
else (``scrapy shell``) the verdict is left in ``response.meta["triage"]`` and said in one line. What would take
too long here, sitemaps and feeds included, is read in another process.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self

from crawlerproject.frontier.learned.renders import Renders
from crawlerproject.middlewares.leased import lease_in
from crawlerproject.reading.jobs import Job, Kind, Reading
from crawlerproject.reading.reader import NotRead, Reader
from crawlerproject.rules.feeds.feeds import is_feed
from crawlerproject.rules.page.page import PageFacts, is_html, read_html, read_light_html
from crawlerproject.rules.rendering.challenge import HEADERS, challenge
from crawlerproject.rules.rendering.triage import PLAIN, RenderNeed, Triage, looks_whole, triage
from crawlerproject.runtime.services import services_of
from crawlerproject.stores.protocols import FLAG_SITEMAP

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlerproject.frontier.lease import Lease

logger = logging.getLogger(__name__)

_WALLS = [(name, name.title().encode()) for name in HEADERS]
# Of a sitemap or feed: 500 entries, 10 ms. One that is compressed may hold a thousand times its size.
_LIGHT_LIST_BYTES = 64 * 1024
_LIGHT_GZIP_BYTES = 256
_GZIP = b"\x1f\x8b"


class TriageMiddleware:
    """Sets ``facts`` (what the page says), ``triage``, ``to_render`` and ``challenge`` of ``request.meta``.

    What was read in the other process is ``reading``; why it could not be is ``unread``.
    """

    def __init__(self, crawler: Crawler, token: str) -> None:
        self.crawler = crawler
        self.services = services_of(crawler)
        self.token = token

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler, crawler.settings["CRAWLER_NAME"])

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        """Judge every HTML answer; costs a page that is whole nothing beyond the reading that the spider needs."""
        meta = request.meta
        lease = lease_in(request)
        meta.pop("to_render", None)
        no_page = lease is not None and (lease.is_robots or lease.embed is not None)
        if no_page or not response.body or response.status in (301, 302, 303, 307, 308):
            return response
        content_type = dict.get(response.headers, b"Content-Type", [b""])[-1].decode("latin-1") or None
        if lease is None:  # nobody else waits
            if not is_html(content_type, response.body):
                return response
            facts = facts_of(response, content_type, self.token) if response.status == 200 else None
            return self._judged(request, response, content_type, facts)
        poison = meta["poison"]
        suspect = bool(poison.suspects) and lease.row.key in poison.suspects
        with poison.reading(lease.row):
            kind = None if response.status != 200 else _list_kind(lease, content_type, response.body, suspect)
            if kind is not None:
                return self._apart(request, response, content_type, kind)
            if not is_html(content_type, response.body):
                return response
            facts = None
            if response.status == 200:
                facts = None if suspect else _light_facts_of(response, content_type, self.token)
                if facts is None:
                    return self._apart(request, response, content_type, Kind.HTML)
            return self._judged(request, response, content_type, facts)

    async def _apart(self, request: Request, response: Response, content_type: str | None, kind: Kind) -> Response:
        """Have the body read in the other process; then as ever."""
        meta, stats = request.meta, self.crawler.stats
        assert stats is not None
        row = meta["lease"].row
        job = Job(kind, row, response.url, content_type, _x_robots(response), self.token)
        stats.inc_value(f"reading/{kind}")
        reading: Reading | None = None
        try:
            reading = meta["reading"] = await self.services[Reader].read(job, response.body)
        except NotRead as error:
            meta["unread"] = str(error)
            stats.inc_value("reading/failed")
            logger.warning("%r: %s; it is archived, and its links are not followed", row.url, error)
        if kind is not Kind.HTML:
            return response
        with meta["poison"].reading(row):
            return self._judged(request, response, content_type, reading.facts if reading else None, reading)

    def _judged(
        self,
        request: Request,
        response: Response,
        content_type: str | None,
        facts: PageFacts | None,
        reading: Reading | None = None,
    ) -> Response:
        meta, get = request.meta, dict.get  # names in title case, as Scrapy keeps them
        answer = response.headers
        meta["facts"] = facts
        headers = {name: values[0].decode("latin-1") for name, known_as in _WALLS if (values := get(answer, known_as))}
        meta["challenge"] = challenge(response.status, headers, response.body, facts.words if facts else None)
        if facts is None or meta["challenge"] or "rendered" in meta:
            return response
        if reading is not None:
            links, found = reading.links, reading.triage
        else:
            links = len(facts.links)
            whole = looks_whole(facts.words, links + facts.nofollow_links)
            found = PLAIN if whole else triage(response.body, content_type)
        meta["triage"] = found
        lease = lease_in(request)
        if lease is not None:
            self._route(meta, lease, (facts.words, links), found)
        elif found.verdict is not RenderNeed.PLAIN:
            logger.info("triage: %s would be rendered: %s", request.url, found)
        return response

    def _route(self, meta: dict[str, Any], lease: Lease, said: tuple[int, int], found: Triage) -> None:
        renders = self.services[Renders]
        if not lease.is_render and renders.wanted(lease.row.url, lease.row.host, found.verdict):
            meta["to_render"] = said


def facts_of(response: Response, content_type: str | None, token: str) -> PageFacts:
    """What an HTML answer says."""
    return read_html(
        response.body, url=response.url, content_type=content_type, x_robots=_x_robots(response), token=token
    )


def _light_facts_of(response: Response, content_type: str | None, token: str) -> PageFacts | None:
    return read_light_html(
        response.body, url=response.url, content_type=content_type, x_robots=_x_robots(response), token=token
    )


def _x_robots(response: Response) -> list[str]:
    return [value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")]


def _list_kind(lease: Lease, content_type: str | None, body: bytes, suspect: bool) -> Kind | None:
    """How a sitemap or feed is read that takes long; None for a short one, and for what is neither."""
    if not suspect and len(body) <= (_LIGHT_GZIP_BYTES if body.startswith(_GZIP) else _LIGHT_LIST_BYTES):
        return None
    if lease.is_render:
        return None
    if lease.row.flags & FLAG_SITEMAP:
        return Kind.SITEMAP
    return Kind.FEED if is_feed(content_type or "", body) else None
