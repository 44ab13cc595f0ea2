"""Obeys robots.txt for every request that the frontier has not judged: shell, fetch, other spiders.

There is no switch that turns obedience off, and doubt (5xx, 429, no answer) means no (RFC 9309 2.3.1.4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple, Self
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.statscollectors import StatsCollector

from crawlerproject.config.values import documents_asked, obeyed_for
from crawlerproject.frontier.robots_cache import RobotsCache
from crawlerproject.guard.guard import refused
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import REDIRECTS, location
from crawlerproject.rules.consent.verdict import Source
from crawlerproject.rules.rendering.thin_pages import robots_wall
from crawlerproject.rules.robots.policy import (
    MAX_REDIRECTS,
    RobotsRecord,
    RobotsRules,
    RobotsVerdict,
    parse_robots,
    refusing_line,
    robots_verdict,
    usable_body,
    wall_answered,
)
from crawlerproject.runtime.clock import steady
from crawlerproject.runtime.lru import LruCache, WeighedCache

# Origins whose robots.txt is kept, and their octets together: a spider outside a crawl meets few.
_KEPT = 10_000
_KEPT_BYTES = 64 * 1024**2
# Licences of other hosts: many sites name the same one.
_LICENSES_KEPT = 100
_NOT_FOUND = 404  # what a licence counts as that may not be asked for
# A robots.txt up to this size is read again to name the rule that refuses (99 % of 4,231 real ones are smaller).
_NAMED_BYTES = 16_384
# Up to this size reading takes a few milliseconds (500 KiB of hostile lines take some 100; measured).
_READ_AT_ONCE_BYTES = 32_768
# Header fields that a robots.txt has of the request for which it is asked for. Scrapy's HttpProxyMiddleware puts
# a proxy's password into the second.
_OF_ASKER = ("User-Agent", "Proxy-Authorization")

Download = Callable[[Request], Awaitable["Response"]]


class _Answer(NamedTuple):
    """What came of asking for a robots.txt; ``status`` None: nothing that can be used."""

    status: int | None
    body: bytes = b""
    why: str = ""  # it cannot be used
    error: Exception | None = None  # that the download failed with


class _Origin(NamedTuple):
    usable: bool  # False: every page waits
    until: float  # epoch seconds; then it is asked for again
    answer: _Answer


class _Copies(WeighedCache[str, bytes]):
    """The robots.txt files that a crawl would have in its store, within a bound of memory."""

    def robots(self, origin: str) -> bytes | None:
        """The packed record of the origin."""
        return self.get(origin)


class RobotsGuard:
    """Has each origin's robots.txt fetched once per ``ROBOTS_TTL_SECONDS``, at its host's pace."""

    def __init__(
        self,
        token: str,
        stats: StatsCollector | None,
        *,
        ttl_seconds: float,
        retry_seconds: float,
        clock: Callable[[], float] = steady,
        obeyed_for: str = "",
        asks: Collection[Source] = (),
    ) -> None:
        self.token = token
        self.stats = stats
        self.retry_seconds = retry_seconds  # until one that cannot be reached is asked for again
        self.clock = clock
        self._copies = _Copies(_KEPT, _KEPT_BYTES, len)
        self._cache = RobotsCache(self._copies, token, ttl_seconds, obeyed_for=obeyed_for, asks=asks)
        self._origins: LruCache[str, _Origin] = LruCache(_KEPT)
        self._licenses: LruCache[str, tuple[float, asyncio.Future[_Answer]]] = LruCache(
            _LICENSES_KEPT
        )  # of others, and until when
        self._waits_for: dict[str, str] = {}  # the origin whose rules another one's document needs
        self._under_way: dict[str, asyncio.Future[_Origin]] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """By the ROBOTS_* settings."""
        settings = crawler.settings
        return cls(
            settings.get("CRAWLER_NAME") or settings.get("BOT_NAME"),
            crawler.stats,
            ttl_seconds=settings.getfloat("ROBOTS_TTL_SECONDS"),
            retry_seconds=settings.getfloat("BACKOFF_START_SECONDS"),
            obeyed_for=obeyed_for(settings),
            asks=documents_asked(settings) if obeyed_for(settings) else (),
        )

    async def judge(self, request: Request, download: Download) -> float:
        """Refuse what robots.txt disallows; the pause that it asks for, in seconds. Raises ``Refused``.

        ``download`` fetches a robots.txt below the downloader, whose places the requests that wait for it may have.
        """
        if urlsplit(request.url).path == "/robots.txt":
            return 0.0
        origin = _origin_of(request.url)
        known = await self._known(origin, download, request)
        if not known.usable:
            detail = f"{origin}/robots.txt: {known.answer.why or 'no answer'}"
            raise refused(self.stats, request, Reason.ROBOTS_UNREACHABLE, detail) from known.answer.error
        rules = self._cache.rules(origin)
        refusal = self._cache.refusal(request.url, rules)
        if refusal is Reason.ROBOTS:
            self._count("forbidden")
            packed = self._copies.robots(origin)
            small = packed is not None and len(packed) <= _NAMED_BYTES
            line = refusing_line(RobotsRecord.unpack(packed).body, self.token, request.url) if packed and small else ""
            where = f"{line} in {origin}/robots.txt" if line else f"{origin}/robots.txt"
            raise refused(self.stats, request, Reason.ROBOTS, where)
        if refusal is not None:
            raise refused(self.stats, request, refusal, f"{origin}/robots.txt")
        return rules.floor_seconds

    def rules(self, origin: str) -> RobotsRules | None:
        """The origin's rules as they are known now; None when they are not."""
        known = self._origins.get(origin)
        return self._cache.rules(origin) if known is not None and known.usable else None

    async def read_aside(self, response: Response) -> None:
        """Read a large robots.txt in a thread: the parser's cache then has it for the spider and the frontier."""
        if len(response.body) <= _READ_AT_ONCE_BYTES or not 200 <= response.status < 300:
            return
        body = usable_body(response.body, response.flags)
        if body is not None:
            await asyncio.to_thread(parse_robots, body, self.token)

    async def _known(self, origin: str, download: Download, asks: Request) -> _Origin:
        """What is known of the origin, asked for first if need be: once, however many requests wait.

        robots.txt is asked for as ``asks`` is: under its User-Agent, through its proxy.
        """
        known = self._origins.get(origin)
        if known is not None and self.clock() < known.until and not (known.usable and not self._copies.robots(origin)):
            return known
        under_way = self._under_way.get(origin)
        if under_way is None:
            under_way = self._under_way[origin] = asyncio.ensure_future(self._ask(origin, download, asks))
            under_way.add_done_callback(lambda _: self._under_way.pop(origin, None))
        return await asyncio.shield(under_way)

    async def _ask(self, origin: str, download: Download, asks: Request) -> _Origin:
        number, url = 0, f"{origin}/robots.txt"
        while True:
            answer = await (self._document if number else self._fetch)(origin, url, download, asks)
            self._count("request_count")
            if answer.error is not None:
                self._count(f"exception_count/{type(answer.error)}")
            now = self.clock()
            if number:
                outcome = self._cache.document_answered(origin, number, answer.status, answer.body, now)
            else:
                outcome = self._cache.answered(origin, answer.status, answer.body, Reason.FETCHED, now)
            if outcome.record is not None:
                self._copies[origin] = outcome.record
                self._cache.stored(origin, outcome.record)
            number, url = self._cache.next_document(origin, now)
            if not outcome.usable or not number:
                break
        until = outcome.good_until if outcome.usable else now + self.retry_seconds
        known = self._origins[origin] = _Origin(outcome.usable, until, answer._replace(body=b""))
        return known

    async def _document(self, origin: str, url: str, download: Download, asks: Request) -> _Answer:
        """A document beside robots.txt; that of another host is asked for as its rules let us, once for all."""
        if _origin_of(url) == origin:
            return await self._fetch(origin, url, download, asks)
        if not await self._may_follow(origin, url, download, asks):
            return _Answer(_NOT_FOUND)
        until, fetched = self._licenses.get(url) or (0.0, None)
        if fetched is None or self.clock() >= until:
            fetched = asyncio.ensure_future(self._fetch(origin, url, download, asks))
            self._licenses[url] = self.clock() + self._cache.ttl_seconds, fetched
        answer = await asyncio.shield(fetched)
        if robots_verdict(answer.status) is RobotsVerdict.WAIT:
            self._licenses[url] = 0.0, fetched  # no answer: it is asked for again
        return answer

    async def _fetch(self, origin: str, url: str, download: Download, asks: Request) -> _Answer:
        """The answer at the end of the redirects; beyond five a robots.txt is unavailable (RFC 9309 2.3.1.2)."""
        given = asks.headers
        headers = {name: given[name] for name in _OF_ASKER if name in given}
        meta = {"proxy": asks.meta["proxy"]} if "proxy" in asks.meta else None
        for _ in range(MAX_REDIRECTS + 1):
            try:
                response = await download(Request(url, NO_CALLBACK, headers=headers, meta=meta))
            except Exception as error:  # whatever failed, the rules are unknown, and unknown means no
                return _Answer(None, why=str(error), error=error.with_traceback(None))
            named = location(response.headers) if response.status in REDIRECTS else ""
            if not named:
                self._count("response_count")
                self._count(f"response_status_count/{response.status}")
                headers = response.headers
                if wall := robots_wall(response.status, dict(dict.items(headers)), response.body, url).vendor:
                    return _Answer(None, why=wall_answered(wall))
                if not 200 <= response.status < 300:
                    return _Answer(response.status, why=f"status {response.status}")
                body = usable_body(response.body, response.flags)
                if body is None:
                    return _Answer(None, why=f"it cannot be used ({', '.join(response.flags)})")
                await self.read_aside(response)
                return _Answer(response.status, body)
            url = urljoin(url, named)
            if not url.startswith(("http://", "https://")):
                break
            if not await self._may_follow(origin, url, download, asks):
                return _Answer(None, why=f"it is redirected to {url}, where robots.txt does not let us ask")
        return _Answer(response.status)

    def _count(self, what: str) -> None:
        """Under the keys of Scrapy's RobotsTxtMiddleware."""
        if self.stats is not None:
            self.stats.inc_value(f"robotstxt/{what}")

    async def _may_follow(self, origin: str, url: str, download: Download, asks: Request) -> bool:
        """Whether the rules of another host let us ask for what a robots.txt is redirected to."""
        other = _origin_of(url)
        if urlsplit(url).path == "/robots.txt" or other == origin:
            return True
        at: str | None = other
        while at is not None:
            if at == origin:  # it waits for us
                return False
            at = self._waits_for.get(at)
        self._waits_for[origin] = other
        try:
            known = await self._known(other, download, asks)
        finally:
            del self._waits_for[origin]
        return known.usable and self._cache.rules(other).allowed(url)


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
