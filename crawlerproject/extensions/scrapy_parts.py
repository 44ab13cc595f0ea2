"""Scrapy's log formatter, statistics, their log and feed exporter, with what a crawl needs changed."""

from __future__ import annotations

import logging
from typing import Any, Self

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter
from scrapy.extensions.logstats import LogStats
from scrapy.logformatter import LogFormatter, LogFormatterResult
from scrapy.statscollectors import MemoryStatsCollector

from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.guard.guard import guard_of
from crawlerproject.rules.printable import human_seconds
from crawlerproject.runtime.services import services_of
from crawlerproject.spiders.web import WebSpider
from crawlerproject.terminal import guard_log

# Of a feed that the web spider, which gives no items, was asked for.
_INSTEAD = "Pages are in the archive; scrapy process makes tables of them, an extract() of a spider items."
logger = logging.getLogger(__name__)


class GuardedLogFormatter(LogFormatter):
    """Scrapy's own, for spiders that are not ours; what a site sends reaches no terminal as it is."""

    def __init__(self) -> None:
        super().__init__()
        guard_log()  # every crawler makes one before it begins, also in another project


class QuietLogFormatter(GuardedLogFormatter):
    """No line a page: the request log has it, at a tenth of the cost (48 µs a page by our measurement)."""

    def crawled(self, *args: Any, **kwargs: Any) -> LogFormatterResult:
        """No line."""
        return None  # type: ignore[return-value]  # as its documentation allows

    def scraped(self, *args: Any, **kwargs: Any) -> LogFormatterResult:
        """No line."""
        return None  # type: ignore[return-value]  # as its documentation allows


class PlainStats(MemoryStatsCollector):
    """Scrapy's, but for its own way to look names up.

    That warns of a deprecated parameter, and makes a count 15 µs where it takes 0.2: some five a page.
    """

    __getattribute__ = object.__getattribute__


class RestingLogStats(LogStats):
    """Scrapy's line, and in it the hosts that rest: why nothing seems to happen."""

    _crawler: Crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        made = super().from_crawler(crawler)
        made._crawler = crawler
        return made

    def log(self, spider: Spider) -> None:
        """One line an interval."""
        super().log(spider)
        if resting := guard_of(self._crawler).pace.resting():
            first = max(resting, key=lambda name: resting[name])
            more = f" and {len(resting) - 1:,} more" if len(resting) > 1 else ""
            logger.info("Resting: %s (for %s)%s", first, human_seconds(resting[first]), more)


class CrawlFeeds(FeedExporter):
    """Feed exports (``-o``, ``-O``, ``FEEDS``), which a crawl that fetched nothing leaves as they are.

    ``-O`` on a crawl that has ended before would write an empty feed over the full one. Feeds get what a spider's
    ``extract`` yields. A page is no item of a feed, though item pipelines end it.
    """

    def open_spider(self, spider: Spider) -> None:
        """Begin them; one that can get nothing is reported at once, not when the crawl has ended."""
        super().open_spider(spider)
        own = {WebSpider.parse, WebSpider.extract}
        if isinstance(spider, WebSpider) and {type(spider).parse, type(spider).extract} == own:
            for slot in self.slots:
                logger.warning("%s gets no items: the spider %s makes none. %s", slot.uri, spider.name, _INSTEAD)

    async def close_spider(self, spider: Spider) -> None:
        """Store the feeds; those without an item only when something was fetched."""
        scheduler = services_of(self.crawler).get(FrontierScheduler)
        done = scheduler.crawl.run.tallies if scheduler is not None else None
        if done is not None and not (done.pages or done.errors):
            for slot in [slot for slot in self.slots if not slot.itemcount]:
                slot.store_empty = False
                logger.info("%s stays as it is: nothing was fetched", slot.uri)
        elif done is not None:
            for slot in [slot for slot in self.slots if not slot.itemcount]:
                logger.warning("%s has no items: the spider %s gave none. %s", slot.uri, spider.name, _INSTEAD)
        await super().close_spider(spider)
