"""The last pipeline: a page is archived, logged, and its lease ended. Nothing here waits for the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from scrapy import signals

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
        pipeline = cls(crawler)
        crawler.signals.connect(pipeline.item_error, signal=signals.item_error)
        return pipeline

    def item_error(self, item: Any) -> None:
        """A fault of ours while a Page was ended: its row stays queued, and many in a row stop the crawl."""
        if isinstance(item, Page):
            scheduler = cast("FrontierScheduler", self._crawler.engine.scheduler)
            scheduler.put_back(item)
            spider: Any = self._crawler.spider
            spider.count_error()

    def process_item(self, item: Any) -> Any:
        """Archive and end a Page."""
        if isinstance(item, Page):
            scheduler = cast("FrontierScheduler", self._crawler.engine.scheduler)
            poison, row = scheduler.crawl.poison, item.lease.row
            scheduler.finish(item)
            if poison.suspects and item.wire is not None:
                poison.acquit(row.key)
        return item
