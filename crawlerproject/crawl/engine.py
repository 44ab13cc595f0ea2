"""Scrapy's engine: when it asks for a request, and a leased page's way through it in one asyncio task.

That way is taken where nothing but ours stands on it. Scrapy's own takes a request through five tasks, eight
Deferreds, four signals and six generators: 1.0 of the 7.3 million instructions of a small page (benchmarks/check.py).
Where the chain has a middleware of the project, the downloader's signals have listeners, or a slot delays, requests go
Scrapy's way; so do errors, and what a spider extracts. The engine counts each request as it does its own: it waits for
it, is full with it, and ends after it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any

from pydispatch import dispatcher
from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scraper import Scraper, Slot
from scrapy.crawler import Crawler
from scrapy.extensions.corestats import CoreStats
from scrapy.http import Response
from scrapy.logformatter import LogFormatter
from scrapy.spidermiddlewares.metacopy import MetaCopyDetectionMiddleware
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.log import logformatter_adapter
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from crawlerproject.crawl.run import Run
from crawlerproject.errors import FrontierDamaged
from crawlerproject.middlewares.filetypes import FileTypesMiddleware
from crawlerproject.middlewares.nevercrawl import NeverCrawlMiddleware
from crawlerproject.middlewares.pace import PaceMiddleware
from crawlerproject.middlewares.triage import TriageMiddleware
from crawlerproject.request_meta import lease_in
from crawlerproject.rules.row_kinds import ROW_KINDS

logger = logging.getLogger(__name__)
_scrapys_logger = logging.getLogger(ExecutionEngine.__module__)

_ALL = "all"  # the download slot of every leased request (crawl/lease_requests.py)
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


class Engine:
    """Has Scrapy's engine ask, by one timer at most, for the earliest moment that was asked for (epoch seconds)."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        self._crawler = crawler
        self._run = run
        self._timer: CallLaterResult | None = None
        self._at = 0.0

    def ask_at(self, moment: float | None, now: float) -> None:
        """Have the engine ask then, or sooner when that was asked for; None: no moment."""
        timer = self._timer
        if moment is None or (timer is not None and self._at <= moment):
            return
        if timer is not None:
            timer.cancel()
        self._at = moment
        self._timer = call_later(max(0.0, moment - now), self._ask_now)

    def cancel(self) -> None:
        """Forget the moment."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def ask(self) -> None:
        """Have the engine ask in the next turn of the loop. One that is full asks when a request has ended."""
        engine = self._crawler.engine
        if engine is None or engine.spider is None or self._run.closed or engine.needs_backout():
            return
        # Scrapy 2.19 has no public call for it but ``crawl``, which takes a request and hands it back to the scheduler.
        _ask_soon(engine._slot)

    def _ask_now(self) -> None:
        self._timer = None
        self.ask()

    def requests(self) -> set[Request]:
        """The requests in progress."""
        slot: Any = getattr(self._crawler.engine, "_slot", None)
        return set() if slot is None else slot.inprogress

    def stop_for_damage(self, error: FrontierDamaged) -> None:
        """End the crawl: what cannot be read of its frontier would be forgotten."""
        logger.error("%s The crawl stops.", error)
        self.stop("frontier_damaged")

    def stop(self, reason: str) -> None:
        """End the crawl; what is on its way ends first."""
        close_crawl(self._crawler, reason)


def _ask_soon(slot: Any) -> None:
    """Have the engine ask in the next turn of the loop; where it will, Scrapy would find so after an import."""
    if slot.nextcall._call is None:
        slot.nextcall.schedule()


def close_crawl(crawler: Crawler, reason: str) -> None:
    """End the crawl, with this ``finish_reason``; what is on its way ends first."""
    assert crawler.engine is not None
    deferred_from_coro(crawler.engine.close_spider_async(reason=reason))


class FastPath:
    """Takes leased pages and robots.txt files; what the browser asks for, and hubs, go Scrapy's way."""

    def __init__(self, crawler: Crawler, engine: Any) -> None:
        self._crawler = crawler
        self._engine = engine
        self._slot = engine._slot
        self._downloader = engine.downloader
        self._scraper = engine.scraper
        self._tasks: set[asyncio.Task[None]] = set()  # asyncio itself keeps none
        # What the signal of responses holds, and Scrapy's own counter if it is that.
        self._counter: tuple[object, Callable[..., None] | None] | None = None

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
        plain = lease is not None and ROW_KINDS[lease.row.flags].is_plain_get
        return plain and not _heard(self._crawler, _DOWNLOADER_SIGNALS)

    def begin(self, request: Request) -> bool:
        """Send it; whether the engine has room for another."""
        self._slot.add_request(request)
        self._downloader.active.add(request)
        task = asyncio.get_running_loop().create_task(self._run(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return not self._engine.needs_backout()

    async def _run(self, request: Request) -> None:
        """``Downloader.fetch`` without the middlewares, then ``ExecutionEngine._download`` and ``Scraper._scrape``."""
        slot, scraper = self._slot, self._scraper
        try:
            response: Response | Failure
            try:
                handler = self._downloader.handlers._get_handler(request.url.partition(":")[0])
                response = await handler.download_request(request)
            except Exception:
                response = _failure()
            finally:
                self._downloader.active.remove(request)
            _ask_soon(slot)
            if not isinstance(response, Response):
                await maybe_deferred_to_future(scraper.enqueue_scrape(response, request))
                return
            response.request = request
            self._announce(response, request)
            scraper.slot.active.add(request)
            scraper.slot.active_size += max(len(response.body), Slot.MIN_RESPONSE_SIZE)
            try:
                given = await request.callback(response)  # type: ignore[misc]  # a coroutine function: ``of``
                if given or not isinstance(given, list):
                    await self._hand_on(given, response, request)
            except Exception:
                scraper.handle_spider_error(_failure(), request, response)
            finally:
                scraper.slot.finish_response(response, request)
        except Exception:
            logger.exception("could not handle %s", request.url, extra={"url": request.url})
        finally:
            slot.remove_request(request)
            _ask_soon(slot)

    def _announce(self, response: Response, request: Request) -> None:
        """The line in Scrapy's log, and its signal or what alone listens to it."""
        crawler, formatter = self._crawler, self._scraper.logformatter
        # Scrapy's own is of DEBUG: it is not made where it would not be written.
        if type(formatter) is not LogFormatter or _scrapys_logger.isEnabledFor(logging.DEBUG):
            line = formatter.crawled(request, response, crawler.spider)
            if line is not None:
                _scrapys_logger.log(*logformatter_adapter(line), extra={"spider": crawler.spider})
        connections = dispatcher.connections
        listeners = connections.get(id(crawler.signals.sender)) or {}
        receivers = listeners.get(signals.response_received, ())
        if len(receivers) == 1 and dispatcher.Any not in listeners and id(dispatcher.Any) not in connections:
            if self._counter is None or self._counter[0] is not receivers[0]:
                self._counter = receivers[0], _counter_among(receivers)
            if (counted := self._counter[1]) is not None:  # no other listens: a call costs a third of its signal
                counted(spider=crawler.spider)
                return
        if _heard(crawler, (signals.response_received,)):
            crawler.signals.send_catch_log(
                signal=signals.response_received, response=response, request=request, spider=crawler.spider
            )

    async def _hand_on(self, given: Any, response: Response, request: Request) -> None:
        """Items and requests that a spider extracts: to its middlewares and pipelines, by Scrapy."""

        async def output(result: Any, request: Request) -> Iterable[Any]:
            return iterate_spider_output(given)  # type: ignore[no-any-return]  # neither generator nor coroutine

        chained = await self._scraper.spidermw.scrape_response_async(output, response, request)
        await self._scraper.handle_spider_output_async(chained, request, response)


def _counter_among(receivers: list[Any]) -> Callable[..., None] | None:
    """Scrapy's own counter of responses, where the first of these is that."""
    live: list[Callable[..., None]] = [*dispatcher.liveReceivers(receivers)]
    return live[0] if live and getattr(live[0], "__func__", None) is CoreStats.response_received else None


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


def _heard(crawler: Crawler, names: Iterable[object]) -> bool:
    """Whether one of these signals, or all, of this crawler or of any, have a listener."""
    for sender in (crawler.signals.sender, dispatcher.Any):
        listeners = dispatcher.connections.get(id(sender))
        if listeners and (dispatcher.Any in listeners or not listeners.keys().isdisjoint(names)):
            return True
    return False
