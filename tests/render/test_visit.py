"""What a page in the browser gets for each of its requests, and when it counts as at rest."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from typing import Any

import pytest

from crawlerproject.items import Rendered, RenderFailed
from crawlerproject.reasons import Reason
from crawlerproject.render import visit as visits
from crawlerproject.render.shared_cache import Subresource
from crawlerproject.render.visit import Blocked, PageTime, PageVisit
from tests.render.playwright_doubles import Context, Page, Request, Route
from tests.web.waiting import busyness

URL = "http://a.test/"
DOCUMENT = Subresource(200, {"content-type": "text/html"}, b"<div id=root></div>")


class Source:
    """Answers scripts; blocks what ``blocked`` names, with a word."""

    def __init__(self, **blocked: str) -> None:
        self.blocked = blocked
        self.asked: list[tuple[str, str, str]] = []
        self.hold: asyncio.Event | None = None

    async def get(self, url: str, kind: str, method: str, headers: dict[str, str], rendered: Rendered) -> Subresource:
        self.asked.append((url, kind, method))
        if self.hold is not None:
            await self.hold.wait()
        if kind in self.blocked:
            raise Blocked(self.blocked[kind])
        return Subresource(200, {"x": "y"}, b"code")

    def close(self) -> None:
        pass


def opened(source: Source | None = None, **seconds: float) -> tuple[PageVisit, Any]:
    """A visit whose page is in the browser, and that page."""
    times = {"settle_seconds": 5.0, "timeout_seconds": 10.0} | seconds
    subrequests: Any = source or Source()
    visit = PageVisit(
        DOCUMENT, subrequests, Rendered(URL), PageTime(), times["settle_seconds"], times["timeout_seconds"]
    )
    page: Any = Context().page
    visit.page = page
    return visit, page


async def answered(visit: PageVisit, request: Request, **options: bool) -> Route:
    """The request's route, after the visit has dealt with it."""
    route: Any = Route(**options)
    asked: Any = request
    await visit.answer(route, asked)
    answer: Route = route
    return answer


def navigation(page: Page, url: str = URL) -> Request:
    """The page itself is asked for, or goes somewhere."""
    return Request(url, "document", frame=page.main_frame, navigation=True)


def test_the_document_is_the_stored_answer_once() -> None:
    """The first navigation gets it; where scripts go next is a link, and the document stays."""

    async def main() -> None:
        visit, page = opened()
        first = await answered(visit, navigation(page))
        assert first.fulfilled == {"status": 200, "headers": DOCUMENT.headers, "body": DOCUMENT.body}

        for url in ("http://a.test/next", "http://b.test/", "http://a.test/next"):
            assert (await answered(visit, navigation(page, url))).fulfilled == {"status": 204}
        assert visit.rendered.navigations == ["http://a.test/next", "http://b.test/"]
        assert visit.rendered.noise["navigation"] == 3

    asyncio.run(main())


def test_scripts_that_navigate_without_end_are_switched_off() -> None:
    """While they go on the document could not be read."""

    async def main() -> None:
        visit, page = opened()
        for _ in range(6):
            await answered(visit, navigation(page))
        assert page.context.sent == [("Emulation.setScriptExecutionDisabled", {"value": True})]

    asyncio.run(main())


def test_frames_are_refused() -> None:
    """They are other pages."""

    async def main() -> None:
        visit, _ = opened()
        frame = await answered(visit, Request("http://ads.test/", "document", frame=object(), navigation=True))
        assert (frame.fulfilled, frame.aborted) == (None, "blockedbyclient")
        assert visit.rendered.blocked == {"frame": 1}
        assert visit.rendered.blocked_urls == ["frame http://ads.test/"]

    asyncio.run(main())


def test_sub_requests_are_answered_by_the_source_or_blocked() -> None:
    """With the word that says why."""

    async def main() -> None:
        source = Source(image="image")
        visit, _ = opened(source)
        script = await answered(visit, Request("http://a.test/app.js"))
        assert script.fulfilled == {"status": 200, "headers": {"x": "y"}, "body": b"code"}
        image = await answered(visit, Request("http://a.test/a.png", "image"))
        assert image.aborted == "blockedbyclient"
        assert source.asked == [("http://a.test/app.js", "script", "GET"), ("http://a.test/a.png", "image", "GET")]
        assert visit.rendered.blocked == {"image": 1}

    asyncio.run(main())


def test_few_blocked_addresses_are_kept_and_all_are_counted() -> None:
    """The metadata record must not grow with what a page asks for."""

    async def main() -> None:
        visit, _ = opened(Source(image="image"))
        for number in range(60):
            await answered(visit, Request(f"http://a.test/{number}.png", "image"))
        assert (visit.rendered.blocked["image"], len(visit.rendered.blocked_urls)) == (60, 50)

    asyncio.run(main())


def test_a_page_that_is_gone_ends_nothing_else() -> None:
    """Playwright's errors about a closed page are not the crawl's."""

    async def main() -> None:
        visit, page = opened()
        await answered(visit, navigation(page), gone=True)
        await answered(visit, Request("http://a.test/app.js"), gone=True)
        assert visit.served

    asyncio.run(main())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at the page every few milliseconds."""
    monkeypatch.setattr(visits, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(visits, "_QUIET_SECONDS", 0.0)


@pytest.mark.usefixtures("quick")
def test_a_page_rests_when_its_size_stays() -> None:
    """Two looks in a row see the same."""

    async def main() -> None:
        visit, page = opened()
        page.sizes = [[10, 100], [20, 300], [20, 300]]
        await visit.settle(page)
        assert visit.rendered.settled
        assert len(page.evaluated) == 3

    asyncio.run(main())


@pytest.mark.usefixtures("quick")
def test_a_page_that_waits_for_an_answer_does_not_rest() -> None:
    """However long its size stays; it rests once the answer is there."""

    async def main() -> None:
        source = Source()
        source.hold = asyncio.Event()
        visit, page = opened(source)
        page.sizes = [[1, 1]]
        asking = asyncio.ensure_future(answered(visit, Request("http://a.test/data.json", "fetch")))
        settling = asyncio.ensure_future(visit.settle(page))
        await asyncio.sleep(0.02)
        assert page.evaluated == []
        source.hold.set()
        await asking
        await settling
        assert visit.rendered.settled

    asyncio.run(main())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("limits", "looks"), [({"settle_seconds": 3.0}, 3), ({"timeout_seconds": 10.0}, 7)])
def test_a_page_that_never_rests_is_taken_as_it_is(limits: dict[str, Any], looks: int) -> None:
    """At the latest when seven tenths of its time are over."""

    async def main() -> None:
        visit, page = opened(**({"settle_seconds": 60.0, "timeout_seconds": 60.0} | limits))
        page.sizes = [[number, number] for number in range(100)]
        visit.time = PageTime(clock=lambda: float(len(page.evaluated)))  # a second a look
        await visit.settle(page)
        assert not visit.rendered.settled
        assert len(page.evaluated) == looks

    asyncio.run(main())


@pytest.mark.usefixtures("quick")
def test_a_document_without_end_is_no_page() -> None:
    """It would be too much to read."""

    async def main() -> None:
        visit, page = opened()
        page.sizes = [[10, 8 * 1024 * 1024 + 1]]
        with pytest.raises(RenderFailed) as failed:
            await visit.settle(page)
        assert failed.value.reason is Reason.RENDER_FAILED
        assert "8,388,609 characters" in failed.value.detail

    asyncio.run(main())


class Clock:
    """Seconds in the test's hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """The clock's time."""
        return self.now


def test_waits_that_overlap_count_once_and_not_as_the_pages_time() -> None:
    """Two requests wait for 3 s and 4 s, 2 s of them together: the page waits from the first to the last."""

    async def waits() -> None:
        clock = Clock()
        page = PageTime(clock=clock)
        clock.now += 7
        page.begin()
        clock.now += 1
        with ExitStack() as second:
            with page.waiting():
                clock.now += 1
                second.enter_context(page.waiting())
                clock.now += 2
                assert (page.now(), page.waited_seconds) == (1.0, 3.0)
            clock.now += 2
        clock.now += 10

        assert (page.now(), page.waited_seconds) == (11.0, 5.0)

    asyncio.run(waits())


def test_only_a_long_wait_leaves_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ends before it is long says nothing; one that is long says so, and when it has ended."""
    told: list[str] = []

    async def waits(seconds: float) -> None:
        with PageTime(lambda: told.append("waits"), lambda: told.append("goes on")).waiting():
            await asyncio.sleep(seconds)

    asyncio.run(waits(0))
    assert told == []
    monkeypatch.setattr("crawlerproject.render.visit._LONG_SECONDS", 0.0)
    asyncio.run(waits(0.01))

    assert told == ["waits", "goes on"]


def test_a_limit_leaves_waits_out() -> None:
    """Work that waits longer than its limit is done all the same; work that does not wait is cut."""

    async def work(page: PageTime, *, waits: bool) -> str:
        if waits:
            with page.waiting():
                await asyncio.sleep(0.3)
        else:
            await asyncio.sleep(60)
        return "done"

    async def limited(*, waits: bool) -> str:
        page = PageTime()
        return await page.within(0.15, work(page, waits=waits))

    assert asyncio.run(limited(waits=True)) == "done"
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(limited(waits=False))
    assert time.monotonic() - began < 30 * busyness()


def test_what_the_work_raises_comes_through() -> None:
    """As if it had been awaited itself."""

    async def fails() -> None:
        raise ValueError("its own")

    async def limited() -> None:
        await PageTime().within(10, fails())

    with pytest.raises(ValueError, match="its own"):
        asyncio.run(limited())
