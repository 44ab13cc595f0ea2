"""Scrapy's SCHEDULER: hands the frontier's leases to the engine at the moment a host is free."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.exceptions import CloseSpider
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet.defer import Deferred

from crawlerproject.config.crawl_kind import is_of_frontier
from crawlerproject.crawl.dispatch import Fetches, InFlight, LeaseDispatch
from crawlerproject.crawl.engine import Engine, FastPath
from crawlerproject.crawl.intake import Intake, LongPages, WebSub
from crawlerproject.crawl.lease_requests import FOR_SCRAPY, LeaseRequests, SubrequestAnswers
from crawlerproject.crawl.network_outage import Outage
from crawlerproject.crawl.running_crawl import Crawl
from crawlerproject.crawl.start.bootstrap import QueueLoader, queue_revisits, read_messages, read_unread
from crawlerproject.errors import NOTHING_FETCHED
from crawlerproject.fetch.download_handler import Proxies, pool_for, unread_answers_of
from crawlerproject.fetch.resolver import resolver_for
from crawlerproject.frontier.assembly import revisit_policy
from crawlerproject.guard.guard import guard_of
from crawlerproject.items import LeaseResult
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import META_KEY, LeasedExchange
from crawlerproject.rules.politeness.whose_failure import MAX_WAIT_SECONDS
from crawlerproject.runtime.loop_budget import LoopBudget
from crawlerproject.runtime.services import services_of


def _disown(request: Request) -> None:
    """Take what a leased request carries from one that has a copy of its meta."""
    if isinstance(request.meta.pop(META_KEY, None), LeasedExchange):
        for name in (*FOR_SCRAPY, "download_latency"):
            request.meta.pop(name, None)


class FrontierScheduler:
    """The frontier as the engine sees it. Other spiders and the shell get Scrapy's own scheduler."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.crawl: Crawl
        self.in_flight: InFlight
        self.long: LongPages
        self.websub: WebSub
        self._dispatch: LeaseDispatch
        self._engine: Engine
        self._loader: QueueLoader
        self._fast: FastPath | None = None
        self._seen: BaseDupeFilter | None = None
        self._others: deque[Request] = deque()  # requests that are not the frontier's, handed out as the same objects
        self._budget = LoopBudget()
        self._patience_seconds = crawler.settings.getfloat("FRONTIER_MAX_REST_SECONDS")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Any:
        """Build one for a crawl with seeds; Scrapy's own for ``shell``, ``fetch``, ``parse`` and other spiders."""
        if not is_of_frontier(crawler):
            return Scheduler.from_crawler(crawler)
        return cls(crawler)

    # --- the crawl ------------------------------------------------------------------------------

    def open(self, spider: Spider) -> None:
        """Open the crawl's folder and load what an earlier run left."""
        crawl = self.crawl = Crawl(self._crawler, spider)
        self._engine = Engine(self._crawler, crawl.run)
        self._fast = FastPath.of(self._crawler)
        self._begin_session(spider)
        self._crawler.signals.connect(self.idle_ends, signals.spider_idle)
        # Behind the extensions, which are connected before: the status has its end while the folder is ours.
        self._crawler.signals.connect(crawl.unlock, signals.spider_closed)
        session = crawl.session
        self._loader = QueueLoader(self._engine, session.frontier, self.wake, self._log_queued)
        if session.role.keeps_hosts:
            self._loader.begin()
            read = read_messages if session.role.all_hosts else read_unread
            read(session.store, session.frontier, crawl.run.now())

    def rejoin(self) -> bool:
        """Replace the session once none of its leases is under way; whether that is done. Blocking.

        Raises NameTaken; StorageError when it must be tried again.
        """
        self._outage.forget()
        self.crawl.session.pages.discard_uncommitted()
        if not self._dispatch.quit():
            return False
        self._dispatch.cancel()
        self.crawl.rejoin()
        self._begin_session(self._crawler.spider)
        return True

    def _begin_session(self, spider: Any) -> None:
        """Build what works on the session, and let the other components find it."""
        crawl, run, session = self.crawl, self.crawl.run, self.crawl.session
        self.in_flight = InFlight()
        intake = Intake(session, run, self.wake)
        longest_seconds = self._crawler.settings.getfloat("NETWORK_MAX_WAIT_SECONDS", MAX_WAIT_SECONDS)
        reaches = pool_for(self._crawler).reaches
        self._outage = Outage(run, session.pages, reaches, self._engine.ask, longest_seconds)
        self.long = LongPages(session.pages, intake, crawl.poison, self.in_flight, spider.count_error, self._outage)
        self.websub = WebSub(session.subscriptions, intake, run)
        subrequests = SubrequestAnswers(spider, self.long)
        requests = LeaseRequests(session, guard_of(self._crawler), crawl.poison, spider, subrequests)
        fetches = Fetches(
            resolver_for(self._crawler), (unread_answers_of(self._crawler), self.in_flight.line), Proxies().may_serve
        )
        self._dispatch = LeaseDispatch(session, run, requests, self.in_flight, self._engine, fetches, self._outage)
        services_of(self._crawler).provide(
            *(self, crawl, run, crawl.reader, session, session.frontier, session.frontier.renders),
            *(intake, self.long, self.websub, self.in_flight, session.models.duplicates, crawl.poison),
        )

    def _log_queued(self) -> None:
        frontier = self.crawl.session.frontier
        hosts = sum(host.work for host in frontier.workbench.hosts.values()) + frontier.hosts.on_disk.counts.hosts
        pages = self.crawl.session.totals.now().pages
        self.crawl.session.resumed.say_queued(max(0, frontier.hosts.waiting_urls), hosts, pages)

    @contextmanager
    def choosing(self) -> Iterator[None]:
        """A block that chooses known pages. Nothing is leased in it: it holds the loop, and connections would fail."""
        run = self.crawl.run
        run.choosing = self.crawl.session.role.keeps_hosts
        try:
            yield
        finally:
            run.choosing = False
            self.wake()

    def add_revisits(self, budget: int | None) -> int | None:
        """Queue known pages that are worth another visit; how many. None: a worker over Redis does so by and by."""
        crawl = self.crawl
        if not crawl.session.role.keeps_hosts:
            return None
        policy = revisit_policy(self._crawler.settings, crawl.session.role.part_of(budget))
        return queue_revisits(crawl.session, policy, crawl.run.now())

    def wake(self) -> None:
        """Have the engine ask when the next host is free: something else than the engine brought work."""
        self._dispatch.wake()

    def resume(self) -> None:
        """Go on after a pause."""
        self.long.go_on()
        self._engine.ask()

    async def complete_replaced(self) -> None:
        """End the leases whose request a middleware of the project replaced."""
        if self._fast is not None:
            return  # there is none
        spider: Any = self._crawler.spider
        for lease in self.in_flight.unanswered(self._engine.requests() | set(self._others)):
            why = "a downloader middleware put another request in its place"
            if lease.subrequest is not None:
                lease.subrequest.answered(RuntimeError(why))
            await spider.complete(LeaseResult.failed(lease, Reason.MIDDLEWARE, why))

    def idle(self) -> bool:
        """Whether nothing is under way here, and nothing is left but hosts that rest for very long."""
        frontier, run = self.crawl.session.frontier, self.crawl.run
        if self.websub.awaited:
            return False  # a push may bring work
        if self._others or self._dispatch or run.halted or frontier.state.leased or frontier.hosts.loading:
            return False
        if frontier.hosts.waiting_urls <= 0:
            return True
        return frontier.only_rests(run.now(), self._patience_seconds)

    # --- what the engine calls ------------------------------------------------------------------

    def close(self, reason: str) -> Deferred[None]:
        """The last commit; everything is durable and closed afterwards."""
        self.crawl.run.ending = True
        self._engine.cancel()
        self._loader.cancel()
        self._dispatch.cancel()
        crawl = self.crawl
        self._outage.close()
        crawl.session.resumed.say_end(crawl.folder, reason, crawl.progress(exact=True))
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        await self.long.finish()
        async with self.crawl.committing:
            self.crawl.close()

    def idle_ends(self) -> None:
        """Scrapy's ``spider_idle``: a crawl of one process that ends without one good answer says so by its reason."""
        session, good = self.crawl.session, self.crawl.run.tallies.good
        if session.role.all_hosts and session.resumed.fetched_nothing(good):
            raise CloseSpider(NOTHING_FETCHED)

    def has_pending_requests(self) -> bool:
        """Whether the crawl is not over: False as well when all that is left rests for very long."""
        if self._others or self._dispatch or self.crawl.run.halted or self.websub.awaited:
            return True
        return not self.crawl.session.role.finished(self.idle)

    def enqueue_request(self, request: Request) -> bool:
        """Take a request that is not the frontier's, or a lease's that a middleware hands back before it is sent.

        Of the former a second of the same is dropped, as by Scrapy's own scheduler; it is no lease's, whatever its
        meta says (``meta=response.meta``, a redirect).
        """
        if request not in guard_of(self._crawler).leases:
            _disown(request)
            if not request.dont_filter and self._seen_before(request):
                return False
        self._others.append(request)
        return True

    def _seen_before(self, request: Request) -> bool:
        if self._seen is None:
            self._seen = build_from_crawler(load_object(self._crawler.settings["DUPEFILTER_CLASS"]), self._crawler)
        return self._seen.request_seen(request)

    def next_request(self) -> Request | None:
        """A request whose host and address are free now; None (and a timer set) when there is none.

        Pages begin here at once where they may go the fast path, and the engine gets what is left.
        """
        if self._others:
            if not self._budget.over():
                return self._others.popleft()
            self._engine.ask_at(0.0, self.crawl.run.now())
            return None
        fast = self._fast
        while (request := self._dispatch.next()) is not None:
            if fast is None or not fast.takes(request):
                return request
            if not fast.begin(request):
                return None
        return None
