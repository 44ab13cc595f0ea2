"""Scrapy's SCHEDULER over an archive: hands out its captures, and takes no request in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.spiders import CrawlSpider

from crawlerproject.reparse.captures import Chosen, chosen
from crawlerproject.stores.crawl_dir import CrawlDir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from scrapy.crawler import Crawler

SETTING = "REPARSE"
"""Of this run alone: ``{"folders": […], "every": …, "callback": …}`` as JSON."""
LEFT_OUT = "reparse/requests_left_out"
"""Statistic: requests that the spider yielded."""


class ArchivedRequest(Request):
    """For one capture; ``chosen`` is None on a copy that something else made of it."""

    chosen: Chosen | None = None


class ArchiveScheduler(BaseScheduler):
    """One request a capture, when the engine has room for it: never more of them in memory than are being read."""

    def __init__(self, crawler: Crawler, folders: list[CrawlDir], *, every: bool, callback: str) -> None:
        self._crawler = crawler
        self._callback = callback
        self._left: Iterator[Chosen] = chosen(folders, every=every)
        self._next = next(self._left, None)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As the command has set it."""
        asked = json.loads(crawler.settings[SETTING])
        folders = [CrawlDir(folder) for folder in asked["folders"]]
        return cls(crawler, folders, every=asked["every"], callback=asked["callback"])

    def has_pending_requests(self) -> bool:
        """Whether a capture is left."""
        return self._next is not None

    def enqueue_request(self, request: Request) -> bool:
        """Leave it out, and count it: nothing is fetched."""
        self._count(LEFT_OUT)
        return False

    def next_request(self) -> Request | None:
        """The request of the next capture."""
        if (capture := self._next) is None:
            return None
        self._next = next(self._left, None)
        spider = self._crawler.spider
        assert spider is not None
        url = capture.capture.row.url
        request = ArchivedRequest(url, dont_filter=True)
        request.chosen = capture
        request.callback = callback_of(spider, url, self._callback)
        return request

    def _count(self, key: str) -> None:
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value(key)


def callback_of(spider: Spider, url: str, named: str) -> Callable[..., Any] | None:
    """What reads a page: the method that is ``named``, ``extract`` of a WebSpider, a CrawlSpider's rule, ``parse``."""
    if named:
        found: Callable[..., Any] = getattr(spider, named)
        return found
    if isinstance(spider, CrawlSpider):
        return _of_rule(spider, url)
    return getattr(spider, "extract", None)


def _of_rule(spider: CrawlSpider, url: str) -> Callable[..., Any] | None:
    """As ``scrapy parse --rules``: the callback of the first rule that has one and would follow such a link."""
    for rule in spider.rules:
        if rule.link_extractor.matches(url):
            given = rule.callback
            return getattr(spider, given) if isinstance(given, str) else given or _nothing
    return None


def _nothing(response: Any) -> tuple[()]:
    return ()
