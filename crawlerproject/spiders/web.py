"""The spider: reads what was fetched into one Page, its links included, and yields a project's items."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.log import failure_to_exc_info
from scrapy.utils.misc import arg_to_iter

from crawlerproject.config.arguments import arguments_of
from crawlerproject.config.crawl_dir import crawl_folder
from crawlerproject.config.crawl_file import apply, read_crawl_file
from crawlerproject.config.promised_settings import keep_addon, keep_whole
from crawlerproject.config.unused_settings import warn_unused
from crawlerproject.config.values import let_in_flight
from crawlerproject.crawl.completion.long_pages import MOST_AT_ONCE
from crawlerproject.crawl.completion.pipeline import PagePipeline
from crawlerproject.crawl.intake import Intake
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.crawl.start.preflight import absolute_seeds, mode_and_budget, seeds_with_options
from crawlerproject.crawl.websub import WebSub
from crawlerproject.errors import FetchError, LeaseOver
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.lease import Lease
from crawlerproject.guard.refusal import Refused
from crawlerproject.items import Page
from crawlerproject.middlewares.leased import LeasedExchange, lease_in, leased
from crawlerproject.parse.links import (
    HOP_REDIRECT,
    MAX_REDIRECTS,
    hops_to,
    navigated,
    redirected,
    redirected_enough,
)
from crawlerproject.parse.lists import Listed, Lists
from crawlerproject.parse.page_view import PageView
from crawlerproject.parse.response_page import (
    REDIRECTS,
    ai_use,
    header,
    page_by_middleware,
    page_notes,
    page_of,
    page_of_hub,
    take_robots,
)
from crawlerproject.reading.jobs import ReadPage
from crawlerproject.reading.page_reader import PageReader
from crawlerproject.reasons import Reason
from crawlerproject.render.rendered import Rendered, RenderFailed
from crawlerproject.rules.robots.policy import parse_robots
from crawlerproject.rules.url.urls import Address, Base
from crawlerproject.runtime.services import Services, services_of
from crawlerproject.spiders.outputs import is_late, items_of
from crawlerproject.stores.protocols import FLAG_SITEMAP
from crawlerproject.wire import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure


logger = logging.getLogger(__name__)


class WebSpider(Spider):
    """``scrapy crawl web -a seeds=FILE-or-URLs [-a scope=any|domain|host|path]``.

    ``-a include=… -a exclude=…`` choose URLs by patterns, ``-a max_pages=…`` and its likes end it.
    ``-a mode=recrawl [-a budget=N]`` visits known pages again, those first whose visit is worth most.
    """

    name = "web"
    scope = "any"  # which links are followed; a spider that derives from this one may say otherwise

    def __init__(
        self,
        seeds: str | None = None,
        scope: str | None = None,
        mode: str = "crawl",
        budget: str = "",
        accept: str = "",
        **kwargs: Any,
    ) -> None:
        self.arguments = arguments_of(kwargs, type(self))  # as they were given; ``crawl/start/resume.py``: as they hold
        super().__init__(**kwargs)
        self.seed_options: dict[str, str] = {}  # by URL
        self.seeds: list[Address] | None = None  # None: not a crawl of ours (shell, parse)
        own = type(self).scope
        self.scope_given = scope or (own if own != WebSpider.scope else None)
        self.scope = self.scope_given or WebSpider.scope
        self.accept = accept  # which changes of a crawl that goes on are meant
        self.recrawl, self.budget = mode_and_budget(mode, budget)
        if self.recrawl:
            self.seeds = []
        if seeds is None and self.start_urls and self.seeds is None:  # a spider that derives from this one
            seeds = ",".join(self.start_urls)
        self.seeds_given = absolute_seeds(seeds or "")
        if seeds is not None:
            self.seeds, _, self.seed_options = seeds_with_options(seeds, self.scope)
        self.lists = Lists()
        self.sitemaps = True
        self.errors = 0  # of our own
        self.errors_in_a_row = 0
        self.max_errors_in_a_row = 0
        self.token = ""
        self.services: Services  # of the running crawl; where there is none, no page has a lease

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """The crawl's own settings, from its folder, below those of the spider and of the command line."""
        addons = settings.getdict("ADDONS")
        super().update_settings(settings)
        keep_addon(settings, addons)
        apply(read_crawl_file(crawl_folder(settings, cls.name)), settings)
        let_in_flight(settings)
        keep_whole(settings)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Build the spider with the crawl's settings."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.max_errors_in_a_row = crawler.settings.getint("OWN_ERRORS_MAX_IN_A_ROW")
        spider.sitemaps = crawler.settings.getbool("SITEMAPS")
        spider.token = crawler.settings["CRAWLER_NAME"]
        spider.services = services_of(crawler)
        if spider.seeds is not None:
            warn_unused(spider, crawler.settings)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Give the seeds to the frontier; no Request exists until one is leased."""
        seeds = self.seeds or []
        for first in range(0, max(len(seeds), 1), MOST_AT_ONCE):
            self.services[Intake].add_seeds(seeds[first : first + MOST_AT_ONCE])
            await asyncio.sleep(0)
        if self.recrawl:
            queued = self.services[FrontierScheduler].add_revisits(self.budget)
            logger.info("%d known pages are visited again", queued)
            self.crawler.stats.set_value("recrawl/queued", queued)
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request

    def parse(self, response: Response, **kwargs: Any) -> Any:
        """An answer that is no lease's: what `scrapy parse` shows, or one that this spider asked for by itself.

        A spider that derives from this one and writes a ``parse`` of its own gets what ``extract`` would get.
        """
        if self.seeds is None:
            return self._read_for_a_person(response)
        return self.extract(response) if response.status == 200 else ()

    async def answered(self, response: Response, **kwargs: Any) -> list[Any]:
        """Any answer to a lease: a page, a redirect, an error, a robots.txt. The Page is complete afterwards.

        Our own pipelines end it; what is returned, and goes to the project's, are the items of ``extract``.
        """
        exchange = leased(response.request) if response.request else None
        if exchange is None:  # a middleware sent another request in its place
            return await items_of(self.parse(response))
        lease, wire = exchange.lease, exchange.wire
        errors, items = self.errors, list[Any]()
        if lease.is_render and exchange.rendered is not None:
            read = await self._read(exchange, response)
            page = self._rendered(response, lease, read, exchange.rendered)
        elif wire is None:
            page = page_by_middleware(lease, "a downloader middleware answered")
        elif lease.is_hub:
            page = self._of_hub(response, lease, wire)
        else:
            read = await self._read(exchange, response)
            page = page_of(lease, response, wire)
            with exchange.mark():
                given = self._of_page(page, response, read, exchange.to_render)
            items = given if isinstance(given, list) else await self._late(page, given)
        await self.services[PagePipeline].complete(page)
        if self.errors == errors:
            self.errors_in_a_row = 0
        return items

    async def _read(self, exchange: LeasedExchange, response: Response) -> ReadPage:
        """What the answer says; without the triage middleware nothing has asked for that yet."""
        if exchange.page is None:
            page = self.services[PageReader].read(exchange.lease, response)
            exchange.page = page if isinstance(page, ReadPage) else await page
        return exchange.page

    def _of_page(self, page: Page, response: Response, read: ReadPage, to_render: bool) -> Any:
        """Read the answer into ``page``; the list of items of a spider that derives from this one, or what gives it."""
        lease = page.lease
        items: Any = []
        try:
            if response.status in REDIRECTS:
                self._redirect(page, header(response.headers, b"Location"))
            elif lease.is_robots:
                if 200 <= response.status < 300:
                    take_robots(page, response.flags)
                if self.sitemaps and response.status == 200 and not page.unusable:
                    self._take(page, self.lists.of_robots(lease.row, parse_robots(page.body, self.token)))
            elif read.unread:
                self._not_read(page, read)
            elif response.status == 200:
                self._take_read(page, response, read, to_render)
            if read.challenge:
                page.reason = Reason.CHALLENGE
                page.notes.append(("challenge", read.challenge))
            if response.status == 200 and not lease.is_robots:
                given = self.extract(response)
                items = given if is_late(given) else list(arg_to_iter(given))
        except Exception:
            self._ours(page)
        self.choose_links(page)
        return items

    async def _late(self, page: Page, given: Any) -> list[Any]:
        """The items of an ``async def extract``; meanwhile others are read, so the page is no suspect for a crash."""
        try:
            return await items_of(given)
        except Exception:
            self._ours(page)
            return []

    def extract(self, response: Response) -> Any:
        """For spiders that derive from this one: items of an answer with status 200, beside what is archived.

        May be all that a Scrapy callback may be: a generator, a list, one item, ``async def``.
        """
        return () if type(self).parse is WebSpider.parse else self.parse(response)

    async def on_error(self, failure: Failure) -> None:
        """No usable answer: the attempt is logged and judged all the same."""
        failed: Any = failure  # Scrapy adds the request to Twisted's class
        lease = lease_in(failed.request)
        if lease is None:
            return
        error = failure.value
        if isinstance(error, LeaseOver):
            self.services[PagePipeline].put_back(Page(lease, lease.row.url, Reason.INTERNAL_ERROR))
            return
        page = Page(lease, lease.row.url, Reason.INTERNAL_ERROR, error=str(error))
        if isinstance(error, FetchError):
            page.reason, page.wire, page.error = error.reason, error.wire, error.detail or str(error)
            if isinstance(error, RenderFailed):
                page.rendered, page.again = error.rendered, error.again
        elif isinstance(error, Refused):
            page.reason = error.reason
        elif isinstance(error, IgnoreRequest):  # a middleware of the project
            page.reason, page.unusable = Reason.MIDDLEWARE, lease.is_robots
        else:
            logger.error("unexpected failure of %s", page.url, exc_info=failure_to_exc_info(failure))
            self.count_error()
        await self.services[PagePipeline].complete(page)

    def _read_for_a_person(self, response: Response) -> list[Any]:
        """The facts of a page as one plain item, and a Request for each link, which every gate judges."""
        page = PageView(self.crawler, response)
        facts = {
            "url": page.url,
            "status": page.status,
            "title": page.title,
            "words": page.words,
            "encoding": page.facts.encoding,
            "canonical": page.canonical,
            "noindex": page.facts.noindex,
            "nofollow": page.facts.nofollow,
            "triage": str(page.triage or ""),
            "robots": page.robots,
            "links": {link.url: link.refusal or "open" for link in page.links},
        }
        return [facts, *(Request(link.url) for link in page.links if not link.refusal)]

    # --- reading --------------------------------------------------------------------------------

    def _redirect(self, page: Page, location: str) -> None:
        target = Base(page.url).join(location) if location else None
        if target is None:
            return
        page.location = target.url
        lease = page.lease
        if lease.is_robots:
            return  # the frontier follows it on the origin's behalf
        if redirected_enough(lease.row):
            page.error = f"more than {MAX_REDIRECTS} redirects in a row"
            return
        self.services[Intake].add([redirected(lease.row, target)])

    def _take_read(self, page: Page, response: Response, read: ReadPage, to_render: bool) -> None:
        """What a page, a sitemap or a feed says."""
        page.found, page.changed = read.found, read.changed
        page.error = read.flaw or page.error
        if read.foreign:
            self.crawler.stats.inc_value(f"refused/{Reason.FOREIGN_ENTRY}", read.foreign)
        if page.lease.row.flags & FLAG_SITEMAP:
            return
        if read.feed is not None:
            page.is_feed = True
            links = [value.decode("latin-1") for value in response.headers.getlist("Link")]
            if self.services[WebSub].feed_met(page.lease, links, read.feed):
                self.crawler.stats.inc_value("websub/asked")
        elif read.facts is not None:
            page.notes += page_notes(read.facts)
            if read.triage.signals and not read.challenge:
                page.notes.append(("triage", str(read.triage)))
            if to_render:
                page.to_render = read.facts.words, read.links
            else:
                _take_text(page, read)
        page.notes += ai_use(self.services[Frontier].state.robots.content_signals(page.url), response.headers)

    def _of_hub(self, response: Response, lease: Lease, wire: Wire) -> Page:
        """A hub that cannot take our request may name another (307 or 308, WebSub 5.1): it is asked the same."""
        page = page_of_hub(lease, response, wire)
        if response.status in (307, 308):
            target = Base(page.url).join(header(response.headers, b"Location"))
            if target is not None and not redirected_enough(lease.row):
                page.location, page.error = target.url, ""
                self.services[WebSub].hub_moved(lease, target, hops_to(lease.row, HOP_REDIRECT))
        return page

    def _rendered(self, response: Response, lease: Lease, read: ReadPage, rendered: Rendered) -> Page:
        """What the browser made of a page: its links are the page's, and what it gained is remembered."""
        page = Page(lease, lease.row.url, Reason.RENDERED, body=response.body, rendered=rendered)
        if read.facts is None:
            self._not_read(page, read)
            return page
        page.notes = page_notes(read.facts)
        page.gained = read.facts.words, read.links
        _take_text(page, read)
        if read.challenge:
            page.reason = Reason.CHALLENGE
            page.notes.append(("challenge", read.challenge))
        page.found = read.found
        if not read.facts.nofollow:
            page.found = [*read.found, *navigated(lease.row, rendered.navigations)]
        return page

    def choose_links(self, page: Page) -> None:
        """For spiders that follow less than all."""

    def _take(self, page: Page, listed: Listed) -> None:
        """What a robots.txt, a sitemap or a feed names."""
        page.found, page.changed = listed.found, listed.changed
        page.error = listed.flaw
        stats = self.crawler.stats
        if listed.foreign:
            stats.inc_value(f"refused/{Reason.FOREIGN_ENTRY}", listed.foreign)

    # --- our own errors -------------------------------------------------------------------------

    def _not_read(self, page: Page, read: ReadPage) -> None:
        page.error = read.unread
        page.notes.append(("unread", read.unread))
        if read.fault:
            self.count_error()

    def _ours(self, page: Page) -> None:
        logger.exception("could not read %s", page.url)
        page.error = "could not be read"
        self.count_error()

    def count_error(self) -> None:
        """One more error of our own; many in a row stop the crawl."""
        self.errors += 1
        self.errors_in_a_row += 1
        self.crawler.stats.inc_value("errors/ours")
        if self.errors_in_a_row == self.max_errors_in_a_row:
            logger.error("%d errors of our own in a row: the crawl stops", self.errors_in_a_row)
            engine = self.crawler.engine
            assert engine is not None
            deferred_from_coro(engine.close_spider_async(reason="errors_in_a_row"))


def _take_text(page: Page, read: ReadPage) -> None:
    """What a page's text says of it."""
    assert read.facts is not None
    page.text, page.canonical = read.facts.text, read.facts.canonical
    page.text_marks, page.fingerprint, page.fingerprinted = read.text_marks, read.fingerprint, read.fingerprinted
