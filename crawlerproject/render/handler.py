"""The download handler of a crawl: the last guard, plain requests, ``meta["render"]`` through the browser."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.http import Response

from crawlerproject.fetch.exchange import META_KEY, exchange_of
from crawlerproject.fetch.handler import CrawlerDownloadHandler
from crawlerproject.guard.guard import Guard, guard_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawlerproject.frontier.lease import Lease
    from crawlerproject.render.renderer import Renderer

# What the answer's meta tells a spider; the rest is in the exchange.
_TOLD = ("download_latency", "rendered")


class RenderingDownloadHandler(CrawlerDownloadHandler):
    """Lets through what the frontier leased or the guard allows, at its pace; reads ``meta["render"]``.

    Everything else is its parent's. Raises ``Refused`` besides.
    """

    _guard: Guard | None = None

    async def download_request(self, request: Request) -> Response:
        """Scrapy: fetch or render one request."""
        guard = self._guard
        if guard is None:
            guard = self._guard = guard_of(self.crawler)
            guard.pace.begin(crawls=guard.leased(request))
        lease = guard.lease_of(request)
        if lease is None:
            return await self._by_itself(guard, request)
        guard.check(request, lease)
        if lease.row.kind.is_render:  # the browser asks for nothing itself: what the page loads comes here one by one
            return await (await renderer_for(self.crawler)).render(request)
        response = await self._paced(guard, request, lease)
        if lease.row.kind.is_robots:
            await guard.robots.read_aside(response)
        return response

    async def _by_itself(self, guard: Guard, request: Request) -> Response:
        """What the frontier knows nothing of: from the shell, other spiders, redirects, a spider of ours itself."""
        floor_seconds = await guard.judge(request, self._robots)
        exchange = exchange_of(request)
        plain = request.replace(meta={name: value for name, value in request.meta.items() if name != META_KEY})
        own = exchange_of(plain)
        try:
            if plain.meta.get("render"):
                return await (await renderer_for(self.crawler)).render(plain)
            return await self._paced(guard, plain, None, floor_seconds)
        finally:
            exchange.wire = own.wire
            request.meta.update({name: plain.meta[name] for name in _TOLD if name in plain.meta})

    async def _robots(self, request: Request) -> Response:
        """A robots.txt for the guard: below the downloader, whose places the one that waits may have."""
        guard = guard_of(self.crawler)
        guard.check(request)
        return await self._paced(guard, request, None)

    async def _paced(self, guard: Guard, request: Request, lease: Lease | None, floor_seconds: float = 0.0) -> Response:
        waits = guard.pace.enter(request, lease, floor_seconds)
        if waits is not None:
            await waits
        response: Response | None = None
        try:
            response = await super().download_request(request)
            return response
        finally:
            guard.pace.leave(request, response)

    async def close(self) -> None:
        """Scrapy: the crawl ends."""
        renderer = _renderers.get(self.crawler)
        if renderer is not None:
            await renderer.close()
        if self._guard is not None:
            self._guard.pace.close()
        await super().close()


_renderers: WeakKeyDictionary[Crawler, Renderer] = WeakKeyDictionary()


async def renderer_for(crawler: Crawler) -> Renderer:
    """The crawler's one renderer: the handlers for http and https share it."""
    if crawler not in _renderers:
        # Playwright takes half a second to import, which a crawl that renders nothing need not spend, and the event
        # loop never.
        module = await asyncio.to_thread(import_module, "crawlerproject.render.renderer")
        if crawler not in _renderers:
            _renderers[crawler] = module.Renderer(crawler)
    return _renderers[crawler]
