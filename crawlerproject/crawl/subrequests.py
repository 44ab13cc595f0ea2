"""Sub-requests of pages in the browser as requests of the engine: the same chain, the same archive and log.

The answer goes to the page that waits for it and, as a Page like any other, to our pipelines.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from crawlerproject.errors import FetchError, LeaseOver
from crawlerproject.guard.refusal import Refused
from crawlerproject.items import Page
from crawlerproject.middlewares.leased import lease_in, leased
from crawlerproject.parse.response_page import REDIRECTS, header, page_by_middleware, page_of
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import Base

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from crawlerproject.crawl.scheduler import FrontierScheduler
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.spiders.web import WebSpider

logger = logging.getLogger(__name__)


class SubrequestScheduler:
    """Made for the scheduler, which hands out the leases."""

    def __init__(self, scheduler: FrontierScheduler) -> None:
        self._scheduler = scheduler

    def request(self, lease: Lease, meta: dict[str, Any]) -> Request:
        """The request of a lease that has an ``embed``."""
        embed = lease.embed
        assert embed is not None
        embed.granted()
        meta["download_timeout"] = embed.timeout_seconds
        if embed.proxy:
            meta["proxy"] = embed.proxy
        headers = dict(embed.headers)
        return Request(
            lease.row.url, headers=headers, callback=self.answered, errback=self.failed, dont_filter=True, meta=meta
        )

    async def answered(self, response: Response) -> None:
        """Scrapy's callback: any answer."""
        assert response.request is not None
        exchange = leased(response.request)
        assert exchange is not None
        lease, wire = exchange.lease, exchange.wire
        if wire is None:
            page = page_by_middleware(lease, "a downloader middleware answered")
            _tell(lease, RuntimeError(page.error))
            await self._scheduler.complete(page)
            return
        page = page_of(lease, response, wire)
        if response.status in REDIRECTS:
            target = Base(page.url).join(header(response.headers, b"Location"))
            page.location = target.url if target is not None else ""
        _tell(lease, response)
        await self._scheduler.complete(page)

    async def failed(self, failure: Failure) -> None:
        """Scrapy's errback: no usable answer."""
        lease = lease_in(cast("Any", failure).request)
        assert lease is not None
        error = failure.value
        assert error is not None
        _tell(lease, error)
        page = Page(lease, lease.row.url, Reason.INTERNAL_ERROR, error=str(error))
        if isinstance(error, LeaseOver):
            self._scheduler.put_back(page)
            return
        if isinstance(error, FetchError):
            page.reason, page.wire, page.error = error.reason, error.wire, error.detail or str(error)
        elif isinstance(error, Refused):
            page.reason = error.reason
        elif isinstance(error, IgnoreRequest):
            page.reason = Reason.MIDDLEWARE
        else:
            spider = cast("WebSpider", self._scheduler.crawler.spider)
            logger.error("unexpected failure of %s: %r", page.url, error)
            spider.count_error()
        await self._scheduler.complete(page)


def _tell(lease: Lease, outcome: Any) -> None:
    assert lease.embed is not None
    lease.embed.answered(outcome)
