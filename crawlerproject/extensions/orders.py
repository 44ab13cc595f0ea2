"""Watches for what the operator says from outside, and for the crawl's limits; both take effect within a second."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import DontCloseSpider, NotConfigured
from scrapy.utils.defer import deferred_from_coro

from crawlerproject.crawl.orders import obey, take_in
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.errors import StorageError
from crawlerproject.frontier.hosts.host import LIMITED, PAUSED
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


logger = logging.getLogger(__name__)

_LEFT = {
    PAUSED: "Hosts that are paused: {hosts} (scrapy pause --list).",
    LIMITED: "Hosts that have had as much as they may have: {hosts} (scrapy hosts); a higher limit lets them go on.",
}
# A look is two calls of the system: 20 µs.
_BEAT_SECONDS = 0.5


class Orders:
    """Pauses, goes on, takes in seeds, and ends a crawl that has had as much as it should."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Only in a crawl."""
        if not crawler.crawling:
            raise NotConfigured  # no crawl of ours, as in the shell: without a word
        extension = cls(crawler)
        crawler.signals.connect(extension.engine_started, signal=signals.engine_started)
        crawler.signals.connect(extension.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def engine_started(self) -> None:
        """Begin to look, if the frontier is the scheduler."""
        scheduler = services_of(self._crawler).get(FrontierScheduler)
        if scheduler is not None:
            self._task = asyncio.get_running_loop().create_task(self._run(scheduler))

    def spider_closed(self) -> None:
        """What is said from now on is the next start's; what stays queued for the operator's sake is said."""
        scheduler = services_of(self._crawler).get(FrontierScheduler)
        for why, hosts in scheduler.crawl.session.frontier.hosts.held.items() if scheduler is not None else ():
            if hosts > 0:
                logger.info("%s Their URLs stay queued.", _LEFT[why].format(hosts=f"{hosts:,}"))
        if self._task is not None:
            self._task.cancel()

    def spider_idle(self) -> None:
        """Seeds that were added a moment ago are taken in before a crawl ends for want of work."""
        scheduler = services_of(self._crawler).get(FrontierScheduler)
        if scheduler is None or self._stopping or not scheduler.crawl.session.member.alone:
            return
        if scheduler.crawl.control.added():
            raise DontCloseSpider

    async def _run(self, scheduler: FrontierScheduler) -> None:
        while not self._stopping:
            await asyncio.sleep(_BEAT_SECONDS)  # at the start too: its seeds come first
            if scheduler.crawl.run.closed:
                return
            try:
                await self._look(scheduler)
            except (StorageError, OSError) as error:  # said again with the next look
                logger.warning("What the operator says waits: %s", error)
            except Exception:
                logger.exception("could not do what the operator says")

    async def _look(self, scheduler: FrontierScheduler) -> None:
        crawl = scheduler.crawl
        if crawl.run.lost:
            return  # it begins anew, and looks then
        if limit := crawl.session.limits.reached():
            self._stop(scheduler, limit)
            return
        if (pauses := crawl.control.changed()) is not None:
            try:
                obey(crawl.session.frontier, crawl.run, pauses)
            except StorageError:
                crawl.control.look_again()
                raise
            scheduler.resume()
        if not crawl.session.frontier.hosts.loading:
            for spooled in crawl.control.added():
                async with crawl.committing:
                    if crawl.run.closed:
                        return
                    await take_in(crawl.session, spooled, crawl.run.now)
                scheduler.wake()

    def _stop(self, scheduler: FrontierScheduler, limit: str) -> None:
        """What is on its way ends; the last commit is the scheduler's own."""
        self._stopping = True
        logger.info(
            "The crawl has had its %s: what is on its way ends, %s URLs stay queued for a start with a higher one.",
            limit,
            f"{max(0, scheduler.crawl.session.frontier.hosts.waiting_urls):,}",
        )
        engine = self._crawler.engine
        assert engine is not None
        deferred_from_coro(engine.close_spider_async(reason=limit.partition("=")[0]))
