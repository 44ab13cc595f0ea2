"""Notifies the operator's command or URL when the crawl pauses, goes on, errs, falls silent or ends."""

from __future__ import annotations

import asyncio
import socket
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured

from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.extensions.crawl_task import CrawlTask
from crawlerproject.hooks.delivery import TIMEOUT_SECONDS, Delivery, Hook, hook_of
from crawlerproject.hooks.watch import SILENT_SECONDS, Look, Watch
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler


_TICK_SECONDS = 1.0


class Hooks(CrawlTask):
    """Looks once a second; the end's event is delivered before the process exits."""

    def __init__(self, crawler: Crawler, hook: Hook, silent_seconds: float) -> None:
        super().__init__(crawler, _TICK_SECONDS)
        self._delivery = Delivery(hook)
        self._watch = Watch(silent_seconds)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Only in a crawl, and when there is a hook."""
        settings = crawler.settings
        hook = hook_of(
            settings["HOOK_COMMAND"], settings["HOOK_URL"], settings.getfloat("HOOK_TIMEOUT_SECONDS", TIMEOUT_SECONDS)
        )
        if not (crawler.crawling and hook):
            raise NotConfigured  # without a word
        extension = cls(crawler, hook, settings.getfloat("HOOK_SILENT_SECONDS", SILENT_SECONDS))
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        """Deliver why the crawl has ended; the wait for that is bounded."""
        self.cancel()
        scheduler = services_of(self._crawler).get(FrontierScheduler)
        if scheduler is not None:
            self._look(scheduler)
        last = self._event(scheduler, "ended", reason) if scheduler is not None else None
        await asyncio.to_thread(self._delivery.close, last)

    async def tick(self, scheduler: FrontierScheduler) -> bool:
        """Send what has happened since the last look."""
        self._look(scheduler)
        return True

    def _look(self, scheduler: FrontierScheduler) -> None:
        run, spider = scheduler.crawl.run, self._crawler.spider
        wake = scheduler.crawl.session.frontier.wake_at()
        waits = None if wake is None else max(0.0, wake - run.now())
        errors = getattr(spider, "errors", 0)
        for event in self._watch.look(Look(run.halted, run.tallies.pages, errors, waits), time.monotonic()):
            self._delivery.send(self._event(scheduler, event.name, event.reason))

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
