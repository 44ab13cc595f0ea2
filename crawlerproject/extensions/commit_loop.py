"""The commit loop: about once a second archive, then frontier, become durable together."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import deferred_from_coro

from crawlerproject.crawl.running import scheduler_of
from crawlerproject.errors import LeaseLost, OperatorError, StorageError
from crawlerproject.stores.redis.buffered_store import BufferedStore

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from crawlerproject.crawl.scheduler import FrontierScheduler

logger = logging.getLogger(__name__)


class CommitLoop:
    """Archive bytes first, then one atomic frontier batch. Nobody waits for it; only its fsyncs leave the thread."""

    def __init__(self, crawler: Crawler, commit_seconds: float) -> None:
        self._crawler = crawler
        self._commit_seconds = commit_seconds
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Only in a crawl."""
        if not crawler.crawling:
            raise NotConfigured  # no crawl of ours, as in the shell: without a word
        loop = cls(crawler, crawler.settings.getfloat("COMMIT_SECONDS"))
        crawler.signals.connect(loop.engine_started, signal=signals.engine_started)
        crawler.signals.connect(loop.engine_stopped, signal=signals.engine_stopped)
        return loop

    def engine_started(self) -> None:
        """Start the beat, if the frontier is the scheduler."""
        scheduler = scheduler_of(self._crawler)
        if scheduler is not None:
            self._task = asyncio.get_running_loop().create_task(self._run(scheduler))

    def engine_stopped(self) -> None:
        """The scheduler's own close has made the last commit."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, scheduler: FrontierScheduler) -> None:
        while not scheduler.crawl.closed:
            await asyncio.sleep(self._commit_seconds)
            try:
                await scheduler.completion.complete_lost()
                await self.beat(scheduler)
            except LeaseLost as error:
                scheduler.crawl.lose(str(error))
            except OperatorError as error:
                logger.error("%s", error)
                self._stop("operator_error")
                return
            except StorageError as error:
                scheduler.crawl.pause(str(error))
            except Exception:
                # Ours. Without commits nothing that is fetched would ever count: stop, and recover at the next start.
                logger.exception("the commit failed; the crawl stops")
                self._stop("commit_failed")
                return

    def _stop(self, reason: str) -> None:
        engine = self._crawler.engine
        assert engine is not None
        deferred_from_coro(engine.close_spider_async(reason=reason))

    def _count_links(self, store: BufferedStore) -> None:
        assert self._crawler.stats is not None
        for how, count in store.links.filter.told().items():
            self._crawler.stats.inc_value(f"links/{how}", count)

    async def beat(self, scheduler: FrontierScheduler) -> None:
        """One commit, and whatever the disk's state asks for."""
        crawl = scheduler.crawl
        async with crawl.commits.lock:
            if crawl.closed:
                return
            if crawl.lost:
                if not scheduler.quit_leases():
                    return
                crawl.begin_anew()
                scheduler.open_addresses()
            if crawl.paused:
                # Where that cannot be done the crawl stays paused.
                await asyncio.to_thread(crawl.store.sync if crawl.fleet is None else crawl.fleet.store.reach)
            if crawl.check_room():
                scheduler.resume()
            if crawl.fleet is not None:
                await crawl.fleet.exchange.read(crawl.frontier, crawl.now)
                if crawl.lost:
                    return
            changes, facts = crawl.commits.begin()
            if not (changes or crawl.frontier.state.refused.counts) and crawl.fleet is None:
                return
            try:
                await asyncio.to_thread(crawl.archive.sync)
                if crawl.fleet is not None:
                    await crawl.fleet.exchange.deliver(crawl.frontier, crawl.now)
            except StorageError:
                crawl.frontier.state.take_back(changes)
                raise
            if crawl.lost:  # meanwhile: some state of a host may be half of what it is to be
                return
            crawl.commits.end(changes, facts)
            await asyncio.to_thread(crawl.store.sync)
            if crawl.lost:
                return
            crawl.commits.roll()
            if crawl.fleet is not None:
                crawl.fleet.counts = {"pages": crawl.pages, "bytes": crawl.bytes, "errors": crawl.errors}
                self._count_links(crawl.fleet.store)
                await crawl.fleet.turn(crawl.frontier, crawl.learned, idle=scheduler.idle())
                scheduler.resume()
