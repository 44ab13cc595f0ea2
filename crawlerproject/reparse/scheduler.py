"""Scrapy's SCHEDULER over an archive: hands out its captures, and takes no request in."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.spiders import CrawlSpider

from crawlerproject.reparse.captures import Chosen, chosen
from crawlerproject.reparse.parts import Parts
from crawlerproject.stores.crawl_dir import CrawlDir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from scrapy.crawler import Crawler

SETTING = "REPARSE"
"""Of this run alone: ``{"folders": […], "every": …, "callback": …, "out": …}`` as JSON."""
LEFT_OUT = "reparse/requests_left_out"
"""Statistic: requests that the spider yielded."""


class ArchivedRequest(Request):
    """For one capture; ``chosen`` is None on a copy that something else made of it."""

    chosen: Chosen | None = None


class ArchiveScheduler(BaseScheduler):
    """One request a capture, when the engine has room for it: never more of them in memory than are being read."""

    def __init__(self, crawler: Crawler, left: Iterator[Chosen], callback: str, parts: Parts | None = None) -> None:
        """``parts``: where items are kept, in files that hold those of so many captures each."""
        self._crawler = crawler
        self._callback = callback
        self._left, self._parts = left, parts
        self._next = next(self._left, None)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As the command has set it."""
        asked = json.loads(crawler.settings[SETTING])
        folders = [CrawlDir(folder) for folder in asked["folders"]]
        if not asked["out"]:
            return cls(crawler, chosen(folders, every=asked["every"]), asked["callback"])
        parts = Parts(Path(asked["out"]))
        crawler.signals.connect(parts.take, signals.item_scraped)
        left = chosen(folders, every=asked["every"], indexes=parts.plan.indexes)
        return cls(crawler, islice(left, parts.captures_done, None), asked["callback"], parts)

    def has_pending_requests(self) -> bool:
        """Whether a capture is left."""
        return self._next is not None

    def enqueue_request(self, request: Request) -> bool:
        """Leave it out, and count it: nothing is fetched."""
        self._count(LEFT_OUT)
        return False

    def next_request(self) -> Request | None:
        """The request of the next capture."""
        if (capture := self._next) is None or not self._has_room():
            return None
        self._next = next(self._left, None)
        spider = self._crawler.spider
        assert spider is not None
        url = capture.capture.row.url
        request = ArchivedRequest(url, dont_filter=True)
        request.chosen = capture
        request.callback = callback_of(spider, url, self._callback)
        return request

    def close(self, reason: str) -> None:
        """Scrapy: all that was handed out has ended."""
        if self._parts is not None:
            self._parts.close(complete=self._next is None)

    def _has_room(self) -> bool:
        """Whether the next capture belongs to this part, or all of the part have ended and it is whole now."""
        if self._parts is None:
            return True
        if self._parts.full:
            engine = self._crawler.engine
            assert engine is not None
            assert engine._slot is not None
            if engine._slot.inprogress:  # until the items of its page have passed the pipelines
                return False
            self._parts.finish()
        self._parts.handed_out()
        return True

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
