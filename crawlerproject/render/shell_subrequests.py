"""Sub-requests of a page that is rendered outside a crawl: ``fetch(rendered(url))`` in the shell, or another spider's.

Each passes the whole middleware chain, so that robots.txt, NeverCrawl and the pace hold for it: five seconds a request
by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from crawlerproject.errors import FetchError
from crawlerproject.guard.refusal import Refused
from crawlerproject.items import Rendered
from crawlerproject.render.shared_cache import SharedCache
from crawlerproject.render.subrequests import PageEmbeds, SubrequestBounds
from crawlerproject.render.visit import Blocked
from crawlerproject.rules.url.urls import Address

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class ShellEmbeds(PageEmbeds):
    """Sends sub-requests through Scrapy's engine, at the pace of their hosts."""

    def __init__(self, crawler: Crawler, host: str, cache: SharedCache, bounds: SubrequestBounds) -> None:
        """``host`` is the key of the page's host."""
        super().__init__(host, cache, bounds)
        self._crawler = crawler

    async def _send(self, address: Address, fields: dict[str, str], rendered: Rendered) -> Response:
        engine = self._crawler.engine
        assert engine is not None
        if rendered.asked >= self._bounds.max_subrequests:
            raise Blocked("too-many")
        rendered.asked += 1
        meta = {"seed": True}  # a file that a page needs has any extension
        request = Request(address.url, headers=dict(fields), callback=NO_CALLBACK, dont_filter=True, meta=meta)
        try:
            return await engine.download_async(request)
        except (FetchError, Refused) as error:
            rendered.asked -= isinstance(error, Refused)
            raise Blocked(str(error.reason)) from error
