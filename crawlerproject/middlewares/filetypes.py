"""Refuses requests for files that are never worth fetching, by their extension, where the frontier's filters do not."""

from __future__ import annotations

from collections.abc import Collection
from typing import Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.statscollectors import StatsCollector

from crawlerproject.config.values import list_of
from crawlerproject.guard.guard import refused
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import lease_in
from crawlerproject.rules.url.refused_urls import extensions_of, url_path, useless


class FileTypesMiddleware:
    """``SKIP_EXTENSIONS``; an empty list switches it off. ``meta["seed"]`` marks what the operator asked for."""

    def __init__(self, extensions: Collection[str], stats: StatsCollector | None) -> None:
        self.extensions = extensions
        self.stats = stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extensions = extensions_of(list_of(crawler.settings, "SKIP_EXTENSIONS"))
        if not extensions:
            raise NotConfigured("SKIP_EXTENSIONS is empty")
        return cls(extensions, crawler.stats)

    def process_request(self, request: Request) -> None:
        """Refuse a useless extension, unless the operator (``meta["seed"]``) or the frontier asks for it."""
        if (
            lease_in(request) is None
            and not request.meta.get("seed")
            and useless(url_path(request.url), self.extensions)
        ):
            raise refused(self.stats, request, Reason.EXTENSION)
