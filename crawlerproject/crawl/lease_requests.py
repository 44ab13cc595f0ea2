"""The Scrapy request of a lease: a page, a sub-request of a page in the browser, or a WebSub hub.

The spider has the answers to pages and hubs. An answer to a sub-request goes to the page that waits for it and, like
that to a page, into the archive and the log.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import ref

from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from crawlerproject.errors import FetchError, LeaseOver
from crawlerproject.frontier.hosts.ip_clocks import BEHIND_PROXY
from crawlerproject.guard.guard import Refused
from crawlerproject.items import LeaseResult, RenderFailed
from crawlerproject.reading.outcomes import result_of
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import META_KEY, REDIRECTS, LeasedExchange, lease_in, leased, location
from crawlerproject.rules.url.urls import Base

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from crawlerproject.crawl.intake import LongPages
    from crawlerproject.crawl.session import Session
    from crawlerproject.frontier.passage import Lease
    from crawlerproject.guard.guard import Guard
    from crawlerproject.stores.poison import Poison

logger = logging.getLogger(__name__)

# Where a project switches them on, Scrapy's middlewares keep from what the frontier sees to.
_NOT_SCRAPYS = {"dont_redirect": True, "dont_retry": True, "dont_cache": True, "handle_httpstatus_all": True}
FOR_SCRAPY: dict[str, Any] = {"verbatim_url": True, "download_slot": "all", **_NOT_SCRAPYS}
"""What a request of the frontier's carries for Scrapy."""


class Answered(Protocol):
    """Callback and errback of a lease's request."""

    async def answered(self, response: Any) -> Any:
        """Any answer."""

    async def on_error(self, failure: Any) -> Any:
        """No usable answer."""


class LeaseRequests:
    """Makes one request of each lease, and tells the guard that the frontier has judged it."""

    def __init__(self, session: Session, guard: Guard, poison: Poison, pages: Answered, subrequests: Answered) -> None:
        """``pages`` and ``subrequests`` take the answers to pages and to sub-requests."""
        self._ownership = session.frontier.state.ownership
        self._revisits = session.models.revisits
        self._subscriptions = session.subscriptions
        self._guard = guard
        self._poison = poison
        self._pages = pages
        self._subrequests = subrequests

    def request(self, lease: Lease, error: FetchError | None) -> Request:
        """The request; with an ``error`` it fails for that without being sent."""
        row, subrequest, poison, answers, meta = lease.row, lease.subrequest, self._poison, self._pages, FOR_SCRAPY
        kind = lease.kind
        given: dict[str, Any] = {}
        headers: Any
        if kind.is_hub:
            assert self._subscriptions is not None  # the gate refuses the row without
            given = {"method": "POST", "body": self._subscriptions.form(row)}
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
        elif subrequest is not None:
            subrequest.granted()
            answers, headers = self._subrequests, dict(subrequest.headers)
            meta = {**FOR_SCRAPY, "download_timeout": subrequest.timeout_seconds}
            if subrequest.proxy:
                meta["proxy"] = subrequest.proxy
        else:
            headers = self._revisits.headers(row) if kind.is_recrawl else None
        request = Request(
            row.url,
            headers=headers,
            callback=answers.answered,
            errback=answers.on_error,
            dont_filter=True,
            meta=meta,
            **given,
        )
        if poison.suspects and poison.is_poison(row.key):
            error = FetchError(Reason.POISON, "the process died while it read the page")
        request.meta[META_KEY] = LeasedExchange(
            ref(request),
            lease.address if error is None and not lease.address.startswith(BEHIND_PROXY) else "",
            ask_until=None if self._ownership.sole else self._ownership.ask_until(row.host),
            pause_seconds=lease.delay_seconds,
            error=error,
            mark=partial(poison.reading, row),
            lease=lease,
        )
        self._guard.leases[request] = lease
        return request


def result_of_error(lease: Lease, error: BaseException) -> LeaseResult:
    """The result; its reason is ``INTERNAL_ERROR`` for an error of our own."""
    if isinstance(error, RenderFailed):
        result = LeaseResult.failed(lease, error.reason, error.detail or str(error))
        result.rendered, result.again = error.rendered, error.again
        return result
    if isinstance(error, FetchError) and not lease.kind.is_render:
        return LeaseResult.failed(lease, error.reason, error.detail or str(error), error.wire)
    if isinstance(error, FetchError | Refused):
        result = LeaseResult.failed(lease, error.reason, str(error))
        result.again = error.reason is Reason.OUR_LIMIT
        return result
    # Any other IgnoreRequest is the word of a middleware of the project.
    reason = Reason.MIDDLEWARE if isinstance(error, IgnoreRequest) else Reason.INTERNAL_ERROR
    return LeaseResult.failed(lease, reason, str(error))


class SubrequestAnswers:
    """Callback and errback of the leases that have a ``subrequest``."""

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
            result = LeaseResult.failed(lease, Reason.MIDDLEWARE, "a downloader middleware answered")
            _tell(lease, RuntimeError(result.error))
        else:
            result = result_of(lease, response, wire)
            if response.status in REDIRECTS:
                target = Base(lease.row.url).join(location(response.headers))
                result.location = target.url if target is not None else ""
            _tell(lease, response)
        await self._spider.complete(result)

    async def on_error(self, failure: Failure) -> None:
        """Scrapy's errback: no usable answer."""
        lease, error = lease_in(cast("Any", failure).request), failure.value
        assert lease is not None
        assert error is not None
        _tell(lease, error)
        if isinstance(error, LeaseOver):
            self._ends.requeue(lease)
            return
        result = result_of_error(lease, error)
        if result.reason is Reason.INTERNAL_ERROR:
            logger.error("unexpected failure of %s: %r", lease.row.url, error)
            self._spider.count_error()
        await self._spider.complete(result)


def _tell(lease: Lease, outcome: Any) -> None:
    assert lease.subrequest is not None
    lease.subrequest.answered(outcome)
