"""The spider: reads what was fetched and yields one Page, its links included."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro

from crawlerproject.errors import FetchError, LeaseOver
from crawlerproject.fetch.wire import Wire
from crawlerproject.frontier.found import Found
from crawlerproject.frontier.lease import Lease
from crawlerproject.items import Page
from crawlerproject.middlewares.refused import Refused
from crawlerproject.middlewares.triage import facts_of
from crawlerproject.page_view import PageView
from crawlerproject.preflight import mode_and_budget, seeds_and_scope
from crawlerproject.reasons import Reason
from crawlerproject.render.rendered import Rendered, RenderFailed
from crawlerproject.rules.ai_use import HEADERS, stated_by_site
from crawlerproject.rules.feeds import is_feed
from crawlerproject.rules.links import HOP_LINK
from crawlerproject.rules.page import PageFacts, is_html
from crawlerproject.rules.priority import priority
from crawlerproject.rules.robots import parse_robots
from crawlerproject.rules.scope import registered_domain
from crawlerproject.rules.templates import text_mark
from crawlerproject.rules.urls import Address, Base
from crawlerproject.spiders.lists import Listed, Lists
from crawlerproject.stores.protocols import FLAG_SEED, FLAG_SITEMAP

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from typing import Self

    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

logger = logging.getLogger(__name__)

# What rules/refetch reads of an answer's freshness.
_FRESHNESS = ("cache-control", "expires", "date", "age")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Fetch (WHATWG) stops at 20; Heritrix's maxTransHops and ours stop sooner: a chain grows new addresses for ever.
_MAX_REDIRECTS = 10
# Heritrix keeps as many letters of a discovery path.
_MAX_HOPS = 50


class WebSpider(Spider):
    """``scrapy crawl web -a seeds=FILE-or-URLs [-a scope=any|domain|host]``.

    ``-a mode=recrawl [-a budget=N]`` visits known pages again, those first whose visit is worth most.
    """

    name = "web"

    def __init__(
        self, seeds: str | None = None, scope: str = "any", mode: str = "crawl", budget: str = "", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.seeds: list[Address] | None = None  # None: not a crawl of ours (shell, parse)
        self.scope = scope
        self.recrawl, self.budget = mode_and_budget(mode, budget)
        if self.recrawl:
            self.seeds = []
        if seeds is None and self.start_urls and self.seeds is None:  # a spider that derives from this one
            seeds = ",".join(self.start_urls)
        if seeds is not None:
            self.seeds, self.scope = seeds_and_scope(seeds, scope)
        self.lists = Lists()
        self.sitemaps = True
        self.errors_in_a_row = 0
        self.max_errors_in_a_row = 0
        self.token = ""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Build the spider with the crawl's settings."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.max_errors_in_a_row = crawler.settings.getint("ERRORS_IN_A_ROW")
        spider.sitemaps = crawler.settings.getbool("SITEMAPS")
        spider.token = crawler.settings["CRAWLER_NAME"]
        return spider

    @property
    def _scheduler(self) -> Any:
        engine = self.crawler.engine
        assert engine is not None
        return engine.scheduler

    async def start(self) -> AsyncIterator[Any]:
        """Give the seeds to the frontier; no Request exists until one is leased."""
        self._scheduler.add_seeds(self.seeds or [])
        if self.recrawl:
            queued = self._scheduler.add_revisits(self.budget)
            logger.info("%d known pages are visited again", queued)
            self.crawler.stats.set_value("recrawl/queued", queued)
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request

    def parse(self, response: Response, **kwargs: Any) -> Any:
        """Any answer: a page, a redirect, an error, a robots.txt."""
        meta = response.request.meta if response.request else {}
        if "lease" not in meta:  # not a crawl of ours: `scrapy parse` asks what is read here
            return self._read_for_a_person(response)
        lease: Lease = meta["lease"]
        if lease.is_render:
            return self._rendered(response, lease, meta)
        wire: Wire = meta["wire"]
        if lease.is_hub:
            return _of_hub(lease, response, wire)
        page = Page(lease, lease.row.url, _reason(response.status), wire, body=response.body)
        headers = response.headers
        page.mime = _header(headers, "Content-Type").partition(";")[0].strip().lower()
        page.retry_after = _header(headers, "Retry-After")
        page.etag = _header(headers, "ETag")
        page.last_modified = _header(headers, "Last-Modified")
        if wire.unverified:
            page.notes.append(("tls-certificate", "not verified (TLS_ALLOW_HOSTS)"))
        page.freshness = {name: value for name in _FRESHNESS if (value := _header(headers, name))}
        try:
            if response.status in _REDIRECTS:
                self._redirect(page, _header(headers, "Location"))
            elif response.status == 200 and lease.is_robots:
                if self.sitemaps:
                    self._take(page, self.lists.of_robots(lease.row, parse_robots(page.body, self.token)))
            elif response.status == 200 and lease.row.flags & FLAG_SITEMAP:
                self._take(page, self.lists.of_sitemap(lease.row, page.body))
            elif response.status == 200:
                self._read(page, response, meta)
                page.notes += self._ai_use(page, response)
            if wall := meta.get("challenge"):
                page.reason, page.to_render = Reason.CHALLENGE, None
                page.notes.append(("challenge", wall))
            items = list(self.extract(response)) if response.status == 200 and not lease.is_robots else []
            self.errors_in_a_row = 0
        except Exception:
            self._ours(page)
            self.choose_links(page)
            return page
        self.choose_links(page)
        return [page, *items] if items else page

    def extract(self, response: Response) -> Iterable[Any]:
        """For spiders that derive from this one: items of an answer with status 200, beside what is archived."""
        return ()

    def on_error(self, failure: Failure) -> Page | None:
        """No usable answer: the attempt is logged and judged all the same."""
        lease: Lease | None = failure.request.meta.get("lease")  # type: ignore[attr-defined]
        if lease is None:
            return None
        error = failure.value
        if isinstance(error, LeaseOver):
            self._scheduler.put_back(Page(lease, lease.row.url, Reason.INTERNAL_ERROR))
            return None
        page = Page(lease, lease.row.url, Reason.INTERNAL_ERROR, error=str(error))
        if isinstance(error, FetchError):
            page.reason, page.wire, page.error = error.reason, error.wire, error.detail or str(error)
            if isinstance(error, RenderFailed):
                page.rendered, page.again = error.rendered, error.again
        elif isinstance(error, Refused):
            page.reason = error.reason
        else:
            logger.error("unexpected failure of %s", page.url, exc_info=(failure.type, error, failure.tb))  # type: ignore[arg-type]
            self.count_error()
        return page

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
        row = lease.row
        if row.hops.endswith("R" * _MAX_REDIRECTS):
            page.error = f"more than {_MAX_REDIRECTS} redirects in a row"
            return
        flags = row.flags & (FLAG_SEED | FLAG_SITEMAP)
        hops = (row.hops + "R")[-_MAX_HOPS:]
        self._scheduler.add([Found(target, row.depth, hops, row.url, row.priority, flags, row.note)])

    def _read(self, page: Page, response: Response, meta: dict[str, Any]) -> None:
        content_type = _header(response.headers, "Content-Type") or None
        if is_feed(content_type or "", response.body):
            page.is_feed = True
            hops = (page.lease.row.hops + HOP_LINK)[-_MAX_HOPS:]
            self._take(page, self.lists.of_feed(page.lease.row, response.body, hops))
            links = [value.decode("latin-1") for value in response.headers.getlist("Link")]
            if self._scheduler.feed_met(page.lease, links, response.body):
                self.crawler.stats.inc_value("websub/asked")
            return
        if not is_html(content_type, response.body):
            return
        facts = meta.pop("facts", None) or facts_of(response, content_type, self.token)
        page.notes += page_notes(facts)
        if (triage := meta.get("triage")) is not None and triage.signals:
            page.notes.append(("triage", str(triage)))
        page.to_render = meta.get("to_render")
        if page.to_render is None:
            page.text, page.canonical = facts.text, facts.canonical
            page.text_mark = text_mark(facts.title, facts.text)
        self._follow(page, facts)

    def _follow(self, page: Page, facts: PageFacts) -> None:
        if facts.nofollow:
            return
        row = page.lease.row
        depth, host = row.depth + 1, row.host
        for link in facts.links:
            address = link.address
            hops = (row.hops + link.kind)[-_MAX_HOPS:]
            across = address.host != host and registered_domain(address.host) != registered_domain(host)
            page.found.append(Found(address, depth, hops, row.url, priority(depth, link.kind, across=across)))

    def _rendered(self, response: Response, lease: Lease, meta: dict[str, Any]) -> Page:
        """What the browser made of a page: its links are the page's, and what it gained is remembered."""
        rendered: Rendered = meta["rendered"]
        page = Page(lease, lease.row.url, Reason.RENDERED, body=response.body, rendered=rendered)
        try:
            facts = meta.pop("facts", None) or facts_of(response, "text/html; charset=utf-8", self.token)
            page.notes = page_notes(facts)
            page.gained = (facts.words, len(facts.links))
            page.text, page.canonical = facts.text, facts.canonical
            page.text_mark = text_mark(facts.title, facts.text)
            if wall := meta.get("challenge"):
                page.reason = Reason.CHALLENGE
                page.notes.append(("challenge", wall))
            self._follow(page, facts)
            if not facts.nofollow:
                self._navigated(page, rendered)
        except Exception:
            self._ours(page)
        return page

    def _navigated(self, page: Page, rendered: Rendered) -> None:
        """Where scripts wanted to go is a redirect in all but name."""
        row, base = page.lease.row, Base(page.url)
        if row.hops.endswith("R" * _MAX_REDIRECTS):
            return
        hops = (row.hops + "R")[-_MAX_HOPS:]
        targets = [target for url in rendered.navigations if (target := base.join(url)) is not None]
        page.found += [Found(target, row.depth, hops, row.url, row.priority) for target in targets]

    def _ai_use(self, page: Page, response: Response) -> list[tuple[str, str]]:
        """What robots.txt and this answer's headers say about use by artificial intelligence."""
        headers = [(name, text) for name in HEADERS if (text := _header(response.headers, name))]
        signals: tuple[str, ...] = self._scheduler.content_signals(page.url)
        return stated_by_site(signals, headers)

    def choose_links(self, page: Page) -> None:
        """For spiders that follow less than all."""

    def _take(self, page: Page, listed: Listed) -> None:
        """What a robots.txt, a sitemap or a feed names."""
        page.found = listed.found
        page.error = listed.flaw
        stats = self.crawler.stats
        if listed.foreign:
            stats.inc_value(f"refused/{Reason.FOREIGN_ENTRY}", listed.foreign)
        if listed.changed:
            stats.inc_value("recrawl/announced", self._scheduler.changed(listed.changed))

    # --- our own errors -------------------------------------------------------------------------

    def _ours(self, page: Page) -> None:
        logger.exception("could not read %s", page.url)
        page.error = "could not be read"
        self.count_error()

    def count_error(self) -> None:
        """One more error of our own; many in a row stop the crawl."""
        self.errors_in_a_row += 1
        self.crawler.stats.inc_value("errors/ours")
        if self.errors_in_a_row == self.max_errors_in_a_row:
            logger.error("%d errors of our own in a row: the crawl stops", self.errors_in_a_row)
            engine = self.crawler.engine
            assert engine is not None
            deferred_from_coro(engine.close_spider_async(reason="errors_in_a_row"))


def page_notes(facts: Any) -> list[tuple[str, str]]:
    """What reading found, as lines of the metadata record."""
    notes = [("charset-detected", facts.encoding)]
    if facts.canonical is not None:
        notes.append(("canonical", facts.canonical.url))
    if facts.noindex:
        notes.append(("robots-meta", "noindex"))
    if facts.nofollow:
        notes.append(("robots-meta", "nofollow"))
    notes.extend(facts.ai_use)
    return notes


def _of_hub(lease: Lease, response: Response, wire: Wire) -> Page:
    """What a hub answers to being asked for a subscription; it verifies and pushes later, by itself."""
    page = Page(lease, lease.row.url, _reason(response.status), wire)
    page.retry_after = _header(response.headers, "Retry-After")
    if 200 <= response.status < 300:
        page.reason = Reason.SUBSCRIBED
    else:
        page.error = response.body[:200].decode("latin-1").strip()
    return page


def _header(headers: Any, name: str) -> str:
    value = headers.get(name)
    return value.decode("latin-1") if value else ""


def _reason(status: int) -> Reason:
    if status in (429, 503):
        return Reason.RATE_LIMITED
    if status == 304:
        return Reason.NOT_MODIFIED
    if status in _REDIRECTS:
        return Reason.REDIRECT
    return Reason.FETCHED if status < 400 else Reason.HTTP_ERROR
