"""Refuses requests to hosts on the never-crawl list, the last time before they are sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self, cast

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.statscollectors import StatsCollector

from crawlerproject.frontier.gates import NeverCrawl, never_crawl_of
from crawlerproject.middlewares.leased import lease_in
from crawlerproject.middlewares.refusal import refused
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.hosts import host_key, host_name


class NeverCrawlMiddleware:
    """``NEVERCRAWL_FILE`` and the operator's own, looked at again every ``NEVERCRAWL_RELOAD_SECONDS``."""

    def __init__(
        self, never_crawl: NeverCrawl, stats: StatsCollector | None, clock: Callable[[], float] = time.monotonic
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
        return cls(never_crawl_of(crawler.settings), crawler.stats)

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
            listing = self.never_crawl.listing(name, self.clock())
            where = f"line {listing.line} of {listing.path}" if listing is not None else "just taken off"
            raise refused(self.stats, request, Reason.NEVERCRAWL, f"{name} ({where})")
