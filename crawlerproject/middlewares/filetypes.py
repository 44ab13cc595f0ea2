"""Refuses requests for files that are never worth fetching, by their extension; seeds are exempt."""

from __future__ import annotations

from collections.abc import Collection
from typing import Self
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.statscollectors import StatsCollector

from crawlerproject.config.values import list_of
from crawlerproject.middlewares.leased import lease_in
from crawlerproject.middlewares.refusal import refused
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.filetypes import SKIP_EXTENSIONS, extensions_of, of_sitemaps, useless
from crawlerproject.stores.protocols import FLAG_SEED, FLAG_SITEMAP


class FileTypesMiddleware:
    """``SKIP_EXTENSIONS``; an empty list switches it off. ``meta["seed"]`` marks what the operator asked for."""

    def __init__(self, extensions: Collection[str], stats: StatsCollector | None) -> None:
        self.extensions = extensions
        self._of_sitemaps = of_sitemaps(extensions)
        self.stats = stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        listed = (
            list_of(crawler.settings, "SKIP_EXTENSIONS") if "SKIP_EXTENSIONS" in crawler.settings else SKIP_EXTENSIONS
        )
        extensions = extensions_of(listed)
        if not extensions:
            raise NotConfigured("SKIP_EXTENSIONS is empty")
        return cls(extensions, crawler.stats)

    def process_request(self, request: Request) -> None:
        """Refuse a useless extension."""
        path = urlsplit(request.url).path
        if useless(path, self.extensions) and not self._wanted(request, path):
            raise refused(self.stats, request, Reason.EXTENSION)

    def _wanted(self, request: Request, path: str) -> bool:
        """Whether the operator or a page in the browser asked for it, or it is a sitemap that is packed."""
        lease = lease_in(request)
        if request.meta.get("seed") or (lease is not None and lease.embed is not None):
            return True
        if lease is None or not lease.row.flags & (FLAG_SEED | FLAG_SITEMAP):
            return False
        return bool(lease.row.flags & FLAG_SEED) or not useless(path, self._of_sitemaps)
