"""The spider: makes one outcome of each response to a lease, and yields the items of derived spiders."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Self, cast

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.pipelines import ItemPipelineManager
from scrapy.settings import BaseSettings
from scrapy.utils.log import failure_to_exc_info
from scrapy.utils.misc import arg_to_iter
from twisted.python.failure import Failure

from crawlerproject.config.arguments import arguments_of
from crawlerproject.config.crawl_file import apply, crawl_file_of
from crawlerproject.config.old_settings import warn_unused
from crawlerproject.config.promised_settings import keep_addon, keep_whole
from crawlerproject.config.values import let_in_flight, obeyed_for
from crawlerproject.crawl.engine import close_crawl
from crawlerproject.crawl.intake import MOST_AT_ONCE, Intake, LongPages, WebSub
from crawlerproject.crawl.lease_requests import result_of_error
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.crawl.start.preflight import absolute_seeds, mode_and_budget, seeds_with_options
from crawlerproject.errors import FetchError, LeaseOver
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.learned.render_gains import Renders
from crawlerproject.frontier.passage import Lease
from crawlerproject.items import LeaseResult
from crawlerproject.parse.links import HOP_REDIRECT, hops_to, redirected_enough
from crawlerproject.parse.page_view import PageView, shown_page
from crawlerproject.reading.jobs import ReadPage
from crawlerproject.reading.outcomes import (
    Consent,
    Outcomes,
    goes_to_browser,
    rendered_result,
    result_of,
    result_of_hub,
)
from crawlerproject.reading.page_reader import PageReader
from crawlerproject.reasons import RESERVED, Reason
from crawlerproject.request_meta import LeasedExchange, lease_in, leased, location
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.consent.verdict import PURPOSES
from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.urls import Address, Base, url_in_header
from crawlerproject.runtime.services import Services, services_of

logger = logging.getLogger(__name__)
_HOOKS = ("extract", "parse", "choose_links")


class WebSpider(Spider):
    """``scrapy crawl web -a seeds=FILE-or-URLs [-a scope=any|domain|host|path]``.

    ``-a include=… -a exclude=…`` choose URLs by patterns, ``-a max_pages=…`` and its likes end it.
    ``-a mode=recrawl [-a budget=N]`` visits known pages again, those first whose visit is worth most.
    """

    name = "web"
    scope = "any"  # which links are followed; derived spiders may set another

    def __init__(
        self,
        seeds: str | None = None,
        scope: str | None = None,
        mode: str = "crawl",
        budget: str = "",
        accept: str = "",
        **kwargs: Any,
    ) -> None:
        self.arguments = arguments_of(kwargs, type(self))  # as given; crawl/start/resumption.py: as they hold
        super().__init__(**kwargs)
        self.seed_options: dict[str, str] = {}  # by URL
        self.seeds: list[Address] | None = None  # None: not a crawl of ours (shell, parse)
        own = type(self).scope
        self.scope_given = scope or (own if own != WebSpider.scope else None)
        self.scope = self.scope_given or WebSpider.scope
        self.accept = accept  # changed arguments of a continued crawl that are intended
        self.recrawl, self.budget = mode_and_budget(mode, budget)
        if self.recrawl:
            self.seeds = []
        if seeds is None and self.start_urls and self.seeds is None:  # of a derived spider
            seeds = ",".join(self.start_urls)
        self.seeds_given = absolute_seeds(seeds or "")
        if seeds is not None:
            self.seeds, _, self.seed_options = seeds_with_options(seeds, self.scope)
        self.errors = 0  # of our own
        self.errors_in_a_row = 0
        self.max_errors_in_a_row = 0
        # Whether it is a derived spider that extracts items or chooses links.
        self._hooked = any(getattr(type(self), name) is not getattr(WebSpider, name) for name in _HOOKS)
        self._processor: ItemPipelineManager | None = None  # of the crawl, once it runs
        self.services: Services  # of the running crawl; without one no request has a lease
        self._outcomes: Outcomes
        self._consent: Consent

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Apply the crawl's own settings, from its folder, below those of the spider and of the command line."""
        addons = settings.getdict("ADDONS")
        super().update_settings(settings)
        keep_addon(settings, addons)
        apply(crawl_file_of(settings, cls.name), settings)
        let_in_flight(settings)
        keep_whole(settings)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Build the spider with the crawl's settings."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.max_errors_in_a_row = crawler.settings.getint("OWN_ERRORS_MAX_IN_A_ROW")
        services = spider.services = services_of(crawler)
        spider._consent = Consent(
            purpose=crawler.settings["PURPOSE"] or PURPOSES[0],
            obeyed=bool(obeyed_for(crawler.settings)),
            site_words=lambda url: services[Frontier].state.robots.words(url),  # noqa: PLW0108 - of the session of then
            license_words=lambda *asked: services[Frontier].state.robots.license_words(*asked),  # noqa: PLW0108
        )
        spider._outcomes = Outcomes(
            crawler.settings["CRAWLER_NAME"],
            sitemaps=crawler.settings.getbool("SITEMAPS"),
            consent=spider._consent,
        )
        if spider.seeds is not None:
            warn_unused(spider, crawler.settings)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Queue the seeds in the frontier; a Request is made when one is leased."""
        if self.recrawl:
            with self.services[FrontierScheduler].choosing():
                await self._add_seeds()
                self._add_revisits()
        else:
            await self._add_seeds()
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request

    async def _add_seeds(self) -> None:
        seeds = self.seeds or []
        for first in range(0, max(len(seeds), 1), MOST_AT_ONCE):
            self.services[Intake].add_seeds(seeds[first : first + MOST_AT_ONCE], known_too=True)
            await asyncio.sleep(0)

    def _add_revisits(self) -> None:
        queued = self.services[FrontierScheduler].add_revisits(self.budget)
        if queued is not None:
            days = self.settings["RECRAWL_RECENT_DAYS"]
            recent = "" if queued else f" (RECRAWL_RECENT_DAYS={days} leaves out those that were lately)"
            logger.info("%s visited again%s", counted(queued, "known page is", "known pages are"), recent)
            self.crawler.stats.set_value("recrawl/queued", queued)

    def parse(self, response: Response, **kwargs: Any) -> Any:
        """Handle a response that belongs to no lease: show it for ``scrapy parse``, or extract a spider's own request.

        A derived spider that overrides ``parse`` gets the responses that ``extract`` would get.
        """
        if self.seeds is None:
            return shown_page(PageView(self.crawler, response))
        return self.extract(response) if response.status == 200 else ()

    async def answered(self, response: Response, **kwargs: Any) -> list[Any]:
        """Any response to a lease: a page, a redirect, an error, a robots.txt. The lease has ended afterwards.

        The crawl ends it by its own steps; the items of ``extract`` are returned and go to the project's pipelines.
        """
        exchange = leased(response.request) if response.request else None
        if exchange is None:  # a middleware sent another request in its place
            return await items_of(self.parse(response))
        errors, items, result = self.errors, list[Any](), None
        with exchange.mark():
            read = self.services[PageReader].read(exchange.lease, response)
            if isinstance(read, ReadPage):
                result = self._result(exchange, response, read)
                if self._hooked:
                    items = self._extracted(result, response)
        if result is None:
            try:
                read = await cast("Awaitable[ReadPage]", read)
            except FetchError as error:  # no process could be had for it
                await self.complete(result_of_error(exchange.lease, error))
                return []
            with exchange.mark():
                result = self._result(exchange, response, read)
                if self._hooked:
                    items = self._extracted(result, response)
        if not isinstance(items, list):
            items = await self._late(result, items)
        await self.complete(result)
        if self.errors == errors:
            self.errors_in_a_row = 0
        return items

    def _result(self, exchange: LeasedExchange, response: Response, read: ReadPage) -> LeaseResult:
        lease, wire, rendered = exchange.lease, exchange.wire, exchange.rendered
        if wire is None and rendered is None:
            return LeaseResult.failed(lease, Reason.MIDDLEWARE, "a downloader middleware answered")
        if read.fault:
            self.count_error()
        if rendered is not None:
            return rendered_result(lease, rendered, read, self._consent)
        assert wire is not None
        if lease.kind.is_hub:
            return self._of_hub(response, lease, wire)
        try:
            renders = self.services[Renders]
            to_render = renders.mode != "never" and goes_to_browser(lease, read, renders.wanted)
            result = self._outcomes.fetched(lease, response, wire, read, to_render=to_render)
            if result.target is not None:  # of a redirect
                self.services[Intake].add([result.target])
            if read.foreign:
                self.crawler.stats.inc_value(f"refused/{Reason.FOREIGN_ENTRY}", read.foreign)
            if read.feed is not None and result.reason not in RESERVED:
                links = [url_in_header(value) for value in response.headers.getlist("Link")]
                if self.services[WebSub].feed_met(lease, links, read.feed):
                    self.crawler.stats.inc_value("websub/asked")
        except Exception as error:
            result = result_of(lease, response, wire)
            result.error = self._own_error(lease, error)
        return result

    def _of_hub(self, response: Response, lease: Lease, wire: Wire) -> LeaseResult:
        """A hub that cannot take our request may name another (307 or 308, WebSub 5.1): it is asked the same."""
        result = result_of_hub(lease, response, wire)
        if response.status in (307, 308):
            target = Base(lease.row.url).join(location(response.headers))
            if target is not None and not redirected_enough(lease.row):
                self.services[WebSub].hub_moved(lease, target, hops_to(lease.row, HOP_REDIRECT))
                result.location, result.error = target.url, ""
        return result

    def _extracted(self, result: LeaseResult, response: Response) -> Any:
        """The list of a derived spider's items, or what must be awaited for it; it chooses among the links as well.

        Of a page that it fails to choose links of, none is followed.
        """
        nothing = response.status != 200 or not result.answered or not result.lease.kind.is_extracted
        nothing = nothing or result.reason in RESERVED
        items: Any = []
        if not nothing and (type(self).extract is not WebSpider.extract or type(self).parse is not WebSpider.parse):
            try:
                given = self.extract(response)
                items = given if is_late(given) else list(arg_to_iter(given))
            except Exception as error:
                result.error = self._own_error(result.lease, error)
        try:
            self.choose_links(result)
        except Exception as error:
            result.found, failure_text = (), self._own_error(result.lease, error)
            if result.answered or result.rendered is not None:
                result.error = failure_text
        return items

    async def _late(self, result: LeaseResult, given: Any) -> list[Any]:
        """The items of an ``async def extract``. Other pages are read meanwhile, so this one is not marked."""
        try:
            return await items_of(given)
        except Exception as error:
            result.error = self._own_error(result.lease, error)
            return []

    def extract(self, response: Response) -> Any:
        """For derived spiders: the items of a response with status 200, which is archived in any case.

        May be all that a Scrapy callback may be: a generator, a list, one item, ``async def``.
        """
        return () if type(self).parse is WebSpider.parse else self.parse(response)

    def choose_links(self, page: LeaseResult) -> None:
        """For derived spiders that follow fewer links: they replace ``page.found`` by a shorter list.

        Called for each answer, also for robots.txt files and sitemaps, whose ``found`` are what they name.
        """

    async def on_error(self, failure: Failure) -> None:
        """No usable response: the attempt is logged and judged all the same."""
        request: Request = cast("Any", failure).request  # Scrapy adds it to Twisted's class
        lease, error = lease_in(request), failure.value
        if lease is None or error is None:
            return
        if isinstance(error, LeaseOver):
            self.services[LongPages].requeue(lease)
            return
        result = result_of_error(lease, error)
        if result.reason is Reason.INTERNAL_ERROR:
            known = {"url": lease.row.url, "host": lease.row.host}
            logger.error("unexpected failure of %s", lease.row.url, exc_info=failure_to_exc_info(failure), extra=known)
            self.count_error()
        await self.complete(result)

    def complete(self, result: LeaseResult) -> Awaitable[Any]:
        """Have the item pipelines compare and archive a page, queue its links and end its lease."""
        if self._processor is None:
            assert self.crawler.engine is not None
            self._processor = self.crawler.engine.scraper.itemproc
        return self._processor.process_item_async(result)

    def _own_error(self, lease: Lease, error: Exception) -> str:
        """Count an error of ours that a page met; what the request log says of the page."""
        known = {"url": lease.row.url, "host": lease.row.host}
        logger.error("could not read %s", lease.row.url, exc_info=error, extra=known)
        self.count_error()
        return "could not be read"

    def count_error(self) -> None:
        """Count an error of our own; many in a row stop the crawl."""
        self.errors += 1
        self.errors_in_a_row += 1
        self.crawler.stats.inc_value("errors/ours")
        if self.errors_in_a_row == self.max_errors_in_a_row:
            logger.error("%s of our own in a row: the crawl stops", counted(self.errors_in_a_row, "error"))
            close_crawl(self.crawler, "errors_in_a_row")


def is_late(given: Any) -> bool:
    """Whether what a callback returned must be awaited: ``async def``, with or without ``yield``."""
    return inspect.isawaitable(given) or hasattr(given, "__aiter__")


async def items_of(given: Any) -> list[Any]:
    """The items of whatever Scrapy accepts from a callback."""
    if inspect.isawaitable(given):
        given = await given
    if hasattr(given, "__aiter__"):
        return [item async for item in given]
    return list(arg_to_iter(given))
