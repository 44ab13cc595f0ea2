"""Python's garbage collector, tuned for thousands of requests in flight."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

from scrapy import signals

from crawlerproject.extensions.crawl_task import only_in_a_crawl

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

# With Python's (700, 10, 10) half the CPU of a busy crawl goes into walking live requests (our measurement). Beyond
# these Python collects by itself, in a burst; else a timer does. What Python counts says little of what it then walks:
# each older object that goes is counted against a new one, and tuples and coroutines from its free lists never count.
# With 10,000 hosts it waited for 57,000 objects, and a collection held the event loop for 40 to 100 ms.
# Everything is looked at after as many collections of survivors as two hours have.
GC_THRESHOLDS = (20_000, 160, 3_600)
# From one collection of the youngest to the next: 250 requests at 500 a second. What is in flight then is walked once,
# so that shorter intervals cost more in all; longer ones hardly more at a time, for no more than LEAST of the window
# and what hosts keep of each request are alive.
_YOUNG_SECONDS = 0.5
# Collections of the youngest for each of what survived them: hosts and requests of two seconds, not of a minute.
_YOUNG_A_SURVIVORS = 4


class GarbageCollectorTuning:
    """Freezes what start-up made and collects in small parts. Our own code makes no cycles on the hot path."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._ticks = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Only in a crawl: a shell keeps Python's defaults."""
        only_in_a_crawl(crawler)
        extension = cls()
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        """Everything made by now stays: never look at it again. A collection first would take 0.08 s for little."""
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        self._arm(asyncio.get_running_loop())

    def spider_closed(self) -> None:
        """Collect by Python's counts alone."""
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(_YOUNG_SECONDS, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self.tick()
        self._arm(loop)

    def tick(self) -> None:
        """Collect what was made since the last tick; now and then its survivors, rarely everything."""
        self._ticks += 1
        if self._ticks % _YOUNG_A_SURVIVORS:
            gc.collect(0)
        elif gc.get_count()[2] < GC_THRESHOLDS[2]:
            gc.collect(1)
        else:
            gc.collect()
