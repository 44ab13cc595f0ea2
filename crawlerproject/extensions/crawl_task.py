"""What extensions share that work beside a running crawl: a task of their own that looks at it again and again."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import deferred_from_coro

from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


logger = logging.getLogger(__name__)


def only_in_a_crawl(crawler: Crawler) -> None:
    """NotConfigured, without a word, in the shell and its like."""
    if not crawler.crawling:
        raise NotConfigured


class CrawlTask:
    """Calls ``tick`` while the crawl runs, the first time after a pause; its errors are logged and stop nothing."""

    def __init__(self, crawler: Crawler, tick_seconds: float) -> None:
        """From the engine's start to its stop, if the frontier is the scheduler."""
        self._crawler = crawler
        self._tick_seconds = tick_seconds
        self._task: asyncio.Task[None] | None = None
        crawler.signals.connect(self.engine_started, signal=signals.engine_started)
        crawler.signals.connect(self.cancel, signal=signals.engine_stopped)

    async def tick(self, scheduler: FrontierScheduler) -> bool:
        """One look; False ends the task."""
        raise NotImplementedError

    def engine_started(self) -> None:
        """Begin."""
        scheduler = services_of(self._crawler).get(FrontierScheduler)
        if scheduler is not None:
            self._task = asyncio.get_running_loop().create_task(self._run(scheduler))

    def cancel(self) -> None:
        """No more."""
        if self._task is not None:
            self._task.cancel()

    def close_crawl(self, reason: str) -> None:
        """Let what is on its way end; the scheduler makes the last commit."""
        engine = self._crawler.engine
        assert engine is not None
        deferred_from_coro(engine.close_spider_async(reason=reason))

    async def _run(self, scheduler: FrontierScheduler) -> None:
        going_on = True
        while going_on:
            await asyncio.sleep(self._tick_seconds)
            if scheduler.crawl.run.closed:
                return
            try:
                going_on = await self.tick(scheduler)
            except Exception:
                logger.exception("%s failed", type(self).__name__)
