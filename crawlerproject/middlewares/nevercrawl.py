"""Refuses requests to hosts on the never-crawl list, the last time before they are sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.statscollectors import StatsCollector

from crawlerproject.middlewares.refused import refused
from crawlerproject.reasons import Reason
from crawlerproject.rules.hosts import host_key, host_name
from crawlerproject.stores.nevercrawl import NeverCrawlFile


class NeverCrawlMiddleware:
    """``NEVERCRAWL_FILE``, looked at again every ``NEVERCRAWL_RELOAD_SECONDS``."""

    def __init__(
        self, never_crawl: NeverCrawlFile, stats: StatsCollector | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.never_crawl = never_crawl
        self.stats = stats
        self.clock = clock

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        reload_seconds = settings.getfloat("NEVERCRAWL_RELOAD_SECONDS", 60.0)
        return cls(NeverCrawlFile(settings.get("NEVERCRAWL_FILE"), reload_seconds), crawler.stats)

    def process_request(self, request: Request) -> None:
        """Refuse what the list excludes."""
        exclusion = self.never_crawl.current(self.clock())
        if not exclusion:
            return
        lease = request.meta.get("lease")
        name = host_name(lease.row.host if lease is not None else host_key(request.url))
        if exclusion.excludes(name):
            line = exclusion.line_of(name)
            raise refused(self.stats, request, Reason.NEVERCRAWL, f"{name} (line {line} of {self.never_crawl.path})")
