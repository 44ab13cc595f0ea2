"""WebSub in a running crawl: feeds that name a hub, what hubs ask and push."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from crawlerproject.errors import StorageError
from crawlerproject.frontier.learned.subscriptions import Push, RemoteSubscriptions
from crawlerproject.rules.feeds.websub import HubReply

if TYPE_CHECKING:
    from crawlerproject.crawl.intake import Intake
    from crawlerproject.crawl.run import Run
    from crawlerproject.frontier.learned.subscriptions import Subscriptions
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.rules.feeds.feeds import Feed
    from crawlerproject.rules.url.urls import Address

# A hub asks again (WebSub 7: it should retry).
NOT_NOW = HubReply(503, refused="the crawl pauses or ends")


class WebSub:
    """The crawl's subscriptions; nothing happens in a crawl that hubs cannot reach."""

    def __init__(self, subscriptions: Subscriptions | RemoteSubscriptions | None, intake: Intake, run: Run) -> None:
        self._subscriptions = subscriptions
        # Of one that hubs do not reach, another worker listens.
        self._listening = None if isinstance(subscriptions, RemoteSubscriptions) else subscriptions
        self._intake = intake
        self._run = run

    @property
    def reachable(self) -> bool:
        """Whether hubs can reach this process."""
        return self._listening is not None

    @property
    def awaited(self) -> bool:
        """Whether the crawl goes on without work, since hubs may push."""
        return self._run.awaits_pushes and self.reachable

    def await_pushes(self) -> None:
        """The listener for hubs is up."""
        self._run.awaits_pushes = True

    def feed_met(self, lease: Lease, links: Iterable[str], feed: Feed) -> bool:
        """A feed was read: whether its hub is asked to push."""
        try:
            return self._subscriptions is not None and self._subscriptions.feed_read(
                lease.row, links, feed, self._run.now()
            )
        except StorageError as error:  # it is asked for when the feed is read again
            self._run.pause(str(error))
            return False

    def hub_moved(self, lease: Lease, target: Address, hops: str) -> None:
        """A hub redirects the subscription request."""
        try:
            if self._subscriptions is not None:
                self._subscriptions.moved(lease.row, target, hops, self._run.now())
        except StorageError as error:  # as above
            self._run.pause(str(error))

    def renew(self) -> None:
        """Renew subscriptions that are about to expire."""
        if self._listening is not None and not self._run.paused and self._listening.renew(self._run.now()):
            self._intake.wake()

    def verify(self, token: str, asked: Mapping[str, str]) -> HubReply:
        """Answer a hub that verifies a subscription."""
        if self._listening is None or self._run.closed or self._run.paused:
            return NOT_NOW
        answer = self._listening.verify(token, asked, self._run.now())
        self._intake.wake()  # feeds that waited for the hub's first verification
        return answer

    def expects(self, token: str) -> bool:
        """Whether a subscription has this callback; a push to any other is refused before its body is read."""
        return self._listening is not None and self._listening.expects(token)

    def pushed(self, token: str, body: bytes, content_type: str, signature: str, links: Iterable[str]) -> HubReply:
        """Take in what a hub pushes."""
        subscriptions = self._listening
        if subscriptions is None or self._run.closed or self._run.paused:
            return NOT_NOW
        answer, found, changed = subscriptions.push(token, Push(body, content_type, signature, links), self._run.now())
        try:
            self._intake.changed(changed)  # before they are queued: what is new is not known to have changed
        except StorageError as error:
            self._run.pause(str(error))
            return NOT_NOW
        if self._intake.queue(found) is None:
            return NOT_NOW
        self._intake.wake()
        return answer
