"""From a crawler to its running crawl, for extensions: they are loaded for the shell and for other spiders too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.crawl.scheduler import FrontierScheduler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def scheduler_of(crawler: Crawler) -> FrontierScheduler | None:
    """Our scheduler; None before the engine has one, and where it is Scrapy's own."""
    scheduler = getattr(crawler.engine, "scheduler", None)
    return scheduler if isinstance(scheduler, FrontierScheduler) else None
