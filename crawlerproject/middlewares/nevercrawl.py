"""Refuses requests to hosts on the never-crawl list, the last time before they are sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self, cast

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.statscollectors import StatsCollector

from crawlerproject.middlewares.leased import lease_in
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
        """The crawler's one, which its guard calls as well."""
        from crawlerproject.middlewares.guard import guard_of  # it is made of this

        return cast("Self", guard_of(crawler).never_crawl)

    @classmethod
    def from_settings_of(cls, crawler: Crawler) -> Self:
        """One of its own."""
        settings = crawler.settings
        reload_seconds = settings.getfloat("NEVERCRAWL_RELOAD_SECONDS", 60.0)
        return cls(NeverCrawlFile(settings.get("NEVERCRAWL_FILE"), reload_seconds), crawler.stats)

    def process_request(self, request: Request) -> None:
        """Refuse what the list excludes."""
        lease = lease_in(request)
        self.judge(request, "" if lease is None else lease.row.host)

    def judge(self, request: Request, host: str = "") -> None:
        """Refuse what the list excludes, by its URL; ``host`` where that is known already."""
        exclusion = self.never_crawl.current(self.clock())
        if not exclusion:
            return
        name = host_name(host or host_key(request.url))
        if exclusion.excludes(name):
            line = exclusion.line_of(name)
            raise refused(self.stats, request, Reason.NEVERCRAWL, f"{name} (line {line} of {self.never_crawl.path})")
