"""One browser for a crawl: when it starts, what ends it, and whose fault a failed page is."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Error as PlaywrightError
from scrapy import Request
from scrapy.http import HtmlResponse

from crawlerproject.items import Rendered, RenderFailed
from crawlerproject.reasons import Reason
from crawlerproject.render import browser as browsers
from crawlerproject.render.browser import Browser, BrowserLimits, BrowserMissing, BrowserProcess, NoNamespace
from crawlerproject.render.playwright_handler import NotLoaded
from crawlerproject.render.shared_cache import Subresource
from crawlerproject.render.visit import PageTime, PageVisit
from tests.render import playwright_doubles

URL = "http://a.test/"


class Counts(dict[str, int]):
    """Scrapy's statistics."""

    def inc_value(self, name: str, count: int = 1) -> None:
        self[name] = self.get(name, 0) + count


class Crawler:
    """As far as a browser needs one."""

    def __init__(self) -> None:
        self.stats = Counts()


class Handler:
    """scrapy-playwright's handler over a browser of the test; ``loads`` is what a page does."""

    started: list[Handler] = []
    refuses: Callable[[str], None] = staticmethod(lambda path: None)
    loads: Callable[[Handler, Request], Awaitable[None]]

    def __init__(self, crawler: Any, options: dict[str, Any]) -> None:
        self.options = options
        self.browser = playwright_doubles.Browser()
        self.visits: dict[str, PageVisit] = {}
        self.died = asyncio.Event()
        self.closed = False

    async def start(self) -> None:
        type(self).refuses(self.options["executable_path"])
        self.started.append(self)

    async def download_request(self, request: Request) -> HtmlResponse:
        await type(self).loads(self, request)
        return HtmlResponse(request.url, body=b"<p>shown", encoding="utf-8")

    async def close(self) -> None:
        self.closed = True
        self.browser.connected = False


class _NoLauncher:
    """The system refuses namespaces."""

    def __init__(self, path: str) -> None:
        raise NoNamespace("Operation not permitted")


@pytest.fixture(autouse=True)
def doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started."""

    async def loads(handler: Handler, request: Request) -> None:
        handler.visits[request.meta["playwright_context"]].served = True
        handler.visits[request.meta["playwright_context"]].rendered.settled = True

    Handler.started = []
    monkeypatch.setattr(Handler, "loads", loads, raising=False)
    monkeypatch.setattr(browsers, "PlaywrightHandler", Handler)
    monkeypatch.setattr(browsers, "Launcher", _NoLauncher)
    monkeypatch.setattr(browsers, "browser_processes", list)


def made(**limits: Any) -> Browser:
    """A browser that has not started."""
    crawler: Any = Crawler()
    usual = BrowserLimits(
        navigation_seconds=15.0, timeout_seconds=30.0, max_memory_bytes=2**31, page_memory_bytes=2**29,
        screenshot=False, sandbox="auto",
    )  # fmt: skip
    return Browser(crawler, "/opt/chrome", "TestBot/1.0", replace(usual, **limits))


def visit_of(url: str = URL) -> PageVisit:
    """A page that wants to be shown."""
    source: Any = None
    return PageVisit(
        Subresource(200, {}, b""), source, Rendered(url), PageTime(), settle_seconds=1.0, timeout_seconds=1.0
    )


async def failed(browser: Browser, visit: PageVisit | None = None) -> RenderFailed:
    """How a page failed."""
    with pytest.raises(RenderFailed) as failure:
        await browser.show(visit or visit_of(), "a.test")
    return failure.value


def on_load(monkeypatch: pytest.MonkeyPatch, *, served: bool = True, error: Exception | None = None) -> None:
    """What becomes of pages from now on."""

    async def loads(handler: Handler, request: Request) -> None:
        handler.visits[request.meta["playwright_context"]].served = served
        if error is not None:
            raise error

    monkeypatch.setattr(Handler, "loads", loads)


def test_it_starts_with_the_first_page_and_shows_the_next_ones() -> None:
    """One process; its name and the moments are on record."""

    async def main() -> None:
        browser = made()
        assert Handler.started == []
        visits = [visit_of(), visit_of()]
        for visit in visits:
            await browser.show(visit, "a.test")
        assert len(Handler.started) == 1
        assert {visit.rendered.html for visit in visits} == {b"<p>shown"}
        assert visits[0].rendered.browser == "Chromium 131.0"
        assert 0 < visits[0].rendered.started_at <= visits[0].rendered.ended_at
        await browser.close()
        assert Handler.started[0].closed

    asyncio.run(main())


def test_pages_at_once_have_places_of_their_own() -> None:
    """And a place that is free again is used again."""

    async def main() -> None:
        browser = made()
        await asyncio.gather(*(browser.show(visit_of(), "a.test") for _ in range(3)))
        await browser.show(visit_of(), "a.test")
        assert len(Handler.started) == 1
        assert len(Handler.started[0].browser.contexts) <= 3
        await browser.close()

    asyncio.run(main())


def test_after_so_many_pages_it_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does not give back would add up."""
    monkeypatch.setattr(browsers, "_RECYCLE_PAGES", 2)

    async def main() -> None:
        browser = made()
        for _ in range(5):
            await browser.show(visit_of(), "a.test")
        assert [handler.closed for handler in Handler.started] == [True, True, False]
        await browser.close()

    asyncio.run(main())


def test_one_that_died_while_idle_is_started_anew() -> None:
    """The next page does not notice."""

    async def main() -> None:
        browser = made()
        await browser.show(visit_of(), "a.test")
        Handler.started[0].browser.connected = False
        await browser.show(visit_of(), "a.test")
        assert len(Handler.started) == 2
        await browser.close()

    asyncio.run(main())


def test_a_page_that_does_not_load_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own fault: it is not shown another time."""
    on_load(monkeypatch, error=NotLoaded())

    async def main() -> None:
        browser = made(navigation_seconds=15.0)
        failure = await failed(browser)
        assert (failure.reason, failure.detail) == (Reason.RENDER_TIMEOUT, "not loaded within 15 s")
        assert not failure.again
        assert failure.rendered is not None
        assert failure.rendered.ended_at > 0
        await browser.close()

    asyncio.run(main())


def test_a_page_whose_time_is_up_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """However far it came."""

    async def loads(handler: Handler, request: Request) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(Handler, "loads", loads)

    async def main() -> None:
        browser = made(timeout_seconds=0.05)
        failure = await failed(browser)
        assert (failure.reason, failure.detail) == (Reason.RENDER_TIMEOUT, "not done within 0.05 s")
        await browser.close()

    asyncio.run(main())


@pytest.mark.parametrize(("served", "again"), [(True, False), (False, True)])
def test_before_it_had_the_document_it_is_not_the_pages_fault(
    monkeypatch: pytest.MonkeyPatch, served: bool, again: bool
) -> None:
    """It is rendered another time then."""
    on_load(monkeypatch, served=served, error=PlaywrightError("Target crashed\nCall log"))

    async def main() -> None:
        browser = made()
        failure = await failed(browser)
        assert (failure.reason, failure.detail, failure.again) == (Reason.RENDER_FAILED, "Target crashed", again)
        await browser.close()

    asyncio.run(main())


def test_a_browser_that_dies_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pages are rendered another time, by the next one."""

    async def dies(handler: Handler, request: Request) -> None:
        handler.visits[request.meta["playwright_context"]].served = True
        handler.browser.connected = False
        raise PlaywrightError("Target closed")

    monkeypatch.setattr(Handler, "loads", dies)

    async def main() -> None:
        browser = made()
        failure = await failed(browser)
        assert (failure.detail, failure.again) == ("the browser has died", True)
        on_load(monkeypatch)
        await browser.show(visit_of(), "a.test")
        assert len(Handler.started) == 2
        await browser.close()

    asyncio.run(main())


def test_a_call_that_a_dead_browser_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page goes back at once, not when its time is up."""

    async def dies(handler: Handler, request: Request) -> None:
        handler.browser.connected = False
        handler.died.set()
        await asyncio.sleep(3600)

    monkeypatch.setattr(Handler, "loads", dies)

    async def main() -> None:
        browser = made(timeout_seconds=3600.0)
        failure = await asyncio.wait_for(failed(browser), 60)
        assert (failure.detail, failure.again) == ("the browser has died", True)
        await browser.close()

    asyncio.run(main())


def test_a_browser_that_does_not_start_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason in one line."""

    def refuses(path: str) -> None:
        raise PlaywrightError("Executable doesn't exist\nat /opt/chrome")

    monkeypatch.setattr(Handler, "refuses", staticmethod(refuses))

    async def main() -> None:
        with pytest.raises(BrowserMissing) as missing:
            await made().show(visit_of(), "a.test")
        assert str(missing.value) == "/opt/chrome does not start: Executable doesn't exist"

    asyncio.run(main())


@pytest.mark.parametrize("moments", [2, 99])
def test_one_that_did_start_is_waited_for(monkeypatch: pytest.MonkeyPatch, moments: int) -> None:
    """The machine has no process for it at the moment; a browser that stays away is missing, as one at the start."""
    monkeypatch.setattr(browsers, "_START_AGAIN_SECONDS", (0.0, 0.0, 0.0))
    refused: list[str] = []

    def refuses(path: str) -> None:
        if len(Handler.started) == 1 and len(refused) < moments:
            refused.append(path)
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(Handler, "refuses", staticmethod(refuses))

    async def main() -> None:
        browser = made()
        await browser.show(visit_of(), "a.test")
        Handler.started[0].browser.connected = False
        if moments == 99:
            with pytest.raises(BrowserMissing, match="Resource temporarily unavailable"):
                await browser.show(visit_of(), "a.test")
        else:
            await browser.show(visit_of(), "a.test")
        await browser.close()

    asyncio.run(main())

    assert len(refused) == min(moments, 4)


def test_a_launcher_that_was_removed_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """systemd-tmpfiles removes what is ten days old in /tmp; the browser keeps its namespace."""
    made_so_far: list[Path] = []

    class Launcher:
        def __init__(self, path: str) -> None:
            made_so_far.append(tmp_path / str(len(made_so_far)))
            made_so_far[-1].touch()
            self.path = str(made_so_far[-1])

        def close(self) -> None:
            Path(self.path).unlink(missing_ok=True)

    monkeypatch.setattr(browsers, "Launcher", Launcher)

    async def main() -> None:
        browser = made()
        for removed in (True, False, False):
            await browser.show(visit_of(), "a.test")
            Handler.started[-1].browser.connected = False
            if removed:
                made_so_far[-1].unlink()
        await browser.close()

    asyncio.run(main())

    paths = [handler.options["executable_path"] for handler in Handler.started]
    assert paths == [str(made_so_far[0]), str(made_so_far[1]), str(made_so_far[1])]
    assert not any(path.exists() for path in made_so_far)


def test_it_starts_in_a_namespace_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher goes with the browser."""
    closed: list[str] = []

    class Launcher:
        path = "/tmp/launcher"

        def __init__(self, path: str) -> None:
            assert path == "/opt/chrome"

        def close(self) -> None:
            closed.append(self.path)

    monkeypatch.setattr(browsers, "Launcher", Launcher)

    async def main() -> None:
        browser = made()
        await browser.show(visit_of(), "a.test")
        assert Handler.started[0].options["executable_path"] == "/tmp/launcher"
        await browser.close()
        assert closed == ["/tmp/launcher"]

    asyncio.run(main())


def test_without_a_namespace_it_starts_as_it_is_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its own settings keep it offline; that is tried once, not for each start."""
    monkeypatch.setattr(browsers, "_RECYCLE_PAGES", 1)

    async def main() -> None:
        browser = made()
        for _ in range(3):
            await browser.show(visit_of(), "a.test")
        assert {handler.options["executable_path"] for handler in Handler.started} == {"/opt/chrome"}
        await browser.close()

    asyncio.run(main())
    assert caplog.text.count("gets no network namespace") == 1


def refusing(monkeypatch: pytest.MonkeyPatch, *, user: int) -> None:
    """From now on Chromium's sandbox is refused, or everything if the options do not ask for one."""

    async def start(handler: Handler) -> None:
        if handler.options["chromium_sandbox"]:
            raise PlaywrightError("Target closed\nBrowser logs:\n\nChromium sandboxing failed!\n")
        handler.started.append(handler)

    monkeypatch.setattr(Handler, "start", start)
    monkeypatch.setattr(os, "geteuid", lambda: user)


def test_chromiums_sandbox_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Playwright turns it off otherwise."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    async def main() -> None:
        browser = made(sandbox="required")
        await browser.show(visit_of(), "a.test")
        assert Handler.started[0].options["chromium_sandbox"] is True
        await browser.close()

    asyncio.run(main())


@pytest.mark.parametrize(("user", "why"), [(0, "it runs as root"), (1000, "allow user namespaces")])
def test_without_a_sandbox_it_starts_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, user: int, why: str
) -> None:
    """Once, with the reason, whether Chromium refuses or the user is the one that it always refuses."""
    refusing(monkeypatch, user=user)
    monkeypatch.setattr(browsers, "_RECYCLE_PAGES", 1)

    async def main() -> None:
        browser = made()
        for _ in range(3):
            await browser.show(visit_of(), "a.test")
        assert [handler.options["chromium_sandbox"] for handler in Handler.started] == [False] * 3
        await browser.close()

    asyncio.run(main())
    (said,) = [line for line in caplog.text.splitlines() if "without Chromium's sandbox" in line]
    assert why in said


@pytest.mark.parametrize("user", [0, 1000])
def test_a_sandbox_that_is_required_and_refused_is_no_browser(monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    """Pages wait in their queue, as where there is no Chromium."""
    refusing(monkeypatch, user=user)

    async def main() -> None:
        browser = made(sandbox="required")
        with pytest.raises(BrowserMissing, match="RENDER_SANDBOX is required, and there is none"):
            await browser.show(visit_of(), "a.test")
        assert Handler.started == []

    asyncio.run(main())


@pytest.mark.parametrize("picture", [True, False])
def test_a_screenshot_is_taken_on_demand(monkeypatch: pytest.MonkeyPatch, picture: bool) -> None:
    """One that does not come costs the page nothing but its context."""

    async def fails(page: playwright_doubles.Page, **_: Any) -> bytes:
        raise PlaywrightError("no picture")

    if not picture:
        monkeypatch.setattr(playwright_doubles.Page, "screenshot", fails)

    async def main() -> None:
        browser = made(screenshot=True)
        visit = visit_of()
        await browser.show(visit, "a.test")
        assert visit.rendered.screenshot == (b"PNG" if picture else b"")
        assert visit.rendered.html == b"<p>shown"
        assert Handler.started[0].browser.contexts[0].closed is not picture
        await browser.close()

    asyncio.run(main())


def test_a_browser_that_grows_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the pages that it shows; none is begun meanwhile."""
    monkeypatch.setattr(browsers, "_WATCH_SECONDS", 0.001)
    monkeypatch.setattr(browsers, "browser_processes", lambda: [BrowserProcess(1, 3_000, False)])
    watched = asyncio.Event()

    def end_oversized(processes: object, limit: object) -> int:
        watched.set()
        return 0

    monkeypatch.setattr(browsers, "end_oversized", end_oversized)

    async def loads(handler: Handler, request: Request) -> None:
        handler.visits[request.meta["playwright_context"]].served = True
        if len(Handler.started) == 1:
            await watched.wait()

    monkeypatch.setattr(Handler, "loads", loads)

    async def main() -> None:
        browser = made(max_memory_bytes=2_000)
        await browser.show(visit_of(), "a.test")
        await browser.show(visit_of(), "a.test")
        assert [handler.closed for handler in Handler.started][:1] == [True]
        assert len(Handler.started) >= 2
        await browser.close()

    asyncio.run(main())
