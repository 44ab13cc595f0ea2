"""The commit loop: about once a second archive, then frontier, become durable together."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import deferred_from_coro

from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.errors import LeaseLost, OperatorError, StorageError
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


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
        scheduler = services_of(self._crawler).get(FrontierScheduler)
        if scheduler is not None:
            self._task = asyncio.get_running_loop().create_task(self._run(scheduler))

    def engine_stopped(self) -> None:
        """The scheduler's own close has made the last commit."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, scheduler: FrontierScheduler) -> None:
        run = scheduler.crawl.run
        while not run.closed:
            await asyncio.sleep(self._commit_seconds)
            try:
                await scheduler.complete_replaced()
                await self.beat(scheduler)
            except LeaseLost as error:
                run.lose(str(error))
            except OperatorError as error:
                logger.error("%s", error)
                self._stop("operator_error")
                return
            except StorageError as error:
                run.pause(str(error))
            except Exception:
                # Ours. Without commits nothing that is fetched would ever count: stop, and recover at the next start.
                logger.exception("the commit failed; the crawl stops")
                self._stop("commit_failed")
                return

    def _stop(self, reason: str) -> None:
        engine = self._crawler.engine
        assert engine is not None
        deferred_from_coro(engine.close_spider_async(reason=reason))

    async def beat(self, scheduler: FrontierScheduler) -> None:
        """One commit, and whatever the disk's state asks for."""
        crawl, run = scheduler.crawl, scheduler.crawl.run
        async with crawl.committing:
            if run.closed or (run.lost and not scheduler.begin_anew()):
                return
            if run.paused:  # where that cannot be done the crawl stays paused
                await asyncio.to_thread(crawl.session.member.reach)
            if crawl.check_room():
                scheduler.resume()
            if await crawl.session.commits.commit(scheduler.idle):
                scheduler.resume()
