"""The Scrapy request of a lease: a page, a sub-request of a page in the browser, or a WebSub hub."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

from scrapy import Request

from crawlerproject.errors import FetchError
from crawlerproject.fetch.exchange import META_KEY
from crawlerproject.frontier.hosts.ip_clocks import BEHIND_PROXY
from crawlerproject.middlewares.leased import LeasedExchange
from crawlerproject.reasons import Reason

if TYPE_CHECKING:
    from crawlerproject.crawl.session import Session
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.guard.guard import Guard
    from crawlerproject.stores.poison import Poison

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

    def __init__(self, session: Session, guard: Guard, poison: Poison, pages: Answered, embeds: Answered) -> None:
        """``pages`` and ``embeds`` take the answers to pages and to sub-requests."""
        self._role = session.role
        self._revisits = session.models.revisits
        self._subscriptions = session.subscriptions
        self._guard = guard
        self._poison = poison
        self._pages = pages
        self._embeds = embeds

    def request(self, lease: Lease, error: FetchError | None) -> Request:
        """The request; with an ``error`` it fails for that without being sent."""
        request, poison, host = self._made(lease), self._poison, lease.row.host
        if poison.suspects and poison.is_poison(lease.row.key):
            error = FetchError(Reason.POISON, "the process died while it read the page")
        request.meta[META_KEY] = LeasedExchange(
            ref(request),
            lease.address if error is None and not lease.address.startswith(BEHIND_PROXY) else "",
            ask_until=self._role.ask_until(host),
            pause_seconds=lease.delay_seconds,
            error=error,
            mark=partial(poison.reading, lease.row),
            lease=lease,
        )
        self._guard.lease(request, lease)
        return request

    def _made(self, lease: Lease) -> Request:
        if lease.row.kind.is_hub:
            return self._of_hub(lease)
        if lease.embed is not None:
            return self._of_embed(lease)
        return Request(
            lease.row.url,
            headers=self._revisits.headers(lease.row),
            callback=self._pages.answered,
            errback=self._pages.on_error,
            dont_filter=True,
            meta=FOR_SCRAPY,
        )

    def _of_hub(self, lease: Lease) -> Request:
        assert self._subscriptions is not None  # the gate refuses the row without
        return Request(
            lease.row.url,
            method="POST",
            body=self._subscriptions.form(lease.row),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            callback=self._pages.answered,
            errback=self._pages.on_error,
            dont_filter=True,
            meta=FOR_SCRAPY,
        )

    def _of_embed(self, lease: Lease) -> Request:
        embed = lease.embed
        assert embed is not None
        embed.granted()
        meta = {**FOR_SCRAPY, "download_timeout": embed.timeout_seconds}
        if embed.proxy:
            meta["proxy"] = embed.proxy
        return Request(
            lease.row.url,
            headers=dict(embed.headers),
            callback=self._embeds.answered,
            errback=self._embeds.on_error,
            dont_filter=True,
            meta=meta,
        )
