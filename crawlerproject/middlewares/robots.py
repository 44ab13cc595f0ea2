"""Obeys robots.txt for every request that the frontier has not judged: shell, fetch, other spiders.

A leased request was judged by the frontier, by the same rules. The download handler judges again what is sent without
a lease (``middlewares/guard.py``). There is no
switch that turns obedience off, and doubt (5xx, 429, no answer) means no (RFC 9309 2.3.1.4).
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Self, cast
from urllib.parse import urljoin, urlsplit
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.statscollectors import StatsCollector

from crawlerproject.fetch.exchange import exchange_of
from crawlerproject.middlewares.leased import lease_in
from crawlerproject.middlewares.refusal import refused
from crawlerproject.reasons import Reason
from crawlerproject.rules.robots.policy import (
    ALLOW_ALL,
    MAX_REDIRECTS,
    RobotsRules,
    RobotsVerdict,
    parse_robots,
    refusing_line,
    robots_verdict,
    usable_body,
)

# Origins whose rules are kept at hand: a spider outside a crawl meets few.
_KEPT = 10_000
# A robots.txt up to this size is kept as text, to name the rule that refuses (99 % of 4,231 real ones are smaller).
_NAMED_BYTES = 16_384
# Up to this size reading takes a few milliseconds (500 KiB of hostile lines take some 100; measured).
_READ_AT_ONCE_BYTES = 32_768
_REDIRECTS = {301, 302, 303, 307, 308}
_META = {
    "dont_redirect": True,
    "dont_retry": True,
    "dont_cache": True,  # ROBOTS_TTL_SECONDS is how long a copy serves
    "handle_httpstatus_all": True,
}


Download = Callable[[Request], Awaitable[Response]]


class _Known(NamedTuple):
    """``rules`` None: unreachable, every page waits. ``until`` by the clock given."""

    rules: RobotsRules | None
    until: float
    body: bytes = b""  # for naming the rule; of long files nothing is kept
    why: str = ""  # it is unreachable
    error: Exception | None = None  # that it failed with


class RobotsMiddleware:
    """Fetches each origin's robots.txt once per ``ROBOTS_TTL_SECONDS``, through the same chain and pace."""

    def __init__(
        self,
        token: str,
        download: Download,
        stats: StatsCollector | None,
        *,
        ttl_seconds: float = 86_400.0,
        retry_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.token = token
        self.download = download
        self.stats = stats
        self.ttl_seconds = ttl_seconds
        self.retry_seconds = retry_seconds
        self.clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._under_way: dict[str, asyncio.Future[_Known]] = {}
        # The handler's: it must not wait for a fetch that waits for a place in the downloader.
        self._under_way_below: dict[str, asyncio.Future[_Known]] = {}
        self._own: WeakSet[Request] = WeakSet()  # requests for a robots.txt and what it is redirected to

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The crawler's one, which its guard calls as well."""
        from crawlerproject.middlewares.guard import guard_of  # it is made of this

        return cast("Self", guard_of(crawler).robots)

    @classmethod
    def from_settings_of(cls, crawler: Crawler) -> Self:
        """One of its own."""
        settings = crawler.settings

        async def download(request: Request) -> Response:
            assert crawler.engine is not None
            return await crawler.engine.download_async(request)

        return cls(
            settings.get("CRAWLER_NAME") or settings.get("BOT_NAME"),
            download,
            crawler.stats,
            ttl_seconds=settings.getfloat("ROBOTS_TTL_SECONDS", 86_400.0),
            retry_seconds=settings.getfloat("BACKOFF_START_SECONDS", 60.0),
        )

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """Refuse what robots.txt disallows; nothing to do, and no coroutine, for what is judged already."""
        if lease_in(request) is not None or not request.url.startswith(("http://", "https://")):
            return None
        return self.judge(request)

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        """A crawl's large robots.txt is read in a thread; the spider and the frontier then find it read."""
        lease = lease_in(request)
        if lease is None or not lease.is_robots or len(response.body) <= _READ_AT_ONCE_BYTES:
            return response
        return self._read_aside(response)

    async def _read_aside(self, response: Response) -> Response:
        body = usable_body(response.body, response.flags)
        if body is not None and 200 <= response.status < 300:
            await asyncio.to_thread(parse_robots, body, self.token)
        return response

    async def judge(self, request: Request, download: Download | None = None) -> None:
        """Refuse what robots.txt disallows, whatever the request says of itself.

        ``download`` fetches a robots.txt for the handler, below the downloader's queues; without it the engine does.
        """
        parts = urlsplit(request.url)
        if parts.path == "/robots.txt" or request in self._own:
            return
        origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        rules = await self.rules(origin, download, request.headers.get("User-Agent"))
        if rules is None:
            known = self._known[origin]
            detail = f"{origin}/robots.txt: {known.why or 'no answer'}"
            raise refused(self.stats, request, Reason.ROBOTS_UNREACHABLE, detail) from known.error
        if not rules.allowed(request.url):
            raise refused(self.stats, request, Reason.ROBOTS, self._rule(origin, request.url))
        exchange_of(request).floor_seconds = rules.floor_seconds  # for the pace, further down the chain

    def known(self, origin: str) -> RobotsRules | None:
        """The origin's rules when they are known now; asks nobody."""
        known = self._known.get(origin)
        return known.rules if known is not None else None

    def _rule(self, origin: str, url: str) -> str:
        known = self._known.get(origin)
        line = refusing_line(known.body, self.token, url) if known is not None and known.body else ""
        return f"{line} in {origin}/robots.txt" if line else f"{origin}/robots.txt"

    async def rules(
        self, origin: str, download: Download | None = None, agent: bytes | None = None
    ) -> RobotsRules | None:
        """The origin's rules; None while its robots.txt is unreachable. Asked for once, however many wait.

        ``agent`` is the User-Agent of the request in question, where it has its own: robots.txt is asked for under it.
        """
        known = self._known.get(origin)
        if known is not None and self.clock() < known.until:
            self._known.move_to_end(origin)
            return known.rules
        fetches = self._under_way if download is None else self._under_way_below
        under_way = fetches.get(origin)
        if under_way is None:
            under_way = asyncio.ensure_future(self._fetch(origin, download, agent))
            fetches[origin] = under_way
            under_way.add_done_callback(lambda _: fetches.pop(origin, None))
        found = await asyncio.shield(under_way)
        rules = found.rules
        lasts = self.ttl_seconds if rules is not None else self.retry_seconds
        self._known[origin] = found._replace(until=self.clock() + lasts)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return rules

    async def _may_follow(self, origin: str, url: str, download: Download | None) -> bool:
        """Whether the rules of another host let us ask for what a robots.txt is redirected to."""
        parts = urlsplit(url)
        other = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        if parts.path == "/robots.txt" or other == origin:
            return True
        if other in (self._under_way if download is None else self._under_way_below):  # it may be waiting for us
            return False
        rules = await self.rules(other, download)
        return rules is not None and rules.allowed(url)

    async def _fetch(self, origin: str, download: Download | None, agent: bytes | None) -> _Known:
        url = f"{origin}/robots.txt"
        headers = {"User-Agent": agent} if agent else None
        for _ in range(MAX_REDIRECTS + 1):
            request = Request(url, NO_CALLBACK, headers=headers, meta=dict(_META), dont_filter=True)
            self._own.add(request)
            try:
                response = await (download or self.download)(request)
            except Exception as error:  # whatever failed, the rules are unknown, and unknown means no
                return _Known(None, 0.0, why=str(error), error=error.with_traceback(None))
            verdict = robots_verdict(response.status)
            location = response.headers.get("Location")
            if verdict is RobotsVerdict.REDIRECT and location and response.status in _REDIRECTS:
                url = urljoin(url, location.decode("utf-8", "replace"))
                if not url.startswith(("http://", "https://")):
                    return _Known(ALLOW_ALL, 0.0)
                if not await self._may_follow(origin, url, download):
                    return _Known(None, 0.0, why=f"it is redirected to {url}, where robots.txt does not let us ask")
                continue
            if verdict is RobotsVerdict.WAIT:
                return _Known(None, 0.0, why=f"status {response.status}")
            if verdict is not RobotsVerdict.PARSE:
                return _Known(ALLOW_ALL, 0.0)
            body = usable_body(response.body, response.flags)
            if body is None:
                return _Known(None, 0.0, why=f"it cannot be used ({', '.join(response.flags)})")
            large = len(body) > _READ_AT_ONCE_BYTES
            rules = await asyncio.to_thread(parse_robots, body, self.token) if large else parse_robots(body, self.token)
            return _Known(rules, 0.0, body if len(body) <= _NAMED_BYTES else b"")
        return _Known(ALLOW_ALL, 0.0)  # RFC 9309 2.3.1.2: beyond five redirects it counts as unavailable
