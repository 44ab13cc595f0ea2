"""One page in the browser: answers or refuses each of its requests, and detects when it has come to rest."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from playwright.async_api import Error as PlaywrightError

from crawlerproject.items import Rendered, RenderFailed
from crawlerproject.reasons import Reason
from crawlerproject.render.shared_cache import Subresource

if TYPE_CHECKING:
    from playwright.async_api import Page, Request, Route

    from crawlerproject.render.subresources import PageSubrequests

# A page rests when no request is under way and its size is unchanged between two looks (ours: React's schedulers and
# the usual debounces take 0.1 to 0.2 s).
_QUIET_SECONDS = 0.3
_LOOK_SECONDS = 0.15
# Share of a page's time after which its DOM is read, even if the page does not rest.
_READ_BY = 0.7
# Scripts that navigate this often are assumed never to stop.
_MAX_NAVIGATIONS = 5
# Blocked URLs that are listed in the metadata record.
_BLOCKED_SHOWN = 50
# A larger DOM is refused; the reader reads the first 2 MiB only.
_MAX_DOM_CHARACTERS = 8 * 1024 * 1024
_SIZE = "[document.getElementsByTagName('*').length, document.documentElement?.innerHTML.length ?? 0]"
WAIT_RULE = f"DOMContentLoaded, then no request under way for {_QUIET_SECONDS} s and the DOM's size unchanged"

# How precisely a limit on such a time is kept.
_STEP_SECONDS = 0.05

# A wait this long frees the page's place for another page. For shorter ones the two would only get in each other's way.
_LONG_SECONDS = 1.0

T = TypeVar("T")


class Blocked(Exception):
    """A sub-request that is not sent; the argument is the reason, in one word."""


class PageTime:
    """Seconds since the beginning, without waits. ``waits`` is called during a long wait, ``goes_on`` at its end."""

    def __init__(
        self,
        waits: Callable[[], None] = lambda: None,
        goes_on: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._waits, self._goes_on, self._clock = waits, goes_on, clock
        self._began = clock()
        self._waiting = 0
        self._since = 0.0
        self._waited = 0.0
        self._long: asyncio.TimerHandle | None = None
        self._left = False  # ``waits`` was called

    def begin(self) -> None:
        """Start now, when the page enters the browser."""
        self._began, self._waited = self._clock(), 0.0

    @property
    def waited_seconds(self) -> float:
        """Seconds of waiting until now; waits of several requests that overlap count once."""
        return self._waited + (self._clock() - self._since if self._waiting else 0.0)

    def now(self) -> float:
        """Seconds of the page's own time so far."""
        return self._clock() - self._began - self.waited_seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Enter while a request waits for its turn."""
        if not self._waiting:
            self._since = self._clock()
            self._long = asyncio.get_running_loop().call_later(_LONG_SECONDS, self._leave)
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._waited += self._clock() - self._since
                if self._long is not None:
                    self._long.cancel()
                if self._left:
                    self._left = False
                    self._goes_on()

    def _leave(self) -> None:
        self._left = True
        self._waits()

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``; TimeoutError after so many more seconds of the page's own time."""
        until = self.now() + seconds
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                if (left := until - self.now()) <= 0:
                    raise TimeoutError
                await asyncio.wait({task}, timeout=max(left, _STEP_SECONDS))
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=_STEP_SECONDS)


@dataclass(eq=False)  # without slots: Playwright keeps an attribute of its own in the object whose method it calls
class PageVisit:
    """Answers the browser's requests for one page."""

    document: Subresource  # the page's plain response
    subrequests: PageSubrequests
    rendered: Rendered
    time: PageTime
    settle_seconds: float
    timeout_seconds: float
    methods: Any = ()  # scrapy-playwright's PageMethods, applied before the page is waited for
    page: Page | None = None  # until the browser has opened one
    served: bool = False  # the page has received its document
    _under_way: int = 0
    _last_event: float = 0.0

    async def answer(self, route: Route, request: Request) -> None:
        """Playwright's route handler for all requests of the page."""
        with contextlib.suppress(PlaywrightError):  # the page was closed in the meantime
            if request.is_navigation_request():
                await self._navigation(route, request)
                return
            asked = (request.url, request.resource_type, request.method, request.headers)
            self._under_way += 1
            try:
                await self._fulfil(route, await self.subrequests.get(*asked, self.rendered))
            except Blocked as blocked:
                await self._refuse(route, str(blocked), request.url)
            finally:
                self._under_way -= 1
                self._last_event = monotonic()

    async def _navigation(self, route: Route, request: Request) -> None:
        if self.page is None or request.frame != self.page.main_frame:
            await self._refuse(route, "frame", request.url)
        elif not self.served:
            self.served = True
            await self._fulfil(route, self.document)
        else:
            # The target becomes a link. 204 keeps the current document; an abort would replace it.
            if request.url not in self.rendered.navigations:
                self.rendered.navigations.append(request.url)
            self.rendered.noise["navigation"] += 1
            if self.rendered.noise["navigation"] == _MAX_NAVIGATIONS:
                # The document cannot be read while navigations continue.
                session = await self.page.context.new_cdp_session(self.page)
                await session.send("Emulation.setScriptExecutionDisabled", {"value": True})
            await route.fulfill(status=204)

    async def _refuse(self, route: Route, why: str, url: str) -> None:
        self.rendered.blocked[why] += 1
        if len(self.rendered.blocked_urls) < _BLOCKED_SHOWN:
            self.rendered.blocked_urls.append(f"{why} {url}")
        await route.abort("blockedbyclient")

    async def _fulfil(self, route: Route, answer: Subresource) -> None:
        await route.fulfill(status=answer.status, headers=answer.headers, body=answer.body)

    async def settle(self, page: Page) -> None:
        """Wait until the page rests or its time is up; it is read as it is then."""
        spent = self.time.now()
        until = spent + min(self.settle_seconds, self.timeout_seconds * _READ_BY - spent)
        seen: list[int] | None = None
        while self.time.now() < until and self.rendered.noise["navigation"] < _MAX_NAVIGATIONS:
            await asyncio.sleep(_LOOK_SECONDS)
            if self._under_way or monotonic() - self._last_event < _QUIET_SECONDS:
                continue
            size: list[int] = await page.evaluate(_SIZE)
            if size[1] > _MAX_DOM_CHARACTERS:
                raise RenderFailed(Reason.RENDER_FAILED, f"the DOM has {size[1]:,} characters")
            if size == seen:
                self.rendered.settled = True
                return
            seen = size
