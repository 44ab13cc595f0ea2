"""A start on an earlier run's frontier: its hosts are taken up some at a time, while the first are fetched from."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from crawlerproject.errors import FrontierDamaged, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult

    from crawlerproject.frontier.frontier import Frontier

logger = logging.getLogger(__name__)

# Taken up in one turn of the loop: some 10 ms.
_HOSTS_AT_A_TIME = 250
# After there was no room on the disk.
_AGAIN_SECONDS = 1.0


def stop_for_damage(crawler: Crawler, error: FrontierDamaged) -> None:
    """End the crawl: what cannot be read of its frontier would be forgotten."""
    logger.error("%s The crawl stops.", error)
    engine = crawler.engine
    assert engine is not None
    deferred_from_coro(engine.close_spider_async(reason="frontier_damaged"))


class QueueLoader:
    """Until it is done the crawl is not over; ``wake`` is told whenever there may be more to do."""

    def __init__(
        self, crawler: Crawler, frontier: Frontier, wake: Callable[[], None], done: Callable[[], None]
    ) -> None:
        """``done`` is called when the last of them is taken up."""
        self._crawler = crawler
        self._frontier = frontier
        self._wake = wake
        self._done = done
        self._timer: CallLaterResult | None = None

    def begin(self) -> None:
        """Take up the first at once: an error in them stops the start."""
        self._frontier.begin_loading()
        self._some()

    def _some(self) -> None:
        if self._frontier.load_some(_HOSTS_AT_A_TIME):
            self._timer = call_later(0, self._go_on)
        else:
            self._done()

    def cancel(self) -> None:
        """What is not taken up waits for another start."""
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self) -> None:
        self._timer = None
        try:
            self._some()
        except FrontierDamaged as error:
            stop_for_damage(self._crawler, error)
            return
        except StorageError:  # no room on the disk to list them: the crawl pauses for that by itself
            self._timer = call_later(_AGAIN_SECONDS, self._go_on)
            return
        except Exception:  # a frontier that cannot be read: without the rest the crawl would never be over
            logger.exception("the hosts of an earlier run could not be taken up; the crawl stops")
            engine = self._crawler.engine
            assert engine is not None
            deferred_from_coro(engine.close_spider_async(reason="loading_failed"))
            return
        self._wake()
