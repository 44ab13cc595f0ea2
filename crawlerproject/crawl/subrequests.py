"""The answers to sub-requests of pages in the browser, which passed the same chain as any request of the engine's.

An answer goes to the page that waits for it and, like that to a page, into the archive and the log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from crawlerproject.crawl.completion.failures import outcome_of_error
from crawlerproject.errors import LeaseOver
from crawlerproject.items import LeaseResult, Outcome, failed
from crawlerproject.middlewares.leased import lease_in, leased
from crawlerproject.parse.response_page import REDIRECTS, header, page_of
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import Base

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from crawlerproject.crawl.completion.long_pages import LongPages
    from crawlerproject.frontier.lease import Lease

logger = logging.getLogger(__name__)


class SubrequestAnswers:
    """Callback and errback of the leases that have an ``embed``."""

    def __init__(self, spider: Any, ends: LongPages) -> None:
        self._spider = spider
        self._ends = ends

    async def answered(self, response: Response) -> None:
        """Scrapy's callback: any answer."""
        assert response.request is not None
        exchange = leased(response.request)
        assert exchange is not None
        lease, wire = exchange.lease, exchange.wire
        if wire is None:
            outcome: Outcome = failed(lease, Reason.MIDDLEWARE, "a downloader middleware answered")
            _tell(lease, RuntimeError(outcome.error))
        else:
            outcome = page_of(response, wire)
            if response.status in REDIRECTS:
                target = Base(lease.row.url).join(header(response.headers, b"Location"))
                outcome = outcome._replace(location=target.url if target is not None else "")
            _tell(lease, response)
        await self._spider.complete(LeaseResult.of(lease, outcome))

    async def on_error(self, failure: Failure) -> None:
        """Scrapy's errback: no usable answer."""
        lease, error = lease_in(cast("Any", failure).request), failure.value
        assert lease is not None
        assert error is not None
        _tell(lease, error)
        if isinstance(error, LeaseOver):
            self._ends.requeue(lease)
            return
        outcome = outcome_of_error(lease, error)
        if outcome.reason is Reason.INTERNAL_ERROR:
            logger.error("unexpected failure of %s: %r", lease.row.url, error)
            self._spider.count_error()
        await self._spider.complete(LeaseResult.of(lease, outcome))


def _tell(lease: Lease, outcome: Any) -> None:
    assert lease.embed is not None
    lease.embed.answered(outcome)
