"""Scrapy's feed exports for spiders of other projects: their items, and not the pages that went into the archive."""

from __future__ import annotations

from typing import Any

from scrapy import Spider
from scrapy.extensions.feedexport import FeedExporter

from crawlerproject.items import Page


class ItemFeeds(FeedExporter):
    """``-O items.jsonl`` and FEEDS as ever."""

    def item_scraped(self, item: Any, spider: Spider) -> None:
        """Pass everything on but our Page."""
        if not isinstance(item, Page):
            super().item_scraped(item, spider)
