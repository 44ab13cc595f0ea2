"""The commit loop: about once a second archive, then frontier, become durable together."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from crawlerproject.errors import LeaseLost, OperatorError, StorageError
from crawlerproject.extensions.crawl_task import CrawlTask, only_in_a_crawl

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from crawlerproject.crawl.scheduler import FrontierScheduler

logger = logging.getLogger(__name__)


class CommitLoop(CrawlTask):
    """Archive bytes first, then one atomic frontier batch. Nothing waits for it; only its fsyncs leave the thread."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Only in a crawl."""
        only_in_a_crawl(crawler)
        return cls(crawler, crawler.settings.getfloat("COMMIT_SECONDS"))

    async def tick(self, scheduler: FrontierScheduler) -> bool:
        """One commit; what stops it pauses or ends the crawl."""
        run = scheduler.crawl.run
        try:
            await scheduler.complete_replaced()
            await self._commit(scheduler)
        except LeaseLost as error:
            run.lose(str(error))
        except OperatorError as error:
            logger.error("%s", error)
            self.close_crawl("operator_error")
            return False
        except StorageError as error:
            run.pause(str(error))
        except Exception:
            # Ours. Without commits nothing that is fetched would ever count: stop, and recover at the next start.
            logger.exception("the commit failed; the crawl stops")
            self.close_crawl("commit_failed")
            return False
        return True

    async def _commit(self, scheduler: FrontierScheduler) -> None:
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
