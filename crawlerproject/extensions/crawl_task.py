"""What extensions share that work beside a running crawl: how they are made, and a task that looks again and again."""

from __future__ import annotations

import asyncio
import logging
from typing import Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from crawlerproject.crawl.engine import close_crawl
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.runtime.services import services_of

logger = logging.getLogger(__name__)

_SIGNALS = ("engine_started", "engine_stopped", "spider_opened", "spider_idle", "spider_closed")


class CrawlExtension:
    """Made in a crawl only. Its methods that are named like one of ``_SIGNALS`` are called at that signal."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Scrapy: NotConfigured, without a word, in the shell and its like."""
        if not crawler.crawling:
            raise NotConfigured
        extension = cls.of(crawler)
        for name in _SIGNALS:
            if (method := getattr(extension, name, None)) is not None:
                crawler.signals.connect(method, signal=getattr(signals, name))
        return extension

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """By the crawler's settings. Raises NotConfigured where they switch it off."""
        return cls(crawler)

    @property
    def scheduler(self) -> FrontierScheduler | None:
        """The crawl's; None when the spider has another one than ours, or none yet."""
        return services_of(self._crawler).get(FrontierScheduler)


class CrawlTask(CrawlExtension):
    """Calls ``tick`` while the crawl runs, the first time after a pause; its errors are logged and stop nothing."""

    def __init__(self, crawler: Crawler, tick_seconds: float) -> None:
        """From the engine's start to its stop, if the frontier is the scheduler."""
        super().__init__(crawler)
        self._tick_seconds = tick_seconds
        self._task: asyncio.Task[None] | None = None

    async def tick(self, scheduler: FrontierScheduler) -> bool:
        """One look; False ends the task."""
        raise NotImplementedError

    def engine_started(self) -> None:
        """Begin."""
        if (scheduler := self.scheduler) is not None:
            self._task = asyncio.get_running_loop().create_task(self._run(scheduler))

    def engine_stopped(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()

    def close_crawl(self, reason: str) -> None:
        """Let what is on its way end; the scheduler makes the last commit."""
        close_crawl(self._crawler, reason)

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
