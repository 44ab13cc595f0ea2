"""Playwright's page, request and route as far as our code calls them: they remember what was done to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.async_api import Error as PlaywrightError


class Session:
    """A session of the DevTools protocol."""

    def __init__(self, sent: list[tuple[str, dict[str, Any]]]) -> None:
        self._sent = sent

    async def send(self, method: str, options: dict[str, Any]) -> None:
        self._sent.append((method, options))

    async def detach(self) -> None:
        pass


class Context:
    """A browser context with one page; ``broken`` once its browser has died."""

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        self.options = options or {}
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.scripts: list[str] = []
        self.routes: dict[str, Callable[..., Any]] = {}
        self.handlers: dict[str, Callable[..., Any]] = {}
        self.cookies_cleared = 0
        self.closed = self.broken = False
        self.close_hangs = False
        self.page = Page(self)

    async def add_init_script(self, script: str) -> None:
        self.scripts.append(script)

    async def route(self, pattern: str, handler: Callable[..., Any]) -> None:
        self.routes[pattern] = handler

    async def route_web_socket(self, pattern: str, handler: Callable[..., Any]) -> None:
        self.routes[f"socket {pattern}"] = handler

    async def new_page(self) -> Page:
        return self.page

    async def new_cdp_session(self, page: Page) -> Session:
        if self.broken:
            raise PlaywrightError("Target closed")
        return Session(self.sent)

    async def clear_cookies(self) -> None:
        if self.broken:
            raise PlaywrightError("Target closed")
        self.cookies_cleared += 1

    async def close(self) -> None:
        if self.close_hangs:
            raise TimeoutError
        self.closed = True

    def on(self, event: str, handler: Callable[..., Any]) -> None:
        self.handlers[event] = handler


class Page:
    """A page; ``sizes`` are what its DOM measures at one look after the other."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.main_frame = object()
        self.handlers: dict[str, Callable[..., Any]] = {}
        self.evaluated: list[str] = []
        self.visited: list[str] = []
        self.sizes: list[list[int]] = []
        self.closed = False
        self.pictures = 0

    def on(self, event: str, handler: Callable[..., Any]) -> None:
        self.handlers[event] = handler

    async def evaluate(self, script: str) -> Any:
        if self.context.broken:
            raise PlaywrightError("Target closed")
        self.evaluated.append(script)
        return self.sizes.pop(0) if len(self.sizes) > 1 else next(iter(self.sizes), None)

    async def goto(self, url: str, **_: Any) -> None:
        self.visited.append(url)

    async def close(self) -> None:
        self.closed = True

    async def screenshot(self, **_: Any) -> bytes:
        self.pictures += 1
        return b"PNG"


class Browser:
    """A browser; it makes contexts until it has died."""

    def __init__(self) -> None:
        self.contexts: list[Context] = []
        self.version = "131.0"
        self.connected = True

    async def new_context(self, **options: Any) -> Context:
        self.contexts.append(Context(options))
        return self.contexts[-1]

    def is_connected(self) -> bool:
        return self.connected


class Request:
    """What a page asks for."""

    def __init__(
        self, url: str, kind: str = "script", *, frame: object = None, navigation: bool = False, method: str = "GET"
    ) -> None:
        self.url, self.resource_type, self.frame, self.method = url, kind, frame, method
        self.headers = {"accept": "*/*", "origin": "http://a.test"}
        self._navigation = navigation

    def is_navigation_request(self) -> bool:
        return self._navigation


class Route:
    """How a request was answered: ``fulfilled`` or ``aborted``."""

    def __init__(self, *, gone: bool = False) -> None:
        self.fulfilled: dict[str, Any] | None = None
        self.aborted = ""
        self._gone = gone

    async def fulfill(self, **answer: Any) -> None:
        if self._gone:
            raise PlaywrightError("Target page has been closed")
        self.fulfilled = answer

    async def abort(self, why: str) -> None:
        if self._gone:
            raise PlaywrightError("Target page has been closed")
        self.aborted = why
