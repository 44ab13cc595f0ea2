"""Carries out the operator's orders to a running crawl, and its limits; both take effect within a second."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import DontCloseSpider

from crawlerproject.crawl.orders import obey, take_in
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.errors import StorageError
from crawlerproject.extensions.crawl_task import CrawlTask, only_in_a_crawl
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
_TICK_SECONDS = 0.5


class Orders(CrawlTask):
    """Pauses and resumes, takes in seeds, makes checkpoints for backups, and ends a crawl that has reached a limit."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler, _TICK_SECONDS)
        self._stopping = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Only in a crawl."""
        only_in_a_crawl(crawler)
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_closed(self) -> None:
        """Orders from now on are the next start's. Logs what stays queued because of pauses and limits."""
        scheduler = services_of(self._crawler).get(FrontierScheduler)
        for why, hosts in scheduler.crawl.session.frontier.hosts.held.items() if scheduler is not None else ():
            if hosts > 0:
                logger.info("%s Their URLs stay queued.", _LEFT[why].format(hosts=f"{hosts:,}"))
        self.cancel()

    def spider_idle(self) -> None:
        """Seeds that were added a moment ago are taken in before a crawl ends for want of work."""
        scheduler = services_of(self._crawler).get(FrontierScheduler)
        if scheduler is None or self._stopping or not scheduler.crawl.session.role.all_hosts:
            return
        if scheduler.crawl.control.added():
            raise DontCloseSpider

    async def tick(self, scheduler: FrontierScheduler) -> bool:
        """One look at limits, pauses, backups and added seeds."""
        try:
            await self._look(scheduler)
        except (StorageError, OSError) as error:  # they stay where they are until the next look
            logger.warning("Orders to the crawl wait: %s", error)
        return not self._stopping

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
        if (order := crawl.backups.due(crawl.session)) is not None:
            async with crawl.committing:
                if crawl.run.closed:
                    return
                await crawl.backups.obey(order, crawl.session)
        if not crawl.session.frontier.hosts.loading:
            for spooled in crawl.control.added():
                async with crawl.committing:
                    if crawl.run.closed:
                        return
                    await take_in(crawl.session, spooled, crawl.run.now)
                scheduler.wake()

    def _stop(self, scheduler: FrontierScheduler, limit: str) -> None:
        self._stopping = True
        logger.info(
            "The crawl has had its %s: what is on its way ends, %s URLs stay queued for a start with a higher one.",
            limit,
            f"{max(0, scheduler.crawl.session.frontier.hosts.waiting_urls):,}",
        )
        self.close_crawl(limit.partition("=")[0])
