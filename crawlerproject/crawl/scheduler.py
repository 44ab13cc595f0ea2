"""Scrapy's SCHEDULER: hands the frontier's leases to the engine at the moment a host is free.

Wakes the engine through public calls only: a timer that gives the next ready request to ``engine.crawl``.
Without it a host that is free in 0.3 s would be asked at the engine's 5 s heartbeat.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.misc import build_from_crawler, load_object

from crawlerproject.config.fleet import answer_seconds
from crawlerproject.crawl.completion.long_pages import MOST_AT_ONCE, LongPages
from crawlerproject.crawl.completion.pipeline import PagePipeline
from crawlerproject.crawl.crawl import Crawl
from crawlerproject.crawl.dns_lookups import DnsLookups
from crawlerproject.crawl.progress.figures import progress
from crawlerproject.crawl.start.bootstrap import queue_revisits, read_messages
from crawlerproject.crawl.start.loader import QueueLoader, stop_for_damage
from crawlerproject.crawl.subrequests import SubrequestScheduler
from crawlerproject.crawl.timer import Timer
from crawlerproject.crawl.websub import WebSub
from crawlerproject.errors import FetchError, FrontierDamaged, StorageError
from crawlerproject.fetch.exchange import META_KEY
from crawlerproject.fleet.ip_reservations import IpReservations
from crawlerproject.frontier.discovered import DiscoveredUrl, seed_found
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.lease import Lease
from crawlerproject.guard.guard import guard_of
from crawlerproject.items import Page
from crawlerproject.middlewares.leased import LeasedExchange, lease_in
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import Address
from crawlerproject.runtime.loop_budget import LoopBudget

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter
    from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)

# Where a project switches them on, Scrapy's middlewares keep from what the frontier sees to.
_NOT_SCRAPYS = {"dont_redirect": True, "dont_retry": True, "dont_cache": True, "handle_httpstatus_all": True}
# What a request of the frontier's carries for Scrapy.
_FOR_SCRAPY = {"verbatim_url": True, "download_slot": "all", **_NOT_SCRAPYS}
# What a request may take beyond its timeout, as the loop's lag.
_HOLD_MARGIN_SECONDS = 5.0


def _disown(request: Request) -> None:
    """Take what a leased request carries from one that has a copy of its meta."""
    if isinstance(request.meta.pop(META_KEY, None), LeasedExchange):
        for name in (*_FOR_SCRAPY, "download_latency"):
            request.meta.pop(name, None)


class FrontierScheduler:
    """The frontier as the engine sees it. Steps aside for the stock scheduler outside a crawl of ours."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.crawl: Crawl
        self.websub: WebSub
        self._embeds = SubrequestScheduler(self)
        self._loader: QueueLoader
        self._lookups: DnsLookups
        self._long: LongPages
        self.completion: PagePipeline
        self._guard = guard_of(crawler)
        self._seen: BaseDupeFilter | None = None  # of requests that are not the frontier's
        self._hot: deque[Request] = deque()  # leased, or another's: handed out as the same object
        self._timer = Timer(self._awake)
        self._budget = LoopBudget()
        self._damaged = False  # the frontier cannot be read: the crawl ends
        self.leases: dict[str, Lease] = {}  # by host: what is on its way now, for those who look on
        self._addresses: IpReservations | None = None  # shared with other workers
        self._max_in_flight = crawler.settings.getint("FRONTIER_MAX_IN_FLIGHT")
        self._patience_seconds = crawler.settings.getfloat("FRONTIER_MAX_REST_SECONDS")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Any:
        """Ours for a crawl with seeds; for ``shell``, ``fetch``, ``parse`` and other spiders Scrapy's own."""
        if not crawler.crawling or getattr(crawler.spider, "seeds", None) is None:
            return Scheduler.from_crawler(crawler)
        return cls(crawler)

    # --- what the engine calls ------------------------------------------------------------------

    def open(self, spider: Spider) -> None:
        """Open the crawl's folder and take up what an earlier run left."""
        self.crawl = Crawl(self.crawler, spider)
        self.websub = WebSub(self)
        self._loader = QueueLoader(self.crawler, self.crawl.frontier, self.wake, self._say_queued)
        self._lookups = DnsLookups(self.crawl, self._looked_up, self.wake)
        self._long = LongPages(self)
        self.completion = PagePipeline(self)
        if self.crawl.fleet is None:
            self._loader.begin()
            read_messages(self.crawl)
        self.open_addresses()

    def _say_queued(self) -> None:
        frontier = self.crawl.frontier
        hosts = sum(host.work for host in frontier.workbench.hosts.values()) + frontier.hosts.counts_on_disk.hosts
        self.crawl.resumed.say_queued(max(0, frontier.hosts.waiting_urls), hosts, self.crawl.totals.now().pages)

    def open_addresses(self) -> None:
        """In a fleet: share IP addresses with the other workers."""
        settings = self.crawler.settings
        if self.crawl.fleet is not None and settings.getbool("PACE_PER_IP"):
            self._addresses = IpReservations(
                self.crawl.fleet,
                hold_seconds=answer_seconds(settings) + _HOLD_MARGIN_SECONDS,
                rest_seconds=settings.getfloat("PACE_IP_SECONDS"),
                granted=self._address_granted,
                refused=self._address_refused,
                failed=lambda error: self.crawl.pause(str(error)),
            )

    def close(self, reason: str) -> Deferred[None]:
        """The last commit; everything is durable and closed afterwards."""
        self._timer.cancel()
        self._loader.cancel()
        self._lookups.cancel()
        if self._addresses is not None:
            self._addresses.close()
        crawl = self.crawl
        crawl.resumed.say_end(crawl.folder, reason, progress(crawl))
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        await self._long.finish()
        async with self.crawl.commits.lock:
            self.crawl.close()

    def has_pending_requests(self) -> bool:
        """Whether the crawl should go on waiting: not when all that is left rests for very long."""
        if self._hot or self._lookups or self.crawl.halted or self.websub.awaited:
            return True
        return not self.idle() if self.crawl.fleet is None else not self.crawl.fleet.done

    def idle(self) -> bool:
        """Whether nothing is under way here, and nothing is left but hosts that rest for very long."""
        frontier = self.crawl.frontier
        if self._hot or self._lookups or self.crawl.halted or frontier.state.leased or frontier.hosts.loading:
            return False
        if frontier.hosts.waiting_urls <= 0:
            return True
        return frontier.only_rests(self.crawl.now(), self._patience_seconds)

    def enqueue_request(self, request: Request) -> bool:
        """Take a leased request back on its way into the engine, or one that some other code made.

        Of the latter a second of the same is dropped, as by Scrapy's own scheduler; it is no lease's, whatever its
        meta says (``meta=response.meta``, a redirect).
        """
        if not self._guard.leased(request):
            _disown(request)
            if not request.dont_filter and self._seen_before(request):
                return False
        self._hot.append(request)
        return True

    def _seen_before(self, request: Request) -> bool:
        if self._seen is None:
            self._seen = build_from_crawler(load_object(self.crawler.settings["DUPEFILTER_CLASS"]), self.crawler)
        return self._seen.request_seen(request)

    def waiting(self) -> set[Request]:
        """Requests that the engine has not taken yet."""
        return set(self._hot)

    def next_request(self) -> Request | None:
        """A request whose host and address are free now; None (and a timer set) when there is none."""
        if self._hot and not self._budget.over():
            return self._hot.popleft()
        if self._hot:
            self._timer.at(0.0, self.crawl.now())
            return None
        request = self._next()
        if request is None:
            self.wake()
        return request

    # --- what the spider and the pipelines call -------------------------------------------------

    def add(self, found: Iterable[DiscoveredUrl]) -> int:
        """Queue the links of one page as one batch; how many were new (in a fleet none yet)."""
        return self._added(found) or 0

    def _added(self, found: Iterable[DiscoveredUrl]) -> int | None:
        """As ``add``; None when the store has no room: the crawl pauses, and they are queued when that is over."""
        if self.crawl.fleet is not None:
            self.crawl.fleet.exchange.outbox.extend(found)
            return 0
        try:
            return self.crawl.frontier.add(found, self.crawl.now())
        except StorageError as error:
            self.crawl.pause(str(error))
            return None

    def add_seeds(self, seeds: Iterable[Address]) -> None:
        """Queue the operator's seeds; known ones are skipped. One that ends as it begins leaves them."""
        if self.crawl.closed:
            return
        self.add([seed_found(address) for address in seeds])
        self.crawl.troubles.refused(self.crawl.frontier.state.refused.take_seeds())
        self.wake()

    def add_revisits(self, budget: int | None) -> int:
        """Queue known pages that are worth another visit; how many."""
        queued = queue_revisits(self.crawl, budget)
        self.wake()
        return queued

    def changed(self, pages: Iterable[tuple[Address, float]]) -> int:
        """Take word that known pages changed at these moments; how many were believed."""
        if self.crawl.fleet is not None:
            return 0  # their records are other workers'
        return self.crawl.announcements.changed(pages, self.crawl.now())

    def repeated(self, page: Page) -> Duplicate | None:
        """What a page that is about to end repeats."""
        return self.crawl.ends.repeated(page)

    def announced(self, pages: Iterable[tuple[Address, float]]) -> None:
        """Take word of a list that known pages changed, and count what is believed."""
        assert self.crawler.stats is not None
        try:
            self.crawler.stats.inc_value("recrawl/announced", self.changed(pages))
        except StorageError as error:  # the list says it again when it is read again
            self.crawl.pause(str(error))

    async def complete(self, page: Page) -> None:
        """A Page is read: our own pipelines compare, archive and end it."""
        await self.completion.complete(page)

    def finish(self, page: Page) -> None:
        """Queue a page's links, archive it and end its lease. Called once for every Page, by the last pipeline.

        A page with very many links ends later, by ``end``.
        """
        if self.crawl.fleet is None and len(page.found) + len(page.changed) > MOST_AT_ONCE:
            self._long.begin(page)
            return
        if page.changed:
            self.announced(page.changed)
        added = self._added(page.found)
        if added is None:
            self._long.hold(page)
            return
        page.new_links = added
        self.end(page)

    def end(self, page: Page) -> None:
        """A page's links are queued: archive it and end its lease."""
        with self.crawl.poison.reading(page.lease.row):
            self.crawl.ends.finish(page)
        self._over(page.lease)

    def put_back(self, page: Page) -> None:
        """End the lease of a page that could not be archived through a fault of ours; it will be tried again."""
        self.crawl.ends.put_back(page)
        self._over(page.lease)

    def quit_leases(self) -> bool:
        """End every lease that nothing was sent for yet; whether none is left, those that were sent for included."""
        self.crawl.ends.forget()
        hot, self._hot = self._hot, deque()
        for request in hot:
            lease = lease_in(request)
            if lease is None:
                self._hot.append(request)
            elif not lease.ended:
                self.crawl.frontier.put_back(lease, self.crawl.now())
                self._over(lease)
        return not (self.crawl.frontier.state.leased or self._lookups)

    def content_signals(self, url: str) -> tuple[str, ...]:
        """What the robots.txt of the URL's origin says to us about the use of its content."""
        return self.crawl.frontier.state.robots.content_signals(url)

    def resume(self) -> None:
        """Go on after a pause."""
        self._long.go_on()
        self._timer.cancel()
        self._awake()

    # --- leases ---------------------------------------------------------------------------------

    def _next(self) -> Request | None:
        frontier = self.crawl.frontier
        while self._room() and not (self.crawl.halted or self._damaged or self._budget.over()):
            try:
                turn = frontier.next(self.crawl.now(), self._budget.over)
            except FrontierDamaged as error:
                self._damaged = True
                stop_for_damage(self.crawler, error)
                return None
            except StorageError as error:
                self.crawl.pause(str(error))
                return None
            if turn is None:
                return None
            if isinstance(turn, Lease):
                if self._addresses is None or turn.is_render:
                    return self._request(turn)
                self._addresses.want(turn)
                continue
            self._lookups.begin(turn.host)
        return None

    def _room(self) -> bool:
        """A page in the browser asks for nothing itself, and must not keep out what it waits for."""
        frontier = self.crawl.frontier
        under_way = frontier.state.leased - frontier.renders.in_flight
        return under_way < self._max_in_flight and self.crawl.limits.room(under_way)

    def _request(self, lease: Lease, error: FetchError | None = None) -> Request:
        request, poison = self._made(lease), self.crawl.poison
        if poison.suspects and poison.is_poison(lease.row.key):
            error = FetchError(Reason.POISON, "the process died while it read the page")
        request.meta[META_KEY] = LeasedExchange(
            ref(request),
            lease.address,
            lease.delay_seconds,
            ask_until=self.crawl.fleet.held.ask_until(lease.row.host) if self.crawl.fleet is not None else None,
            error=error,
            mark=partial(poison.reading, lease.row),
            lease=lease,
        )
        self._guard.lease(request, lease)
        self.completion.expect(lease, request)
        return request

    def _made(self, lease: Lease) -> Request:
        spider: Any = self.crawler.spider
        if not (lease.is_render and lease.host.name in self.leases):
            self.leases[lease.host.name] = lease
        if lease.is_hub:
            return self.websub.request(lease, _FOR_SCRAPY)
        if lease.embed is not None:
            return self._embeds.request(lease, dict(_FOR_SCRAPY))
        headers = self.crawl.learned.revisits.headers(lease.row)
        return Request(
            lease.row.url,
            headers=headers,
            callback=spider.answered,
            errback=spider.on_error,
            dont_filter=True,
            meta=_FOR_SCRAPY,
        )

    def _looked_up(self, lease: Lease, error: FetchError | None) -> None:
        if self._addresses is not None and not lease.is_render:
            self._addresses.want(lease, error)
        else:
            self._hand_over(self._request(lease, error))

    def _address_granted(self, lease: Lease, error: FetchError | None) -> None:
        crawl = self.crawl
        now = crawl.now()
        if crawl.lost or crawl.halted or crawl.fleet is None or not crawl.fleet.held.may_ask(lease.row.host):
            crawl.frontier.defer(lease, now, now)
            self._rest(lease)
            return
        lease.leased_at = now
        self._hand_over(self._request(lease, error))

    def _address_refused(self, lease: Lease, wait_seconds: float) -> None:
        now = self.crawl.now()
        self.crawl.frontier.defer(lease, now, now + wait_seconds)
        self.wake()

    def _over(self, lease: Lease) -> None:
        """A lease has ended. While a page is in the browser its host has others."""
        self.completion.forget(lease)
        if self.leases.get(lease.host.name) is lease:
            del self.leases[lease.host.name]
        self._rest(lease)

    def _rest(self, lease: Lease) -> None:
        if self._addresses is not None:
            self._addresses.rest(lease)

    def _hand_over(self, request: Request) -> None:
        engine = self.crawler.engine
        if engine is None or engine.spider is None or engine.needs_backout():
            self._hot.append(request)  # a request that finishes will ask for it
        else:
            engine.crawl(request)

    # --- the wake-up ----------------------------------------------------------------------------

    def wake(self) -> None:
        """Have the engine woken when the next host is free: work came from elsewhere than the engine."""
        self._timer.at(self.crawl.frontier.wake_at(), self.crawl.now())

    def _awake(self) -> None:
        engine = self.crawler.engine
        if engine is None or engine.spider is None or self.crawl.closed or engine.needs_backout():
            return  # a request that finishes will ask again
        request = self._hot.popleft() if self._hot else self._next()
        if request is not None:
            engine.crawl(request)
        else:
            self.wake()
