"""Renders one page: its document comes from the archive, what it loads through our own fetch path."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response
from scrapy.http.request import NO_CALLBACK

from crawlerproject.config.chromium import VIEWPORT, find_chromium
from crawlerproject.config.crawl_kind import crawl_of, is_of_frontier
from crawlerproject.config.values import identity, list_of
from crawlerproject.crawl.run import Run
from crawlerproject.crawl.running_crawl import Crawl
from crawlerproject.crawl.session import Session
from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.fetch.decoding import decode
from crawlerproject.frontier.learned.render_gains import Renders
from crawlerproject.items import Rendered, RenderFailed
from crawlerproject.reasons import Reason
from crawlerproject.render.browser import Browser, BrowserLimits, BrowserMissing
from crawlerproject.render.request import PAGE_METHODS
from crawlerproject.render.shared_cache import SharedCache, Subresource
from crawlerproject.render.subresources import (
    CrawlSubrequests,
    PageSubrequests,
    RenderProxies,
    ShellSubrequests,
    SubrequestBounds,
    as_subresource,
)
from crawlerproject.render.visit import WAIT_RULE, PageTime, PageVisit
from crawlerproject.request_meta import leased
from crawlerproject.rules.archive.http_messages import header_pairs
from crawlerproject.rules.rendering.browser_limits import MAX_SUBREQUESTS
from crawlerproject.rules.url.urls import host_key
from crawlerproject.runtime.services import services_of
from crawlerproject.stores.archive.warc_reader import PlainResponse, names_of, read_answer
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import archives_of

# Outside a crawl each script waits for its host's pace, five seconds by default: pages get this many times longer.
_SHELL_PATIENCE = 10
# Scripts and data files that are kept for the next page that asks for them (ours).
_CACHE_BYTES = 64 * 1024**2
# For the document and its blocking scripts; the page then has the same time again to settle (ours).
_NAVIGATION_SECONDS = 15.0
# A page waits so long in all for turns of its own site's hosts: at five seconds each for twelve files (ours).
WAIT_SECONDS = 60.0
# A browser whose processes together use more is restarted, a page whose process uses more is closed (ours).
_MAX_MEMORY_BYTES = 2 * 1024**3
_PAGE_MEMORY_BYTES = 512 * 1024**2
_DROPPED = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "set-cookie"})


class Renderer:
    """A crawler's browser, its cache of scripts and its proxies."""

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._crawler = crawler
        self._max_bytes = settings.getint("FETCH_MAX_BYTES")
        self._bounds = SubrequestBounds(
            settings.getint("RENDER_MAX_SUBREQUESTS", MAX_SUBREQUESTS),
            settings.getfloat("RENDER_WAIT_SECONDS", WAIT_SECONDS),
        )
        patience = 1 if is_of_frontier(crawler) else _SHELL_PATIENCE
        self._settle_seconds = settings.getfloat("RENDER_NAVIGATION_SECONDS", _NAVIGATION_SECONDS) * patience
        self._timeout_seconds = settings.getfloat("RENDER_TIMEOUT_SECONDS") * patience
        self._cache = SharedCache(_CACHE_BYTES)
        self._proxies = RenderProxies(list_of(settings, "RENDER_PROXIES"))
        self._browser: Browser | None = None

    async def render(self, request: Request) -> Response:
        """Render one page. Raises RenderFailed, and nothing else whatever the page does."""
        rendered = Rendered(request.url, wait_rule=WAIT_RULE, viewport=f"{VIEWPORT['width']}x{VIEWPORT['height']}")
        exchange = leased(request)
        subrequests: PageSubrequests
        page_time = PageTime()
        if exchange is not None:
            services = services_of(self._crawler)
            run, renders = services[Run], services[Renders]
            page_time = PageTime(lambda: renders.waits(run.now()), renders.goes_on)
            folder, note = services[Crawl].folder, exchange.lease.row.note
            document = await asyncio.to_thread(self._stored, folder, note, rendered)
            subrequests = CrawlSubrequests(
                services, exchange.lease, self._cache, self._proxies, self._bounds, page_time
            )
        else:
            engine = self._crawler.engine  # outside a crawl the document comes through the whole middleware chain
            assert engine is not None
            meta = {"seed": request.meta.get("seed", False)}
            document_request = Request(request.url, callback=NO_CALLBACK, meta=meta, dont_filter=True)
            plain = await engine.download_async(document_request)
            if plain.status != 200:
                return plain
            document = as_subresource(plain)
            subrequests = ShellSubrequests(self._crawler, host_key(request.url), self._cache, self._bounds)
        visit = PageVisit(document, subrequests, rendered, page_time, self._settle_seconds, self._timeout_seconds)
        visit.methods = request.meta.get(PAGE_METHODS) or ()
        try:
            await self._show(visit, host_key(request.url))
        finally:
            subrequests.close()
            self._count(rendered)
        if exchange is not None:
            exchange.rendered = rendered
        else:
            request.meta["rendered"] = rendered
        headers = {"Content-Type": "text/html; charset=utf-8"}
        return HtmlResponse(request.url, headers=headers, body=rendered.html, encoding="utf-8", flags=["rendered"])

    async def close(self) -> None:
        """End the browser."""
        if self._browser is not None:
            await self._browser.close()

    async def _show(self, visit: PageVisit, host: str) -> None:
        try:
            if self._browser is None:
                self._browser = self._made()
            await self._browser.show(visit, host)
        except BrowserMissing as missing:
            session = services_of(self._crawler).get(Session)
            if session is not None:
                session.pages.renders.no_browser(str(missing))
            raise RenderFailed(Reason.RENDER_FAILED, str(missing), visit.rendered, again=True) from missing

    def _made(self) -> Browser:
        settings = self._crawler.settings
        path = find_chromium(settings["RENDER_BROWSER"])
        if path is None:
            raise BrowserMissing("no Chromium was found on this machine")
        limits = BrowserLimits(
            navigation_seconds=self._settle_seconds,
            timeout_seconds=self._timeout_seconds,
            max_memory_bytes=settings.getint("RENDER_MAX_MEMORY_BYTES", _MAX_MEMORY_BYTES),
            page_memory_bytes=settings.getint("RENDER_PAGE_MEMORY_BYTES", _PAGE_MEMORY_BYTES),
            screenshot=settings.getbool("RENDER_SCREENSHOT"),
            sandbox=str(settings["RENDER_SANDBOX"]),
        )
        return Browser(self._crawler, path, identity(settings).user_agent, limits)

    def _stored(self, folder: CrawlDir, note: str, rendered: Rendered) -> Subresource:
        """The plain response, read back from the archive: it is never fetched twice."""
        try:
            place = PlainResponse.of(note)
            stored = read_answer(self._files(folder, place.filename), place)
        except (StorageError, OperatorError) as error:
            raise RenderFailed(Reason.RENDER_FAILED, str(error), rendered) from error
        rendered.plain_id = stored.field("warc-record-id")
        headers: dict[str, str] = {}
        for name, value in header_pairs(stored.head):
            key = name.lower()
            headers[key] = f"{headers[key]}, {value}" if key in headers else value
        body = stored.payload
        if coding := headers.get("content-encoding"):
            body = decode(body, coding.encode("latin-1"), self._max_bytes).body
        return Subresource(200, {name: value for name, value in headers.items() if name not in _DROPPED}, body)

    def _files(self, folder: CrawlDir, filename: str) -> Iterator[Path]:
        """Where a WARC file may be: here; with a worker that had the host before; where it was uploaded to."""
        names = names_of(filename)
        yield from (folder.warc / name for name in names)
        archives = archives_of(crawl_of(self._crawler))
        yield from (other.warc / name for other in archives.folders for name in names)
        yield from (path for path in archives.elsewhere if path.name == filename)

    def _count(self, rendered: Rendered) -> None:
        stats = self._crawler.stats
        assert stats is not None
        counts = {"pages": 1, "requests": rendered.asked, "from_cache": rendered.cached}
        counts |= {"blocked": rendered.blocked.total(), "short_of_turns": int(rendered.short)}
        for name, count in counts.items():
            stats.inc_value(f"render/{name}", count)
