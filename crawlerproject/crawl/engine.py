"""Wakes and stops Scrapy's engine.

The engine asks for the next request after each one that ends and at a heartbeat of 5 s. A host that is free in 0.3 s
would wait for that, so a timer has the engine ask at that moment.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult

    from crawlerproject.crawl.run import Run
    from crawlerproject.errors import FrontierDamaged

logger = logging.getLogger(__name__)


class Engine:
    """One timer at most, for the earliest moment that was asked for. Moments are epoch seconds."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        self._crawler = crawler
        self._run = run
        self._timer: CallLaterResult | None = None
        self._at = 0.0

    def ask_at(self, moment: float | None, now: float) -> None:
        """Have the engine ask then, or sooner when that was asked for; None: no moment."""
        if moment is None or (self._timer is not None and self._at <= moment):
            return
        self.cancel()
        self._at = moment
        self._timer = call_later(max(0.0, moment - now), self._ask_now)

    def cancel(self) -> None:
        """Forget the moment."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def ask(self) -> None:
        """Have the engine ask in the next turn of the loop. One that is full asks when a request has ended."""
        engine = self._crawler.engine
        if engine is None or engine.spider is None or self._run.closed or engine.needs_backout():
            return
        # Scrapy 2.19 has no public call for it but ``crawl``, which takes a request and hands it back to the scheduler.
        slot: Any = engine._slot
        slot.nextcall.schedule()

    def _ask_now(self) -> None:
        self._timer = None
        self.ask()

    def requests(self) -> set[Request]:
        """The requests in progress."""
        slot: Any = getattr(self._crawler.engine, "_slot", None)
        return set() if slot is None else slot.inprogress

    def stop_for_damage(self, error: FrontierDamaged) -> None:
        """End the crawl: what cannot be read of its frontier would be forgotten."""
        logger.error("%s The crawl stops.", error)
        self.stop("frontier_damaged")

    def stop(self, reason: str) -> None:
        """End the crawl; what is on its way ends first."""
        engine = self._crawler.engine
        assert engine is not None
        deferred_from_coro(engine.close_spider_async(reason=reason))
