"""What a crawl needs changed of Scrapy's own extensions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scrapy.http import Response
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from crawlerproject.extensions.scrapy_parts import CrawlFeeds, PlainStats
from crawlerproject.spiders.web import WebSpider


def test_statistics_count_as_scrapys_do() -> None:
    """Sums, bounds and defaults."""
    found = []
    for kind in (MemoryStatsCollector, PlainStats):
        stats = kind(get_crawler(WebSpider))
        stats.inc_value("a")
        stats.inc_value("a", 2, start=5)
        stats.set_value("b", 1)
        stats.max_value("b", 3)
        stats.min_value("c", 2)
        found.append((stats.get_stats(), stats.get_value("d", 7)))
    assert found[0] == found[1]


class Extracting(WebSpider):
    """One with items."""

    def extract(self, response: Response) -> Any:
        """One."""
        return {"url": response.url}


@pytest.mark.parametrize(("spider", "lines"), [(WebSpider, 1), (Extracting, 0)])
def test_a_feed_that_can_get_nothing_is_said_at_the_start(
    spider: type[WebSpider], lines: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A crawl of days would end with an empty file."""
    crawler = get_crawler(spider, {"FEEDS": {str(tmp_path / "items.json"): {"format": "json"}}})
    feeds = CrawlFeeds.from_crawler(crawler)

    feeds.open_spider(spider.__new__(spider))

    assert caplog.text.count("gets no items: the spider web makes none. Pages are in the archive") == lines
