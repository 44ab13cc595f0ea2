"""Feed exports (``-o``, ``-O``, ``FEEDS``): Scrapy's own, which a crawl that fetched nothing leaves as they are.

They get what a spider's ``extract`` yields. Pages do not pass through ITEM_PIPELINES, so no feed has one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.extensions.feedexport import FeedExporter

from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from scrapy import Spider

logger = logging.getLogger(__name__)


class CrawlFeeds(FeedExporter):
    """``-O`` on a crawl that has ended before would write an empty feed over the full one."""

    async def close_spider(self, spider: Spider) -> None:
        """Store the feeds; those without an item only when something was fetched."""
        scheduler = services_of(self.crawler).get(FrontierScheduler)
        done = scheduler.crawl.run.tallies if scheduler is not None else None
        if done is not None and not (done.pages or done.errors):
            for slot in [slot for slot in self.slots if not slot.itemcount]:
                slot.store_empty = False
                logger.info("%s stays as it is: nothing was fetched", slot.uri)
        await super().close_spider(spider)
