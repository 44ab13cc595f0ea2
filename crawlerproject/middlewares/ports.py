"""Refuses requests to ports at which no web server is to be looked for: shell, fetch, other spiders."""

from __future__ import annotations

from typing import Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.statscollectors import StatsCollector

from crawlerproject.middlewares.leased import lease_in
from crawlerproject.middlewares.refusal import refused
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.hosts import host_key
from crawlerproject.rules.url.ports import bad_port


class PortsMiddleware:
    """Says so before robots.txt is asked for there; the download handler would refuse both."""

    def __init__(self, stats: StatsCollector | None) -> None:
        self.stats = stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.stats)

    def process_request(self, request: Request) -> None:
        """Refuse a bad port; what the frontier leased has passed its gates."""
        if lease_in(request) is None and bad_port(host := host_key(request.url)):
            raise refused(self.stats, request, Reason.BAD_PORT, host)
