"""Scrapy's tasks of a request begin at once, where Python can."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy import signals

from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.extensions.crawl_task import only_in_a_crawl
from crawlerproject.runtime.eager_tasks import begin_as_usual, begin_early
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class EagerTasks:
    """From the start of a crawl by the frontier to its end: other spiders keep the order that they know."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Only in a crawl."""
        only_in_a_crawl(crawler)
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        """From now on."""
        if services_of(self._crawler).get(FrontierScheduler) is not None:
            begin_early(asyncio.get_running_loop())

    def spider_closed(self) -> None:
        """No more."""
        begin_as_usual(asyncio.get_running_loop())
