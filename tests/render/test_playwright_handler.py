"""Playwright's driver where it does not run; a slot of the browser: what it keeps between pages, and what not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.async_api import Error as PlaywrightError
from scrapy.settings import Settings
from scrapy_playwright.handler import Config
from scrapy_playwright.provider import PlaywrightBrowserProvider

from crawlerproject.config.chromium import WITHOUT_PEERS
from crawlerproject.items import Rendered
from crawlerproject.render import browser as browsers
from crawlerproject.render import playwright_handler
from crawlerproject.render.browser import Browser, BrowserLimits, BrowserMissing, NoNamespace
from crawlerproject.render.playwright_handler import PlaywrightHandler, Slot
from crawlerproject.render.shared_cache import Subresource
from crawlerproject.render.visit import PageTime, PageVisit
from tests.render.playwright_doubles import Browser as BrowserDouble
from tests.render.playwright_doubles import Context, Route
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


def good_visit(url: str, *, settled: bool = True) -> PageVisit:
    """A visit that went well, unless it is said otherwise."""
    source: Any = None
    visit = PageVisit(
        Subresource(200, {}, b""), source, Rendered(url), PageTime(), settle_seconds=1.0, timeout_seconds=1.0
    )
    visit.rendered.settled = settled
    return visit


class Bench:
    """A slot in a browser."""

    def __init__(self) -> None:
        self.browser = BrowserDouble()
        self.slot = Slot("slot1", "TestBot/1.0")

    async def show(self, host: str = "a.test", *, clean: bool = True, **outcome: Any) -> PageVisit:
        """One page, from its opening to its end."""
        browser: Any = self.browser
        visit = good_visit(f"http://{host}/", **outcome)
        await self.slot.open(browser, host, visit)
        await self.slot.close_visit(clean=clean)
        return visit

    @property
    def context(self) -> Context:
        """The youngest."""
        return self.browser.contexts[-1]


def test_a_context_has_no_way_out() -> None:
    """No service workers, downloads, peers or sockets; what is not the page's own request is refused."""

    async def main() -> None:
        bench = Bench()
        await bench.show()
        options = bench.context.options
        assert (options["service_workers"], options["accept_downloads"]) == ("block", False)
        assert options["user_agent"] == "TestBot/1.0"
        assert bench.context.scripts == [WITHOUT_PEERS]
        route = Route()
        await bench.context.routes["**/*"](route)
        assert route.aborted == "blockedbyclient"
        assert bench.context.routes["socket **/*"](object()) is None

    asyncio.run(main())


def test_pages_of_one_host_share_a_context() -> None:
    """What a page left behind in memory is cleared, and its scripts stop."""

    async def main() -> None:
        bench = Bench()
        await bench.show()
        await bench.show()
        assert len(bench.browser.contexts) == 1
        assert bench.context.page.visited == ["about:blank", "about:blank"]
        assert any("sessionStorage.clear" in script for script in bench.context.page.evaluated)
        assert bench.context.cookies_cleared == 0

    asyncio.run(main())


def test_another_host_finds_nothing_of_the_last() -> None:
    """Cookies and the storage of every origin that was shown are cleared."""

    async def main() -> None:
        bench = Bench()
        await bench.show("a.test")
        await bench.show("b.test")
        assert len(bench.browser.contexts) == 1
        assert bench.context.cookies_cleared == 1
        assert bench.context.sent == [
            ("Storage.clearDataForOrigin", {"origin": "http://a.test/", "storageTypes": "all"})
        ]

    asyncio.run(main())


def test_what_cannot_be_cleared_is_thrown_away() -> None:
    """The next host gets a context of its own."""

    async def main() -> None:
        bench = Bench()
        await bench.show("a.test")
        bench.context.broken = True
        await bench.show("b.test")
        assert [context.closed for context in bench.browser.contexts] == [True, False]

    asyncio.run(main())


@pytest.mark.parametrize("odd", [{"clean": False}, {"settled": False}])
def test_a_page_that_did_not_go_well_takes_its_context_with_it(odd: dict[str, Any]) -> None:
    """It failed, or was still at work when its time was up."""

    async def main() -> None:
        bench = Bench()
        await bench.show(**odd)
        assert bench.context.closed
        await bench.show()
        assert len(bench.browser.contexts) == 2

    asyncio.run(main())


def test_dialogs_windows_and_downloads_are_counted_and_lead_nowhere() -> None:
    """A page that makes noise takes its context with it."""

    async def main() -> None:
        bench = Bench()
        browser: Any = bench.browser
        visit = good_visit("http://a.test/")
        await bench.slot.open(browser, "a.test", visit)
        answers: list[str] = []

        async def said(what: str) -> None:
            answers.append(what)

        for kind in ("alert", "beforeunload"):
            dialog = SimpleNamespace(type=kind, accept=lambda: said("yes"), dismiss=lambda: said("no"))
            await bench.context.page.handlers["dialog"](dialog)
        window = Context().page
        await bench.context.handlers["page"](window)
        bench.context.page.handlers["download"](object())
        assert answers == ["no", "yes"]
        assert window.closed
        assert visit.rendered.noise == {"dialog": 2, "popup": 1, "download": 1}
        assert await bench.slot.close_visit(clean=True)
        assert bench.context.closed

    asyncio.run(main())


def test_noise_after_the_visit_is_nobodys() -> None:
    """A download that comes late is refused and not counted."""

    async def main() -> None:
        bench = Bench()
        visit = await bench.show()
        bench.context.page.handlers["download"](object())
        assert visit.rendered.noise == {}

    asyncio.run(main())


def test_a_page_that_crashed_is_not_shown_again() -> None:
    """The next one has a new context; another page's crash does not matter."""

    async def main() -> None:
        bench = Bench()
        await bench.show()
        page = bench.context.page
        page.handlers["crash"](object())
        await bench.show()
        assert len(bench.browser.contexts) == 1
        page.handlers["crash"](page)
        await bench.show()
        assert len(bench.browser.contexts) == 2

    asyncio.run(main())


def test_a_context_does_not_serve_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """What clearing forgets does not add up."""
    monkeypatch.setattr(playwright_handler, "_PAGES", 2)

    async def main() -> None:
        bench = Bench()
        for _ in range(5):
            await bench.show()
        assert len(bench.browser.contexts) == 3

    asyncio.run(main())


def test_a_browser_that_hangs_is_noticed() -> None:
    """A context that does not close in time: the browser no longer answers. One that has died needs no closing."""

    async def main() -> None:
        bench = Bench()
        await bench.show()
        bench.context.close_hangs = True
        assert not await bench.slot.discard()
        assert await bench.slot.discard()  # there is none any more

        await bench.show()

        async def died() -> None:
            raise PlaywrightError("Target closed")

        bench.context.close = died  # type: ignore[method-assign]
        assert await bench.slot.discard()

    asyncio.run(main())
