"""What enters a running crawl: links, seeds, announcements of changed pages, and what WebSub hubs ask and push.

A page ends when its links are queued; those of very long pages are, in slices that leave half of the event loop's time
to others. Its lease stands until then, so a crash before the last link is queued brings the page back, and no link is
lost.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from scrapy.utils.asyncio import CallLaterResult, call_later

from crawlerproject.crawl.dispatch import InFlight
from crawlerproject.crawl.network_outage import Outage
from crawlerproject.crawl.page_completion import PageCompletion
from crawlerproject.crawl.run import Run
from crawlerproject.crawl.session import Session
from crawlerproject.errors import StorageError
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.learned.revisits import seed_again
from crawlerproject.frontier.learned.subscriptions import Push, RemoteSubscriptions, Subscriptions
from crawlerproject.frontier.passage import DiscoveredUrl, Lease, seed_found
from crawlerproject.items import LeaseResult
from crawlerproject.rules.feeds.feeds import Feed
from crawlerproject.rules.feeds.websub import HubReply
from crawlerproject.rules.url.urls import Address
from crawlerproject.stores.poison import Poison

logger = logging.getLogger(__name__)

# A hub asks again (WebSub 7: it should retry).
NOT_NOW = HubReply(503, refused="the crawl pauses or ends")

MOST_AT_ONCE = 250
"""URLs of one page that are queued in one go, some 5 ms (our choice); a page with more is a long one."""

# A slice is as long as others had the loop since the last one, within these. A request takes several turns of the loop:
# with a slice of 20 ms in each of them, a site lost a third of its pages while pages of invented hosts were taken in.
_SHORT_SLICE_SECONDS, _LONG_SLICE_SECONDS = 0.004, 0.02
# URLs in one change of the store: what takes so long, as far as the page's last change tells. A change costs 80 µs, a
# link 10 µs, one to a new host or against the worst robots.txt 100 µs.
_CHANGE_SECONDS = 0.002
_FEWEST, _FIRST, _MOST = 10, 25, 100


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

    def add(self, found: Iterable[DiscoveredUrl]) -> int:
        """Queue the links of one page as one batch; how many were new (in a fleet none yet)."""
        return self.queue(found) or 0

    def queue(self, found: Iterable[DiscoveredUrl]) -> int | None:
        """Add what was found; None when the store has no room: the crawl pauses, and they are queued after that."""
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
        if known_too and queued < len(seeds) and self._role.keeps_hosts and not self._run.paused:
            visit_again(self._frontier, filter(self._resumed.is_new, seeds), self._run.now())
        self._troubles.refused(self._frontier.state.refused.take_seeds())
        self.wake()

    def changed(self, pages: Iterable[tuple[Address, float]]) -> int:
        """Known pages are announced to have changed at these moments; how many are believed (in a fleet none yet).

        StorageError.
        """
        return self._role.exchange.changed(pages, self._frontier, self._run.now())

    def announced(self, pages: Iterable[tuple[Address, float]]) -> None:
        """Mark pages that a list announces as changed; the crawl pauses where the store has no room."""
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


@dataclass(slots=True)
class _Rest:
    """A page and how many of its links are queued."""

    result: LeaseResult
    changed: int = 0
    found: int = 0
    requisites: int = 0
    at_a_time: int = _FIRST


class LongPages:
    """Ends pages: at once when their links are queued; long pages take turns until theirs are."""

    def __init__(
        self,
        pages: PageCompletion,
        intake: Intake,
        poison: Poison,
        in_flight: InFlight,
        count_error: Callable[[], None],
        outage: Outage | None = None,
    ) -> None:
        """``count_error`` is called after each error of our own; ``outage`` holds what may be our network's."""
        self._pages = pages
        self._intake = intake
        self._poison = poison
        self._in_flight = in_flight
        self._count_error = count_error
        self._outage = outage
        self._line: deque[_Rest] = deque()
        self._timer: CallLaterResult | None = None
        self._left_at = 0.0  # when others got the loop, in seconds of the processor

    def __len__(self) -> int:
        return len(self._line)

    def begin(self, result: LeaseResult) -> None:
        """Queue what the page names from the next turn of the event loop on, then end it."""
        self._line.append(_Rest(result))
        self.go_on()

    def hold(self, result: LeaseResult, links: int | None = None) -> None:
        """End a page once the pause is over: the store has no room for its links, or took these and has none for more.

        What it had no room for is queued by then.
        """
        result.new_links = links or 0
        taken = 0 if links is None else len(result.requisites)
        self._line.append(_Rest(result, len(result.changed), len(result.found), taken))

    def end(self, result: LeaseResult) -> None:
        """A page's links are queued: archive it and end its lease. The page is marked as being read."""
        lease, outage = result.lease, self._outage
        if outage is None or not outage.withholds(result):
            self._pages.finish(result)
        self._in_flight.over(lease)
        if self._poison.suspects and result.wire is not None:
            self._poison.acquit(lease.row.key)

    def requeue(self, lease: Lease) -> None:
        """End a lease whose page could not be completed; it will be tried again."""
        self._pages.requeue(lease)
        self._in_flight.over(lease)

    def fail(self, lease: Lease) -> None:
        """End a lease as ``requeue`` does, and count an error of our own."""
        self.requeue(lease)
        self._count_error()

    def go_on(self) -> None:
        """Continue, when there is something to do and no pause."""
        if self._line and self._timer is None and not self._intake.paused:
            self._left_at = time.thread_time()
            others = len(self._in_flight.by_host) > len(self._line)
            self._timer = call_later(_SHORT_SLICE_SECONDS if others else 0, self._turn)

    async def finish(self) -> None:
        """Before the last commit, end all of them; those that cannot end stay queued."""
        if self._timer is not None:
            self._timer.cancel()
        while self._line and not self._intake.paused:
            self._slice(_LONG_SLICE_SECONDS)
            await asyncio.sleep(0)
        while self._line:
            self.requeue(self._line.popleft().result.lease)

    def _turn(self) -> None:
        self._timer = None
        of_others = time.thread_time() - self._left_at
        self._slice(min(max(of_others, _SHORT_SLICE_SECONDS), _LONG_SLICE_SECONDS))
        self._intake.wake()
        self.go_on()

    def _slice(self, seconds: float) -> None:
        until, intake = time.monotonic() + seconds, self._intake
        while self._line and not intake.paused and time.monotonic() < until:
            rest = self._line.popleft()
            try:
                self._take_some(rest)
            except Exception:  # our own error: as for any page whose completion fails
                logger.exception("could not take in what %s names", rest.result.lease.row.url)
                self.fail(rest.result.lease)

    def _take_some(self, rest: _Rest) -> None:
        """Queue some of one page; the next page follows."""
        result, intake, count, began = rest.result, self._intake, rest.at_a_time, time.monotonic()
        if rest.changed < len(result.changed):
            intake.announced(result.changed[rest.changed : rest.changed + count])
            rest.changed += count
        elif rest.found < len(result.found):
            result.new_links += intake.add(result.found[rest.found : rest.found + count])
            rest.found += count
        elif rest.requisites < len(result.requisites):
            intake.add(result.requisites[rest.requisites : rest.requisites + count])
            rest.requisites += count
        else:
            with self._poison.reading(result.lease.row):
                self.end(result)
            return
        as_quick = count * _CHANGE_SECONDS / max(time.monotonic() - began, 1e-6)
        rest.at_a_time = int(min(max(as_quick, _FEWEST), _MOST))
        self._line.append(rest)
