"""What enters a running crawl: links, seeds, announcements of changed pages, and what WebSub hubs ask and push."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from crawlerproject.errors import StorageError
from crawlerproject.frontier.learned.revisits import seed_again
from crawlerproject.frontier.learned.subscriptions import Push, RemoteSubscriptions, Subscriptions
from crawlerproject.frontier.passage import DiscoveredUrl, seed_found
from crawlerproject.rules.feeds.websub import HubReply

if TYPE_CHECKING:
    from crawlerproject.crawl.run import Run
    from crawlerproject.crawl.session import Session
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.passage import Lease
    from crawlerproject.rules.feeds.feeds import Feed
    from crawlerproject.rules.url.urls import Address

# A hub asks again (WebSub 7: it should retry).
NOT_NOW = HubReply(503, refused="the crawl pauses or ends")


def visit_again(frontier: Frontier, seeds: Iterable[Address], now: float) -> int:
    """Queue pages that are known once more, since the operator names them as seeds; how many. StorageError.

    In a fleet over Redis those of other workers' hosts are not found here.
    """
    store = frontier.state.store
    known = [(seed, record) for seed in seeds if (record := store.page(seed.key, seed.host)) is not None]
    return frontier.admission.again([seed_again(seed, record, now) for seed, record in known], now)


class Intake:
    """Queues what the spider, the pages and the hubs name. The crawl pauses when the store has no room."""

    def __init__(self, session: Session, run: Run, wake: Callable[[], None]) -> None:
        """``wake``: there may be work."""
        self._role = session.role
        self._frontier = session.frontier
        self._troubles = session.reporter
        self._resumed = session.resumed
        self._run = run
        self.wake = wake

    @property
    def paused(self) -> str:
        """Why the store takes nothing; "" while it does."""
        return self._run.paused

    @property
    def waits_for_store(self) -> bool:
        """Whether to queue a URL takes time, since its host and its key are looked up at once."""
        return self._role.own_frontier

    def add(self, found: Iterable[DiscoveredUrl]) -> int:
        """Queue the links of one page as one batch; how many were new (in a fleet none yet)."""
        return self.queue(found) or 0

    def queue(self, found: Iterable[DiscoveredUrl]) -> int | None:
        """As ``add``; None when the store has no room: the crawl pauses, and they are queued when that is over."""
        try:
            return self._role.exchange.take(found, self._frontier, self._run.now())
        except StorageError as error:
            self._run.pause(str(error))
            return None

    def add_seeds(self, seeds: Sequence[Address], *, known_too: bool = False) -> None:
        """Queue the operator's seeds; ``known_too``: those that no earlier start had also when their pages are known.

        A crawl that ends as it begins ignores them.
        """
        if self._run.closed:
            return
        queued = self.add([seed_found(address) for address in seeds])
        if known_too and queued < len(seeds) and self._role.own_frontier and not self._run.paused:
            visit_again(self._frontier, filter(self._resumed.is_new, seeds), self._run.now())
        self._troubles.refused(self._frontier.state.refused.take_seeds())
        self.wake()

    def changed(self, pages: Iterable[tuple[Address, float]]) -> int:
        """Known pages are announced to have changed at these moments; how many are believed (in a fleet none yet).

        StorageError.
        """
        return self._role.exchange.changed(pages, self._frontier, self._run.now())

    def announced(self, pages: Iterable[tuple[Address, float]]) -> None:
        """As ``changed``, announced by a list: a pause where the store has no room."""
        try:
            self.changed(pages)
        except StorageError as error:  # repeated when the list is read again
            self._run.pause(str(error))


class WebSub:
    """The crawl's subscriptions; nothing happens in a crawl that hubs cannot reach."""

    def __init__(self, subscriptions: RemoteSubscriptions | None, intake: Intake, run: Run) -> None:
        self._subscriptions = subscriptions
        # Of one that hubs do not reach, another worker listens.
        self._listening = subscriptions if isinstance(subscriptions, Subscriptions) else None
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
