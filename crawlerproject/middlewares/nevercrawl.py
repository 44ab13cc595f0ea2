"""Refuses requests to excluded hosts early, before other middlewares work on them; the guard has the last word."""

from __future__ import annotations

from typing import Self

from scrapy import Request
from scrapy.crawler import Crawler

from crawlerproject.guard.guard import Guard, guard_of
from crawlerproject.request_meta import lease_in


class NeverCrawlMiddleware:
    """``NEVERCRAWL_FILE`` and ``NEVERCRAWL_USER_FILE``, by the process's one reader."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(guard_of(crawler))

    def process_request(self, request: Request) -> None:
        """Raise ``Refused`` for an excluded host or a bad port. The frontier's filters have judged what is leased."""
        if lease_in(request) is None:
            self._guard.check(request)
