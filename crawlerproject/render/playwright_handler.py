"""scrapy-playwright's download handler with our answers in place of the network.

It is created for the first page that needs a browser, so that a crawl without such pages starts no process. It
overrides three private methods; requirements.txt pins the version for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from playwright.async_api import Browser, BrowserContext, Dialog, Page, Response, Route, WebSocketRoute
from playwright.async_api import Error as PlaywrightError
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy_playwright.handler import ScrapyPlaywrightDownloadHandler

from crawlerproject.config.chromium import VIEWPORT, WITHOUT_PEERS
from crawlerproject.render.visit import PageVisit

# It logs every start and end, which we log once.
logging.getLogger("scrapy-playwright").setLevel(logging.WARNING)

# A hung renderer's context closes at once (0.05 s measured); longer means that the browser itself hangs.
_CLOSE_SECONDS = 5.0

# Pages after which a context is discarded, so that what clearing misses does not add up (ours).
_PAGES = 50

_FORGET = "try { sessionStorage.clear(); window.name = '' } catch {}"  # what Storage.clearDataForOrigin leaves

T = TypeVar("T")


class NotLoaded(Exception):
    """The page did not load its document and run its blocking scripts in time."""


class DriverEnded(Exception):
    """Playwright's driver, a program for Node.js, does not run: a library of the system is missing, for example."""


class PlaywrightHandler(ScrapyPlaywrightDownloadHandler):  # type: ignore[misc]  # its base has no types
    """One browser process. Pages come with the requests and are never closed here."""

    browser: Browser

    def __init__(self, crawler: Crawler, launch_options: dict[str, Any]) -> None:
        super().__init__(crawler)
        self.config.launch_options = launch_options
        self.config.browser_type_name = "chromium"
        self.config.target_closed_max_retries = 0  # a page whose browser died goes back to the frontier
        self.visits: dict[str, PageVisit] = {}  # by context
        self.died = asyncio.Event()  # set when the browser has exited

    async def start(self) -> None:
        """Start the driver and the browser. Raises DriverEnded, and Playwright's errors."""
        try:
            await self._launch()
        except Exception as error:  # a bare one, or a RuntimeError of the pipe, as the driver's end is noticed
            raise DriverEnded("Playwright's driver has ended, with its own words in the log") from error
        await self._maybe_launch_browser()
        self.browser.on("disconnected", lambda _: self.died.set())

    def _make_request_handler(self, context_name: str, **_: Any) -> Callable[..., Awaitable[None]]:
        return self.visits[context_name].answer

    async def _get_response_and_download(
        self, request: Request, page: Page, spider: Any
    ) -> tuple[Response | None, None]:
        """Navigate, without waiting for downloads, none of which is accepted. Raises NotLoaded."""
        visit = self.visits[request.meta["playwright_context"]]
        options = dict(request.meta["playwright_page_goto_kwargs"])
        seconds = options.pop("timeout") / 1000
        try:
            return await visit.time.within(seconds, page.goto(request.url, **options, timeout=0)), None
        except TimeoutError as late:
            raise NotLoaded from late

    async def _apply_page_methods(self, page: Page, request: Request, spider: Any) -> None:
        await super()._apply_page_methods(page, request, spider)
        await self.visits[request.meta["playwright_context"]].settle(page)


async def while_alive(died: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``. Raises PlaywrightError when the browser dies: what it was asked then may get no answer.

    Of 22 pages in a browser that was killed ten were left with such a call, for RENDER_TIMEOUT_SECONDS (measured).
    """
    task, end = asyncio.ensure_future(work), asyncio.ensure_future(died.wait())
    try:
        await asyncio.wait({task, end}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise PlaywrightError("the browser has died")
        return task.result()
    finally:
        end.cancel()
        task.cancel()


class Slot:
    """Reuses its page: 0.2 s of CPU a render, against 0.6 s with a new context (docs/rendering.md)."""

    def __init__(self, name: str, user_agent: str) -> None:
        self.name = name
        self._user_agent = user_agent
        self._context: BrowserContext | None = None
        self._page: Page | None = None
        self._host = ""
        self._origins: set[str] = set()
        self._pages = 0
        self._crashed = False
        self._visit: PageVisit | None = None

    async def open(self, browser: Browser, host: str, visit: PageVisit) -> Page:
        """The page for a visit to ``host``, without any state of another host."""
        if self._pages >= _PAGES or self._crashed:
            await self.discard()
        if self._page is not None and self._host != host:
            try:
                await self._clear(self._page)
            except PlaywrightError:
                await self.discard()
        if self._page is None:
            await self._new(browser)
        assert self._page is not None
        self._host, self._visit = host, visit
        self._pages += 1
        visit.page = self._page
        return self._page

    async def close_visit(self, *, clean: bool) -> bool:
        """End the visit; keep the page only if it rendered cleanly. False: the browser no longer responds."""
        visit, self._visit = self._visit, None
        if visit is not None:
            self._origins.add(visit.rendered.url)
            clean = clean and visit.rendered.settled and not visit.rendered.noise and not self._crashed
        if clean and self._page is not None:
            with contextlib.suppress(PlaywrightError, TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._page.evaluate(_FORGET)
                    # The page's scripts must not run on while the next one loads.
                    await self._page.goto("about:blank")
                    return True
        return await self.discard()

    async def discard(self) -> bool:
        """Close context and page, a hung renderer included. False: the browser did not do it in time."""
        context, self._context, self._page = self._context, None, None
        self._pages, self._host, self._crashed = 0, "", False
        self._origins.clear()
        if context is None:
            return True
        with contextlib.suppress(PlaywrightError):
            try:
                await asyncio.wait_for(context.close(), _CLOSE_SECONDS)
            except TimeoutError:
                return False
        return True

    async def _new(self, browser: Browser) -> None:
        context = self._context = await browser.new_context(
            viewport=VIEWPORT,
            user_agent=self._user_agent,
            service_workers="block",
            accept_downloads=False,
            locale="en-US",
        )
        await context.add_init_script(WITHOUT_PEERS)
        # For requests that do not come from the page itself, such as those of new windows; sockets stay silent.
        await context.route("**/*", _refuse)
        await context.route_web_socket("**/*", _hang_up)
        page = self._page = await context.new_page()
        context.on("page", self._popup)
        page.on("crash", self._crash)
        page.on("dialog", self._dialog)
        page.on("download", lambda _: self._noticed("download"))

    async def _clear(self, page: Page) -> None:
        assert self._context is not None
        await self._context.clear_cookies()
        session = await self._context.new_cdp_session(page)
        for origin in self._origins:
            await session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        await session.detach()
        self._origins.clear()

    def _noticed(self, what: str) -> None:
        if self._visit is not None:
            self._visit.rendered.noise[what] += 1

    def _crash(self, page: Page) -> None:
        if page is self._page:
            self._crashed = True

    async def _popup(self, page: Page) -> None:
        self._noticed("popup")
        with contextlib.suppress(PlaywrightError):
            await page.close()

    async def _dialog(self, dialog: Dialog) -> None:
        self._noticed("dialog")
        with contextlib.suppress(PlaywrightError):
            # Accept "Leave this page?", dismiss all others.
            await (dialog.accept() if dialog.type == "beforeunload" else dialog.dismiss())


async def _refuse(route: Route) -> None:
    with contextlib.suppress(PlaywrightError):
        await route.abort("blockedbyclient")


def _hang_up(socket: WebSocketRoute) -> None:
    """Connect to nothing: the page gets a socket that stays silent."""
