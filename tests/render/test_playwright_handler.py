"""Playwright's driver, which stands between the crawl and the browser, where it does not run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scrapy.settings import Settings
from scrapy_playwright.handler import Config
from scrapy_playwright.provider import PlaywrightBrowserProvider

from crawlerproject.render import browser as browsers
from crawlerproject.render.browser import Browser, BrowserLimits, BrowserMissing
from crawlerproject.render.namespace import NoNamespace
from crawlerproject.render.playwright_handler import PlaywrightHandler
from tests.render.test_browser import visit_of


class Handler(PlaywrightHandler):
    """Without the pool of connections of its base, which takes Twisted's reactor."""

    def __init__(self, crawler: Any, options: dict[str, Any]) -> None:
        self.config = Config.from_settings(Settings())
        self.browser_provider_cls = PlaywrightBrowserProvider


def test_a_driver_that_does_not_run_is_a_browser_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real one with another program in Node.js's place, as where a library of its own is missing: pages wait."""

    def no_launcher(path: str) -> None:
        raise NoNamespace(path)

    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", "/bin/false")
    monkeypatch.setattr(browsers, "Launcher", no_launcher)
    monkeypatch.setattr(browsers, "PlaywrightHandler", Handler)
    limits = BrowserLimits(
        navigation_seconds=15.0, timeout_seconds=30.0, max_memory_bytes=2**31, page_memory_bytes=2**29,
        screenshot=False, sandbox="auto",
    )  # fmt: skip

    async def main() -> None:
        crawler: Any = None  # is asked for once a browser has started
        browser = Browser(crawler, "/opt/chrome", "TestBot/1.0", limits)
        with pytest.raises(BrowserMissing, match="/opt/chrome does not start: Playwright's driver has ended"):
            await browser.show(visit_of(), "a.test")
        await browser.close()

    asyncio.run(main())
