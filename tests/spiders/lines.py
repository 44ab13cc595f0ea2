"""A spider in a crawl without a network: the test answers leases, the crawl's own steps end them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response
from scrapy.spiders import Spider
from twisted.python.failure import Failure

from crawlerproject.crawl.dispatch import InFlight
from crawlerproject.crawl.intake import Intake, LongPages, WebSub
from crawlerproject.frontier.passage import Lease
from crawlerproject.items import LeaseResult
from crawlerproject.pipelines.warc import PageProcessor
from crawlerproject.reading.jobs import ReadPage
from crawlerproject.reading.page_reader import PageReader
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.feeds.feeds import Feed
from crawlerproject.spiders.web import WebSpider
from crawlerproject.stores.poison import Poison
from tests.crawl.sessions import HOST, Bench, Stats, settings_of
from tests.exchanges import under_lease


class NoProcesses:
    """Reading processes that must not be asked."""

    def close(self) -> None:
        pass


class Line(Bench):
    """A session, the pipelines and a spider of the class given."""

    def __init__(self, folder: Path, spider: type[WebSpider] = WebSpider, **given: Any) -> None:
        super().__init__(folder, **given)
        crawler = Crawler(spider, settings_of(OWN_ERRORS_MAX_IN_A_ROW=3))
        crawler.stats = cast("Any", Stats())
        self.counts = cast("Stats", crawler.stats)
        self.stopped: list[str] = []
        self.web = spider.from_crawler(crawler, seeds=f"{HOST}/")
        crawler.spider = cast("Spider", self.web)
        crawler.crawling = True
        scraper = SimpleNamespace(itemproc=self)
        crawler.engine = cast("Any", SimpleNamespace(close_spider_async=self._stop, scraper=scraper))
        self.processor = PageProcessor(crawler=crawler)
        self.poison = Poison(self.folder, self.now)
        self.intake = Intake(self.session, self.run, lambda: None)
        self.ended: list[LeaseResult] = []
        self.asked_hubs: list[Any] = []
        self._provide()

    def _provide(self) -> None:
        processes: Any = NoProcesses()
        in_flight = InFlight()
        long = LongPages(self.session.pages, self.intake, self.poison, in_flight, self.web.count_error)
        websub = WebSub(None, self.intake, self.run)
        websub.feed_met = self._feed_met  # type: ignore[method-assign]
        websub.hub_moved = lambda lease, target, hops: self.asked_hubs.append((target.url, hops))  # type: ignore[method-assign]
        reader = PageReader(processes, self.poison, "foobot", self.stats)
        duplicates = self.session.models.duplicates
        self.web.services.provide(self.frontier.renders)
        self.web.services.provide(duplicates, self.poison, in_flight, long, self.intake, self.frontier, reader, websub)

    async def process_item_async(self, result: LeaseResult) -> None:
        """What the spider hands on."""
        self.ended.append(result)
        await self.processor.process_item_async(result)

    def _feed_met(self, lease: Lease, links: Iterable[str], feed: Feed) -> bool:
        self.asked_hubs.append((list(links), feed.hubs))
        return True

    async def _stop(self, reason: str) -> None:
        self.stopped.append(reason)

    def respond(self, lease: Lease, response: Response, read: ReadPage | None = None, **exchange: Any) -> list[Any]:
        """The lease's request gets this response, read as given if it is; the items that go to the project."""
        if read is not None:
            self.web.services[PageReader].read = lambda lease, response: read  # type: ignore[method-assign]
        response.request = under_lease(Request(lease.row.url), lease, **self._sent(response) | exchange)
        return asyncio.run(self._items(response))

    async def _items(self, response: Response) -> list[Any]:
        return await self.web.answered(response)

    def _sent(self, response: Response) -> dict[str, Any]:
        head = b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n" % (response.status, len(response.body))
        times: Any = {"started_at": self.now, "ended_at": self.now, "ttfb_seconds": 0.05}
        wire = Wire(b"GET / HTTP/1.1\r\n\r\n", head, response.body, response.status, ip="192.0.2.1", **times)
        return {"wire": wire}

    def fail(self, lease: Lease, error: Exception) -> None:
        """The lease's request ends with this error."""
        failure: Any = Failure(error)  # type: ignore[no-untyped-call]
        failure.request = under_lease(Request(lease.row.url), lease)
        asyncio.run(self.web.on_error(failure))

    @property
    def last(self) -> LeaseResult:
        """The end of the last lease."""
        return self.ended[-1]


def html(lease: Lease, body: str = "<p>words", status: int = 200, **headers: str) -> Response:
    """An HTML answer to a lease."""
    return HtmlResponse(
        lease.row.url, status=status, body=body.encode(), headers={"Content-Type": "text/html", **headers}
    )


def answer(lease: Lease, body: bytes, content_type: str = "", status: int = 200, **headers: str) -> Response:
    """An answer of another type."""
    given = {"Content-Type": content_type} if content_type else {}
    return Response(lease.row.url, status=status, body=body, headers={**given, **headers})


def unread(why: str, *, fault: bool = False) -> ReadPage:
    """What reading came to that failed."""
    return ReadPage(unread=why, fault=fault)
