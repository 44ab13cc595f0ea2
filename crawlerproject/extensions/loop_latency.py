"""Measures how long the event loop was held up: while one piece of work runs, nothing is answered and no pause ends."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from scrapy import signals

from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.extensions.crawl_task import only_in_a_crawl
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector

_TICK_SECONDS = 0.01  # what a hold is measured to; a thousandth of the processor
_HOLD_SECONDS = 0.05  # what nothing should hold the loop for (runtime/loop_budget.py)
HELD, WORKED = "loop/longest_hold_seconds", "loop/longest_work_seconds"
HOLDS, HELD_SUM = "loop/holds", "loop/held_seconds"


class LoopLatency:
    """A timer that should ring each hundredth of a second, how late it rang at worst, and how often very late.

    ``longest_hold`` is by the clock, a busy machine included; ``longest_work`` is what of one such delay this thread
    spent on the processor.
    """

    def __init__(self, stats: StatsCollector, closed: Callable[[], bool] = lambda: False) -> None:
        self._stats = stats
        self._closed = closed  # the last figures, commit and index hold the loop when nothing waits
        self._timer: asyncio.TimerHandle | None = None
        self._due = self._worked = 0.0
        self._longest = dict.fromkeys((HELD, WORKED), 0.0)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Only in a crawl."""
        only_in_a_crawl(crawler)
        assert crawler.stats is not None

        def closed() -> bool:
            scheduler = services_of(crawler).get(FrontierScheduler)
            return scheduler is not None and scheduler.crawl.run.ending

        extension = cls(crawler.stats, closed)
        crawler.signals.connect(extension.start, signal=signals.spider_opened)
        crawler.signals.connect(extension.stop, signal=signals.spider_closed)
        return extension

    def start(self) -> None:
        """From now on; opening the frontier of an earlier run is over."""
        self._arm(asyncio.get_running_loop())

    def stop(self) -> None:
        """No more."""
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due, self._worked = time.monotonic() + _TICK_SECONDS, time.thread_time()
        self._timer = loop.call_later(_TICK_SECONDS, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._closed():
            return
        held = time.monotonic() - self._due
        if held >= _HOLD_SECONDS:
            self._stats.inc_value(HOLDS)
            self._stats.set_value(HELD_SUM, round(self._stats.get_value(HELD_SUM, 0.0) + held, 4))
        self._raise(HELD, held)
        self._raise(WORKED, min(held, time.thread_time() - self._worked))
        self._arm(loop)

    def _raise(self, name: str, seconds: float) -> None:
        if seconds > self._longest[name]:
            self._longest[name] = seconds
            self._stats.set_value(name, round(seconds, 4))
