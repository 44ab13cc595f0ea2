"""scrapy-playwright's download handler with our answers in place of the network.

It is created for the first page that needs a browser, so that a crawl without such pages starts no process. It
overrides three private methods; requirements.txt pins the version for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from playwright.async_api import Error as PlaywrightError
from scrapy_playwright.handler import ScrapyPlaywrightDownloadHandler

from crawlerproject.render.visit import PageVisit

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Response
    from scrapy import Request
    from scrapy.crawler import Crawler

# It logs every start and end, which we log once.
logging.getLogger("scrapy-playwright").setLevel(logging.WARNING)


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
        self.died = asyncio.Event()  # the browser is gone

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
