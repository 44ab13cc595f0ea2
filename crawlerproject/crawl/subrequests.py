"""Answers to the sub-requests of pages in the browser.

An answer goes to the page that waits for it and, as a Page, into the archive and the log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

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

    from crawlerproject.crawl.completion.pipeline import PagePipeline
    from crawlerproject.frontier.lease import Lease

logger = logging.getLogger(__name__)


class SubrequestAnswers:
    """Callback and errback of the leases that have an ``embed``."""

    def __init__(self, pipeline: PagePipeline) -> None:
        self._pipeline = pipeline

    async def answered(self, response: Response) -> None:
        """Scrapy's callback: any answer."""
        assert response.request is not None
        exchange = leased(response.request)
        assert exchange is not None
        lease, wire = exchange.lease, exchange.wire
        if wire is None:
            page = page_by_middleware(lease, "a downloader middleware answered")
            _tell(lease, RuntimeError(page.error))
            await self._pipeline.complete(page)
            return
        page = page_of(lease, response, wire)
        if response.status in REDIRECTS:
            target = Base(page.url).join(header(response.headers, b"Location"))
            page.location = target.url if target is not None else ""
        _tell(lease, response)
        await self._pipeline.complete(page)

    async def on_error(self, failure: Failure) -> None:
        """Scrapy's errback: no usable answer."""
        lease = lease_in(cast("Any", failure).request)
        assert lease is not None
        error = failure.value
        assert error is not None
        _tell(lease, error)
        page = Page(lease, lease.row.url, Reason.INTERNAL_ERROR, error=str(error))
        if isinstance(error, LeaseOver):
            self._pipeline.put_back(page)
            return
        if isinstance(error, FetchError):
            page.reason, page.wire, page.error = error.reason, error.wire, error.detail or str(error)
        elif isinstance(error, Refused):
            page.reason = error.reason
        elif isinstance(error, IgnoreRequest):
            page.reason = Reason.MIDDLEWARE
        else:
            logger.error("unexpected failure of %s: %r", page.url, error)
            self._pipeline.count_error()
        await self._pipeline.complete(page)


def _tell(lease: Lease, outcome: Any) -> None:
    assert lease.embed is not None
    lease.embed.answered(outcome)
