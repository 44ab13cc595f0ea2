"""The download handler that a crawl is given: plain requests as before, ``meta["render"]`` through the browser."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.http import Response

from crawlerproject.fetch.handler import CrawlerDownloadHandler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawlerproject.render.renderer import Renderer


class RenderingDownloadHandler(CrawlerDownloadHandler):
    """Reads ``meta["render"]`` and sets ``meta["rendered"]``; everything else is its parent's."""

    async def download_request(self, request: Request) -> Response:
        """Scrapy: fetch or render one request."""
        if not request.meta.get("render"):
            return await super().download_request(request)
        return await (await renderer_for(self.crawler)).render(request)

    async def close(self) -> None:
        """Scrapy: the crawl ends."""
        renderer = _renderers.get(self.crawler)
        if renderer is not None:
            await renderer.close()
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
