"""The last pipeline: a page is archived, logged, and its lease ended. Nothing here waits for the disk.

A crawl calls it by itself (``crawl/completion/pipeline.py``); in ITEM_PIPELINES it lets items pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from crawlerproject.items import Page

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from crawlerproject.crawl.scheduler import FrontierScheduler


class WarcPipeline:
    """Ends every Page exactly once; other items pass."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Scrapy's way in."""
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        """Archive and end a Page."""
        if isinstance(item, Page) and not item.lease.ended:
            scheduler = cast("FrontierScheduler", self._crawler.engine.scheduler)
            poison, row = scheduler.crawl.poison, item.lease.row
            scheduler.finish(item)
            if poison.suspects and item.wire is not None:
                poison.acquit(row.key)
        return item
