"""The download handler that a crawl is given: plain requests as before, ``meta["render"]`` through the browser."""

from __future__ import annotations

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
        return await renderer_for(self.crawler).render(request)

    async def close(self) -> None:
        """Scrapy: the crawl ends."""
        renderer = _renderers.get(self.crawler)
        if renderer is not None:
            await renderer.close()
        await super().close()


_renderers: WeakKeyDictionary[Crawler, Renderer] = WeakKeyDictionary()


def renderer_for(crawler: Crawler) -> Renderer:
    """The crawler's one renderer: the handlers for http and https share it."""
    renderer = _renderers.get(crawler)
    if renderer is None:
        # Playwright takes a fifth of a second to import, which a crawl that renders nothing need not spend.
        from crawlerproject.render.renderer import Renderer

        renderer = _renderers[crawler] = Renderer(crawler)
    return renderer
