"""extensions/loop_holds: work that holds the loop is measured, and told from waiting for the processor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from scrapy.crawler import Crawler
from scrapy.spiders import Spider
from scrapy.statscollectors import MemoryStatsCollector

from crawlerproject.extensions.loop_latency import HELD, WORKED, LoopLatency
from tests.web.waiting import eventually

_HOLD_SECONDS = 0.2


def _longest(hold: Callable[[], None]) -> tuple[float, float]:
    """What is measured while ``hold`` is called once within the loop."""
    stats = MemoryStatsCollector(Crawler(Spider))

    async def run() -> None:
        holds = LoopLatency(stats)
        holds.start()
        await eventually(lambda: stats.get_value(HELD) is not None)  # it looks, and sees nothing yet
        hold()
        await eventually(lambda: stats.get_value(HELD) >= _HOLD_SECONDS * 0.9)
        holds.stop()

    asyncio.run(run())
    return stats.get_value(HELD), stats.get_value(WORKED)


def _work() -> None:
    until = time.thread_time() + _HOLD_SECONDS
    while time.thread_time() < until:
        pass


def test_work_is_a_hold() -> None:
    """A callback that computes for long is the loop's hold and the thread's work."""
    held, worked = _longest(_work)

    assert held >= worked >= _HOLD_SECONDS * 0.9


def test_waiting_is_a_hold_without_work() -> None:
    """What blocks without computing holds the loop all the same."""
    held, worked = _longest(lambda: time.sleep(_HOLD_SECONDS))

    assert held >= _HOLD_SECONDS * 0.9
    assert worked < held / 2
