"""A leased page's way through Scrapy's engine in one asyncio task, where nothing but ours stands on that way.

Scrapy's own way takes a request through five tasks, eight Deferreds, four signals and six generators: 1.0 of the 7.3
million instructions of a small page (benchmarks/check.py). Where the chain has a middleware of the project, the
downloader's signals have listeners, or a slot delays, requests go Scrapy's way; so do errors, and what a spider
extracts. The engine counts each request as it does its own: it waits for it, is full with it, and ends after it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING, Any

from pydispatch import dispatcher
from scrapy import signals
from scrapy.core.downloader import Downloader
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scraper import Scraper, Slot
from scrapy.extensions.corestats import CoreStats
from scrapy.http import Response
from scrapy.spidermiddlewares.metacopy import MetaCopyDetectionMiddleware
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.log import logformatter_adapter
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from crawlerproject.middlewares.filetypes import FileTypesMiddleware
from crawlerproject.middlewares.leased import lease_in
from crawlerproject.middlewares.nevercrawl import NeverCrawlMiddleware
from crawlerproject.middlewares.pace import PaceMiddleware
from crawlerproject.middlewares.triage import TriageMiddleware

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_ALL = "all"  # the download slot of every leased request (crawl/requests.py)
# They let a leased request and its response pass.
_DOWNLOADER_CHAIN = {NeverCrawlMiddleware, FileTypesMiddleware, PaceMiddleware, TriageMiddleware}
# Looks at what a spider extracts, and at nothing else.
_SPIDER_CHAIN = {MetaCopyDetectionMiddleware}
_DOWNLOADER_SIGNALS = (
    signals.request_reached_downloader,
    signals.response_downloaded,
    signals.request_left_downloader,
)
# What the engine does with a request, and what is done here instead.
_ENGINE_STEPS = ("_start_scheduled_request", "_download", "_handle_downloader_output", "_remove_request")


class FastPath:
    """Takes leased pages and robots.txt files; what the browser asks for, and hubs, go Scrapy's way."""

    def __init__(self, crawler: Crawler, engine: Any) -> None:
        self._crawler = crawler
        self._engine = engine
        self._slot = engine._slot
        self._downloader = engine.downloader
        self._scraper = engine.scraper
        self._tasks: set[asyncio.Task[None]] = set()  # asyncio itself keeps none

    @classmethod
    def of(cls, crawler: Crawler) -> FastPath | None:
        """For a crawl whose engine runs; None where the way is not ours alone."""
        engine: Any = crawler.engine
        if not isinstance(engine, ExecutionEngine) or engine._slot is None or not _plain(engine):
            return None
        if not inspect.iscoroutinefunction(getattr(crawler.spider, "answered", None)):
            return None
        chain = engine.downloader.middleware.middlewares
        theirs = [middleware for middleware in chain if type(middleware) not in _DOWNLOADER_CHAIN]
        return None if theirs else cls(crawler, engine)

    def takes(self, request: Request) -> bool:
        """Whether this request goes here: a page's or a robots.txt's, and the downloader's signals have no listener."""
        lease = lease_in(request)
        if lease is None or not lease.row.kind.is_plain_get:
            return False
        return not _heard(self._crawler, _DOWNLOADER_SIGNALS)

    def begin(self, request: Request) -> bool:
        """Send it; whether the engine has room for another."""
        self._slot.add_request(request)
        self._downloader.active.add(request)
        task = asyncio.get_running_loop().create_task(self._run(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return not self._engine.needs_backout()

    async def _run(self, request: Request) -> None:
        slot = self._slot
        try:
            result = await self._download(request)
            slot.nextcall.schedule()
            if isinstance(result, Response):
                await self._scrape(result, request)
            else:
                await maybe_deferred_to_future(self._scraper.enqueue_scrape(result, request))
        except Exception:
            logger.exception("could not handle %s", request.url, extra={"url": request.url})
        finally:
            slot.remove_request(request)
            slot.nextcall.schedule()

    async def _download(self, request: Request) -> Response | Failure:
        """``Downloader.fetch``, without the middlewares."""
        try:
            handler = self._downloader.handlers._get_handler(request.url.partition(":")[0])
            response: Response = await handler.download_request(request)
            return response
        except Exception:
            return _failure()
        finally:
            self._downloader.active.remove(request)

    async def _scrape(self, response: Response, request: Request) -> None:
        """``ExecutionEngine._download`` once it has a response, and ``Scraper._scrape``."""
        crawler, scraper = self._crawler, self._scraper
        response.request = request
        line = scraper.logformatter.crawled(request, response, crawler.spider)
        if line is not None:
            logging.getLogger(ExecutionEngine.__module__).log(
                *logformatter_adapter(line), extra={"spider": crawler.spider}
            )
        if counted := _only_counted(crawler):
            counted(spider=crawler.spider)
        elif _heard(crawler, (signals.response_received,)):
            crawler.signals.send_catch_log(
                signal=signals.response_received, response=response, request=request, spider=crawler.spider
            )
        slot: Slot = scraper.slot
        slot.active.add(request)
        slot.active_size += max(len(response.body), Slot.MIN_RESPONSE_SIZE)
        try:
            given = await request.callback(response)  # type: ignore[misc]  # a coroutine function: ``of``
            if given or not isinstance(given, list):
                await self._hand_on(given, response, request)
        except Exception:
            scraper.handle_spider_error(_failure(), request, response)
        finally:
            slot.finish_response(response, request)

    async def _hand_on(self, given: Any, response: Response, request: Request) -> None:
        """Items and requests that a spider extracts: to its middlewares and pipelines, by Scrapy."""

        async def output(result: Any, request: Request) -> Iterable[Any]:
            return iterate_spider_output(given)  # type: ignore[no-any-return]  # neither generator nor coroutine

        chained = await self._scraper.spidermw.scrape_response_async(output, response, request)
        await self._scraper.handle_spider_output_async(chained, request, response)


def _failure() -> Failure:
    """Of the exception that is handled now, as Scrapy hands it on."""
    return Failure()  # type: ignore[no-untyped-call]


def _plain(engine: Any) -> bool:
    """Whether the engine's parts are Scrapy's own, without delays, and no spider middleware of the project is there."""
    downloader, scraper = engine.downloader, engine.scraper
    if any(getattr(type(engine), name) is not getattr(ExecutionEngine, name) for name in _ENGINE_STEPS):
        return False
    if type(downloader) is not Downloader or type(scraper) is not Scraper:
        return False
    delays = downloader._delay or downloader.ip_concurrency or _ALL in downloader.per_slot_settings
    if delays or 0 < downloader.domain_concurrency < downloader.total_concurrency:
        return False
    return all(type(middleware) in _SPIDER_CHAIN for middleware in scraper.spidermw.middlewares)


def _only_counted(crawler: Crawler) -> Callable[..., None] | None:
    """Scrapy's own counter of responses where no other listens to them: a call costs a third of its signal."""
    listeners = dispatcher.connections.get(id(crawler.signals.sender))
    if not listeners or dispatcher.Any in listeners or id(dispatcher.Any) in dispatcher.connections:
        return None
    receivers = [*dispatcher.liveReceivers(listeners.get(signals.response_received, ()))]
    if len(receivers) != 1 or getattr(receivers[0], "__func__", None) is not CoreStats.response_received:
        return None
    counted: Callable[..., None] = receivers[0]
    return counted


def _heard(crawler: Crawler, names: Iterable[object]) -> bool:
    """Whether one of these signals, or all, of this crawler or of any, have a listener."""
    for sender in (crawler.signals.sender, dispatcher.Any):
        listeners = dispatcher.connections.get(id(sender))
        if listeners and (dispatcher.Any in listeners or any(name in listeners for name in names)):
            return True
    return False
