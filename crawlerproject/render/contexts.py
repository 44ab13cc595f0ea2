"""A slot of the browser: one context with one page, cleared before it serves another host."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from playwright.async_api import Error as PlaywrightError

from crawlerproject.config.chromium import VIEWPORT, WITHOUT_PEERS
from crawlerproject.render.visit import PageVisit

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Dialog, Page, Route, WebSocketRoute

# A hung renderer's context closes at once (0.05 s measured); longer means that the browser itself hangs.
_CLOSE_SECONDS = 5.0
# Pages after which a context is discarded, so that what clearing misses does not add up (ours).
_PAGES = 50
_FORGET = "try { sessionStorage.clear(); window.name = '' } catch {}"  # what Storage.clearDataForOrigin leaves


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
