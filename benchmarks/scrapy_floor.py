"""``python -m benchmarks.scrapy_floor [--requests 5000]``: what a request costs Scrapy when nothing is done with it.

No network, no parsing, no extensions, one middleware and one pipeline that pass on what they get: what is left is the
engine, below which no crawler that is built on it can go.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.http import HtmlResponse, Response

_IN_FLIGHT = 100


class Queue:
    """A scheduler that makes each request as it is asked for."""

    left = 0

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Queue:
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Nothing to open."""

    def close(self, reason: str) -> None:
        """Nothing to close."""

    def has_pending_requests(self) -> bool:
        return Queue.left > 0

    def enqueue_request(self, request: Request) -> bool:
        return True

    def next_request(self) -> Request | None:
        if not Queue.left:
            return None
        Queue.left -= 1
        return Request(f"http://floor.test/{Queue.left}", dont_filter=True, meta={"download_slot": "all"})


class Answer:
    """A download handler that has the answer already."""

    lazy = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Answer:
        return cls()

    async def download_request(self, request: Request) -> Response:
        return HtmlResponse(request.url, body=b"<html></html>", request=request)

    async def close(self) -> None:
        """Nothing to close."""


class Pass:
    """A middleware and a pipeline."""

    def process_response(self, request: Request, response: Response) -> Response:
        return response

    def process_item(self, item: Any) -> Any:
        return item


class Floor(Spider):
    """One item an answer."""

    name = "floor"

    async def start(self) -> AsyncIterator[Any]:
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request

    def parse(self, response: Response, **kwargs: Any) -> dict[str, int]:
        return {"bytes": len(response.body)}


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scrapy_floor", description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    Queue.left = given = parser.parse_args().requests
    settings: dict[str, Any] = {
        "SCHEDULER": Queue,
        "DOWNLOAD_HANDLERS": {"http": Answer},
        "DOWNLOADER_MIDDLEWARES_BASE": {},
        "SPIDER_MIDDLEWARES_BASE": {},
        "EXTENSIONS_BASE": {},
        "DOWNLOADER_MIDDLEWARES": {Pass: 1},
        "ITEM_PIPELINES": {Pass: 1},
        "CONCURRENT_REQUESTS": _IN_FLIGHT,
        "CONCURRENT_REQUESTS_PER_DOMAIN": _IN_FLIGHT,
        "CONCURRENT_ITEMS": 1,
        "DOWNLOAD_DELAY": 0,
        "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
    }
    process = AsyncCrawlerProcess(settings)
    process.crawl(Floor)
    began = time.process_time()
    process.start()
    print(f"Scrapy alone: {(time.process_time() - began) * 1e6 / given:.0f} µs of CPU a request")


if __name__ == "__main__":
    main()
