"""A page's sub-requests in a crawl: they wait for turns of hosts, and end with the page."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import Response

from crawlerproject.crawl.intake import Intake
from crawlerproject.errors import FetchError
from crawlerproject.frontier.leasing import Lookup
from crawlerproject.frontier.passage import Lease
from crawlerproject.guard.guard import Refused
from crawlerproject.items import Rendered
from crawlerproject.reasons import Reason
from crawlerproject.render.shared_cache import SharedCache, Subresource
from crawlerproject.render.subresources import CrawlSubrequests, RenderProxies, SubrequestBounds
from crawlerproject.render.visit import Blocked, PageTime
from crawlerproject.runtime.services import Services
from crawlerproject.stores.logs.request_log import read_log
from tests.crawl.sessions import HOST, Bench, page_of

SCRIPT = f"{HOST}/app.js"


class Browser(Bench):
    """A crawl with one page in the browser."""

    def __init__(
        self, folder: Path, *, wait_seconds: float = 60.0, most: int = 10, proxies: tuple[str, ...] = ()
    ) -> None:
        super().__init__(folder, RENDER="auto")
        self.add(f"{HOST}/page")
        self.lease_of_page = self.page_lease()
        self.session.pages.finish(page_of(self.lease_of_page, self.now))
        self.woken = 0
        services = Services()
        services.provide(self.session, self.run, Intake(self.session, self.run, self._wake))
        self.time = PageTime(clock=lambda: self.now)
        self.proxies = RenderProxies(proxies)
        self.subrequests = CrawlSubrequests(
            services,
            self.lease_of_page,
            SharedCache(1_000_000),
            self.proxies,
            SubrequestBounds(most, wait_seconds),
            self.time,
        )
        self.rendered = Rendered(f"{HOST}/page")

    def _wake(self) -> None:
        self.woken += 1

    def get(self, url: str = SCRIPT, **headers: str) -> asyncio.Task[Subresource]:
        """One sub-request, under way."""
        return asyncio.ensure_future(self.subrequests.get(url, "script", "GET", headers, self.rendered))

    async def turn(self) -> Lease:
        """The lease of the sub-request that waits; its host is free by then."""
        await asyncio.sleep(0)
        for _ in range(10):
            turn = self.frontier.leasing.next(self.now)
            if isinstance(turn, Lookup):
                turn = self.frontier.leasing.looked_up(turn.host, "192.0.2.1", 1e12, self.now)
            if turn is not None and turn.subrequest is not None:
                turn.subrequest.granted()
                return turn
            if turn is not None:
                self.session.pages.finish(page_of(turn, self.now, status=404))
            wake = self.frontier.wake_at()
            assert wake is not None
            self.now = max(self.now, wake)
        raise AssertionError("it had no turn")

    def answer(self, lease: Lease, outcome: Any) -> None:
        """What the web answers; the lease ends."""
        assert lease.subrequest is not None
        lease.subrequest.answered(outcome)
        self.session.pages.finish(page_of(lease, self.now))


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    """One page, no proxies."""
    return Browser(tmp_path)


async def blocked(task: asyncio.Task[Subresource]) -> str:
    """The word with which a sub-request ended."""
    with pytest.raises(Blocked) as why:
        await task
    return str(why.value)


def test_a_sub_request_waits_for_its_hosts_turn(browser: Browser) -> None:
    """The engine is woken for it; while it waits the page's time stands still."""

    async def main() -> None:
        asking = browser.get(origin="http://a.test")
        lease = await browser.turn()
        assert lease.subrequest is not None
        assert (lease.row.url, dict(lease.subrequest.headers)) == (SCRIPT, {"Accept": "*/*", "Origin": "http://a.test"})
        assert browser.woken == 1
        browser.answer(lease, Response(SCRIPT, body=b"code"))
        assert (await asking).body == b"code"
        assert browser.rendered.asked == 1
        assert browser.rendered.waited_seconds > 0
        assert browser.time.now() == 0

    asyncio.run(main())


def test_one_that_can_have_no_turn_in_time_is_not_asked_for(tmp_path: Path) -> None:
    """It is in the log, as the page's."""

    async def main() -> None:
        browser = Browser(tmp_path, wait_seconds=0.0)
        assert await blocked(browser.get()) == "render-pace"
        browser.commit()
        line = list(read_log(browser.folder.log))[-1]
        assert (line["url"], line["via"], line["reason"]) == (SCRIPT, f"{HOST}/page", "render-pace")
        assert browser.frontier.subrequests.next(browser.lease_of_page.host, browser.now, external=False) is None

    asyncio.run(main())


def test_a_gate_refuses_at_once(browser: Browser) -> None:
    """Nothing waits for it."""

    async def main() -> None:
        assert await blocked(browser.get("http://10.0.0.1/app.js"))
        assert browser.woken == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (FetchError(Reason.DISCONNECTED), "disconnected"),
        (Refused(Reason.NEVERCRAWL), "nevercrawl"),
        (RuntimeError("a middleware answered"), "internal-error"),
    ],
)
def test_what_fails_is_blocked_for_its_reason(browser: Browser, outcome: Exception, word: str) -> None:
    """The page goes on without it."""

    async def main() -> None:
        asking = browser.get()
        browser.answer(await browser.turn(), outcome)
        assert await blocked(asking) == word

    asyncio.run(main())


def test_a_page_that_is_gone_waits_for_nothing(browser: Browser) -> None:
    """What waits is withdrawn; nothing more is asked."""

    async def main() -> None:
        asking = browser.get()
        await asyncio.sleep(0)
        browser.subrequests.close()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert browser.frontier.subrequests.next(browser.lease_of_page.host, browser.now, external=False) is None
        assert await blocked(browser.get()) == "gone"

    asyncio.run(main())


def test_an_answer_after_the_page_is_nobodys(browser: Browser) -> None:
    """The request that was sent ends by itself."""

    async def main() -> None:
        asking = browser.get()
        lease = await browser.turn()
        for _ in range(5):
            await asyncio.sleep(0)  # it waits for the answer by now
        browser.subrequests.close()
        with pytest.raises(asyncio.CancelledError):
            await asking
        browser.answer(lease, Response(SCRIPT, body=b"late"))
        assert lease.ended

    asyncio.run(main())


def test_a_page_has_so_many_sub_requests(tmp_path: Path) -> None:
    """One more is blocked before it waits."""

    async def main() -> None:
        browser = Browser(tmp_path, most=1)
        asking = browser.get()
        browser.answer(await browser.turn(), Response(SCRIPT, body=b"code"))
        await asking
        assert await blocked(browser.get(f"{HOST}/2.js"))
        assert browser.rendered.asked == 1

    asyncio.run(main())


def test_a_proxy_that_fails_is_told_so(tmp_path: Path) -> None:
    """Three times in a row, and it rests."""

    async def main() -> None:
        browser = Browser(tmp_path, proxies=("http://one:1", "http://two:2"))
        for number in range(3):
            asking = browser.get(f"{HOST}/{number}.js")
            lease = await browser.turn()
            assert lease.subrequest is not None
            assert lease.subrequest.proxy == "http://one:1"
            browser.answer(lease, FetchError(Reason.PROXY_FAILED))
            assert await blocked(asking) == "proxy-failed"
        assert {browser.proxies.choose(0.0) for _ in range(4)} == {"http://two:2"}

    asyncio.run(main())


def test_they_take_turns_and_a_bad_one_rests() -> None:
    """Three failures in a row send one away for ten minutes; a success in between forgives."""
    proxies = RenderProxies(["http://a", "http://b"])
    assert [proxies.choose(0.0) for _ in range(3)] == ["http://a", "http://b", "http://a"]
    for failed in (True, True, False, True, True):
        proxies.answered("http://a", 0.0, failed=failed)
    assert {proxies.choose(0.0) for _ in range(4)} == {"http://a", "http://b"}

    proxies.answered("http://a", 0.0, failed=True)

    assert {proxies.choose(599.0) for _ in range(4)} == {"http://b"}
    assert {proxies.choose(601.0) for _ in range(4)} == {"http://a", "http://b"}


def test_when_all_rest_one_is_taken_all_the_same() -> None:
    """Never a request without one: the operator may have a reason."""
    proxies = RenderProxies(["http://a", "http://b"])
    for proxy, now in (("http://b", 0.0), ("http://a", 5.0)):
        for _ in range(3):
            proxies.answered(proxy, now, failed=True)

    assert proxies.choose(10.0) == "http://b"
    assert RenderProxies([]).choose(0.0) == ""
