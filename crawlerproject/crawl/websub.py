"""WebSub in a running crawl: feeds that name a hub, requests to hubs, what hubs ask and push."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from scrapy import Request

from crawlerproject.errors import StorageError
from crawlerproject.frontier.learned.subscriptions import Push
from crawlerproject.rules.feeds.websub import HubReply

if TYPE_CHECKING:
    from crawlerproject.crawl.scheduler import FrontierScheduler
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.rules.feeds.feeds import Feed
    from crawlerproject.rules.url.urls import Address

# A hub asks again (WebSub 7: it should retry).
_NOT_NOW = HubReply(503, refused="the crawl pauses or ends")


class WebSub:
    """What the scheduler leaves to WebSub; nothing happens in a crawl that hubs cannot reach."""

    def __init__(self, scheduler: FrontierScheduler) -> None:
        self._scheduler = scheduler
        self._crawl = scheduler.crawl
        self.awaited = False  # the crawl goes on without work

    def feed_met(self, lease: Lease, links: Iterable[str], feed: Feed) -> bool:
        """A feed was read: whether its hub is asked to push."""
        subscriptions = self._crawl.subscriptions
        try:
            return subscriptions is not None and subscriptions.feed_read(lease.row, links, feed, self._crawl.now())
        except StorageError as error:  # it is asked for when the feed is read again
            self._crawl.pause(str(error))
            return False

    def hub_moved(self, lease: Lease, target: Address, hops: str) -> None:
        """A hub redirects our request."""
        subscriptions = self._crawl.subscriptions
        try:
            if subscriptions is not None:
                subscriptions.moved(lease.row, target, hops, self._crawl.now())
        except StorageError as error:  # as above
            self._crawl.pause(str(error))

    def renew(self) -> None:
        """Ask hubs again whose leases are nearly over."""
        subscriptions = self._crawl.subscriptions
        if subscriptions is not None and not self._crawl.paused and subscriptions.renew(self._crawl.now()):
            self._scheduler.wake()

    def request(self, lease: Lease, meta: dict[str, Any]) -> Request:
        """The request of a hub's lease."""
        spider: Any = self._scheduler.crawler.spider
        assert self._crawl.subscriptions is not None  # the gate refuses the row without
        return Request(
            lease.row.url,
            method="POST",
            body=self._crawl.subscriptions.form(lease.row),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            callback=spider.answered,
            errback=spider.on_error,
            dont_filter=True,
            meta=meta,
        )

    def verify(self, token: str, asked: Mapping[str, str]) -> HubReply:
        """A hub's question about a subscription."""
        subscriptions = self._crawl.subscriptions
        if subscriptions is None or self._crawl.closed or self._crawl.paused:
            return _NOT_NOW
        answer = subscriptions.verify(token, asked, self._crawl.now())
        self._scheduler.wake()  # feeds that waited for this hub to prove itself
        return answer

    def expects(self, token: str) -> bool:
        """Whether a push to this callback can be one of ours: what cannot is refused before its body is read."""
        subscriptions = self._crawl.subscriptions
        return subscriptions is not None and subscriptions.expects(token)

    def pushed(self, token: str, body: bytes, content_type: str, signature: str, links: Iterable[str]) -> HubReply:
        """Take in what a hub pushes."""
        subscriptions = self._crawl.subscriptions
        if subscriptions is None or self._crawl.closed or self._crawl.paused:
            return _NOT_NOW
        answer, found, changed = subscriptions.push(
            token, Push(body, content_type, signature, links), self._crawl.now()
        )
        self._scheduler.changed(changed)  # before they are queued: what is new is not known to have changed
        self._scheduler.add(found)
        self._scheduler.wake()
        return answer
