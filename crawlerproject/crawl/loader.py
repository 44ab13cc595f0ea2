"""A start on an earlier run's frontier: its hosts are taken up some at a time, while the first are fetched from."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

if TYPE_CHECKING:
    from scrapy.utils.asyncio import CallLaterResult

    from crawlerproject.crawl.scheduler import FrontierScheduler

logger = logging.getLogger(__name__)

# Taken up in one turn of the loop: some 10 ms.
_HOSTS_AT_A_TIME = 250


class Loader:
    """Until it is done the crawl is not over."""

    def __init__(self, scheduler: FrontierScheduler) -> None:
        self._scheduler = scheduler
        self._timer: CallLaterResult | None = None

    def begin(self) -> None:
        """Take up the first at once: an error in them stops the start."""
        frontier = self._scheduler.crawl.frontier
        frontier.begin_loading()
        if frontier.load_some(_HOSTS_AT_A_TIME):
            self._timer = call_later(0, self._go_on)

    def cancel(self) -> None:
        """What is not taken up waits for another start."""
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self) -> None:
        self._timer = None
        try:
            if self._scheduler.crawl.frontier.load_some(_HOSTS_AT_A_TIME):
                self._timer = call_later(0, self._go_on)
        except Exception:  # a frontier that cannot be read: without the rest the crawl would never be over
            logger.exception("the hosts of an earlier run could not be taken up; the crawl stops")
            engine = self._scheduler.crawler.engine
            assert engine is not None
            deferred_from_coro(engine.close_spider_async(reason="loading_failed"))
            return
        self._scheduler.wake()
