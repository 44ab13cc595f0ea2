"""The commit loop: about once a second archive, then frontier, become durable together; sooner when much has ended."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from typing import Self

from scrapy.crawler import Crawler

from crawlerproject.crawl.running_crawl import Crawl
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.errors import (
    OPERATOR_ERROR,
    STORE_FORGOT,
    LeaseLost,
    OperatorError,
    StorageError,
    StoreForgot,
)
from crawlerproject.extensions.crawl_task import CrawlTask
from crawlerproject.fleet.local.supervisor_link import SUPERVISOR_GONE
from crawlerproject.runtime.clock import steady

logger = logging.getLogger(__name__)

# Ended requests and hosts that changed with them, which one commit encodes in one go: some 10 ms. A thousand hosts a
# second were held up by 57 ms each time.
_MOST_AT_A_TIME = 500
# How often it is asked whether there are so many: at 500 requests a second a tenth of them come meanwhile.
_LOOK_SECONDS = 0.1


class CommitLoop(CrawlTask):
    """Archive bytes first, then one atomic frontier batch. Nothing waits for it; only its fsyncs leave the thread."""

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """By COMMIT_SECONDS."""
        return cls(crawler, crawler.settings.getfloat("COMMIT_SECONDS"))

    def __init__(self, crawler: Crawler, commit_seconds: float, clock: Callable[[], float] = steady) -> None:
        super().__init__(crawler, min(commit_seconds, _LOOK_SECONDS))
        self._commit_seconds = commit_seconds
        self._clock = clock
        self._not_before = 0.0

    def engine_started(self) -> None:
        """Begin; the first commit comes an interval later."""
        self._not_before = self._clock() + self._commit_seconds
        # Until now nothing was to be made durable; a first commit may never come to its end.
        if (scheduler := self.scheduler) is not None:
            run = scheduler.crawl.run
            run.tallies.committed_at = run.now()
        super().engine_started()

    async def tick(self, scheduler: FrontierScheduler) -> bool:
        """One commit when it is due, or when very much has ended; what stops it pauses or ends the crawl."""
        run = scheduler.crawl.run
        if forsaken := scheduler.crawl.session.role.forsaken:
            logger.error("The crawl ends: %s; what is on its way ends, and the same command continues.", forsaken)
            self.close_crawl(SUPERVISOR_GONE)
            return False
        much_ended = scheduler.crawl.session.frontier.state.uncommitted >= _MOST_AT_A_TIME
        if self._clock() < self._not_before and (run.halted or not much_ended):
            return True
        # From its beginning: on a long way to Redis commits are as many.
        self._not_before = self._clock() + self._commit_seconds
        try:
            await self._commit(scheduler)
        except LeaseLost as error:
            run.lose(str(error))
        except OperatorError as error:
            logger.error("%s", error)
            self.close_crawl(STORE_FORGOT if isinstance(error, StoreForgot) else OPERATOR_ERROR)
            return False
        except StorageError as error:
            run.tallies.commit_failed()
            run.pause(str(error))
            session = scheduler.crawl.session
            session.role.commit_failed(session.frontier, run)
            self._not_before = self._clock() + self._commit_seconds
        except Exception:
            # Ours. Without commits nothing that is fetched would ever count: stop, and recover at the next start.
            logger.exception("the commit failed; the crawl stops")
            self.close_crawl("commit_failed")
            return False
        return True

    async def _commit(self, scheduler: FrontierScheduler) -> None:
        crawl, run = scheduler.crawl, scheduler.crawl.run
        await scheduler.complete_replaced()
        async with crawl.committing:
            if run.closed or (run.lost and not scheduler.rejoin()):
                return
            if run.paused:  # where that cannot be done the crawl stays paused
                crawl.session.role.reopen_store()
                await asyncio.to_thread(crawl.session.role.check_store)
            if check_room(crawl):
                scheduler.resume()
            if not run.halted and crawl.session.frontier.hosts.probe_again(run.now()):
                scheduler.wake()
            if await crawl.session.commits.commit(lambda: scheduler.idle() and not crawl.control.added()):
                scheduler.resume()
            if not run.lost:
                run.tallies.committed_at = run.now()


def check_room(crawl: Crawl) -> bool:
    """Pause when the disk is nearly full; True when a pause has just ended."""
    run, free = crawl.run, shutil.disk_usage(crawl.folder).free
    if free < crawl.min_free_bytes:
        run.pause(f"{crawl.folder} has {free:,} bytes free, under DISK_MIN_FREE_BYTES={crawl.min_free_bytes:,}")
        return False
    if not run.paused:
        return False
    try:
        crawl.session.write_again(run.now())
    except StorageError as error:
        run.pause(str(error))
        return False
    run.go_on()
    return True
