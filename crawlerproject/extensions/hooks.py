"""Notifies the operator's command or URL when the crawl pauses, goes on, errs, falls silent or ends."""

from __future__ import annotations

import asyncio
import socket
import time
from datetime import UTC, datetime
from typing import Any, Self

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.extensions.crawl_task import CrawlTask
from crawlerproject.hooks.hook_events import SILENT_SECONDS, Delivery, Hook, Look, Watch, hook_in

_TICK_SECONDS = 1.0


class Hooks(CrawlTask):
    """Looks once a second; the end's event is delivered before the process exits."""

    def __init__(self, crawler: Crawler, hook: Hook, silent_seconds: float) -> None:
        super().__init__(crawler, _TICK_SECONDS)
        self._delivery = Delivery(hook)
        self._watch = Watch(silent_seconds)

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """Only when there is a hook."""
        hook = hook_in(crawler.settings)
        if not hook:
            raise NotConfigured  # without a word
        return cls(crawler, hook, crawler.settings.getfloat("HOOK_SILENT_SECONDS", SILENT_SECONDS))

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        """Deliver why the crawl has ended; the wait for that is bounded."""
        self.engine_stopped()
        last = None
        if (scheduler := self.scheduler) is not None:
            await self.tick(scheduler)
            last = self._event(scheduler, "ended", reason)
        await asyncio.to_thread(self._delivery.close, last)

    async def tick(self, scheduler: FrontierScheduler) -> bool:
        """Send what has happened since the last look."""
        run, spider = scheduler.crawl.run, self._crawler.spider
        wake = scheduler.crawl.session.frontier.wake_at()
        waits = None if wake is None else max(0.0, wake - run.now())
        errors = getattr(spider, "errors", 0)
        for event in self._watch.look(Look(run.halted, run.tallies.pages, errors, waits), time.monotonic()):
            self._delivery.send(self._event(scheduler, event.name, event.reason))
        return True

    def _event(self, scheduler: FrontierScheduler, name: str, reason: str) -> dict[str, Any]:
        crawl = scheduler.crawl
        now, totals = crawl.progress(), crawl.session.totals.now()
        return {
            "event": name,
            "reason": reason,
            "crawl": str(crawl.folder.resolve()),
            "spider": getattr(self._crawler.spider, "name", ""),
            "machine": socket.gethostname(),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "counts": {
                "pages": totals.pages,
                "bytes": totals.bytes,
                "pages_since_start": now.pages,
                "errors_since_start": now.errors,
                "queued_urls": now.queued_urls,
            },
        }
