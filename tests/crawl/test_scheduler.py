"""The frontier as the engine sees it: what it takes, what it hands out, when there is nothing left to wait for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.utils.request import RequestFingerprinter

from crawlerproject.crawl import session as sessions
from crawlerproject.crawl.intake import Intake, LongPages
from crawlerproject.crawl.roles.single_process import SingleProcess
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.crawl.session import Session
from crawlerproject.errors import StorageError
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.pipelines.warc import PageProcessor
from crawlerproject.request_meta import lease_in, leased
from crawlerproject.rules.url.urls import parse
from crawlerproject.runtime.services import services_of
from crawlerproject.spiders.web import WebSpider
from tests.crawl.sessions import HOST, FullStore, Stats, page_of, settings_of, spider_of


class Opened(FrontierScheduler):
    """A scheduler of a crawl whose folder is real and whose store is in memory, before an engine of the test."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sessions, "role_of", lambda *given: SingleProcess(FullStore()))  # type: ignore[arg-type]
        settings = settings_of(CRAWL_DIR=str(folder), FETCH_HOSTS_FILE=str(folder.with_name("hosts")))
        folder.with_name("hosts").write_text("192.0.2.1 a.test\n192.0.2.2 b.test\n")
        self.spider = spider_of(settings)
        crawler: Any = self.spider.crawler
        self.asked = 0
        slot = SimpleNamespace(
            nextcall=SimpleNamespace(schedule=self._asked, _call=None), inprogress=set(), scheduler=self
        )
        crawler.stats, crawler.request_fingerprinter = Stats(), RequestFingerprinter(crawler)
        crawler.engine = SimpleNamespace(spider=self.spider, _slot=slot, scheduler=self, needs_backout=lambda: False)
        crawler.crawling = True
        crawler.engine.scraper = SimpleNamespace(itemproc=PageProcessor(crawler=crawler))
        super().__init__(crawler)

    def _asked(self) -> None:
        self.asked += 1

    async def request(self) -> Request:
        """The next that it hands out."""
        while (request := self.next_request()) is None:
            await asyncio.sleep(0.005)
        return request


@pytest.fixture
def scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Opened, nothing queued."""
    made = Opened(tmp_path / "crawl", monkeypatch)

    async def run() -> None:
        made.open(made.spider)
        made._engine.cancel()

    asyncio.run(run())
    yield made
    made.crawl.close()
    made.spider.crawler.signals.send_catch_log(signals.spider_closed, spider=made.spider, reason="finished")
    assert not made.crawl.folder.locked()


def test_other_spiders_get_scrapys_own() -> None:
    """So do the shell, fetch and parse."""
    crawler: Any = Crawler(WebSpider, settings_of())
    crawler.spider = WebSpider.from_crawler(crawler)
    crawler.stats, crawler.request_fingerprinter = Stats(), RequestFingerprinter(crawler)
    crawler.crawling = True

    assert isinstance(FrontierScheduler.from_crawler(crawler), Scheduler)


def test_components_find_the_parts_by_type(scheduler: Opened) -> None:
    """The very ones of the session."""
    services = services_of(scheduler.spider.crawler)

    assert services[Session] is scheduler.crawl.session
    assert services[Frontier] is scheduler.crawl.session.frontier
    assert services[LongPages] is scheduler.long
    assert services[Intake] is scheduler.long._intake


def test_a_seed_becomes_a_request_when_the_engine_asks(scheduler: Opened) -> None:
    """Its robots.txt first; nothing is handed to the engine before."""

    async def run() -> Request:
        services_of(scheduler.spider.crawler)[Intake].add_seeds([parse(f"{HOST}/")])
        return await scheduler.request()

    lease = lease_in(asyncio.run(run()))
    assert lease is not None
    assert lease.row.url == f"{HOST}/robots.txt"
    assert not scheduler._others


def test_nothing_is_asked_for_before_known_pages_are_chosen(scheduler: Opened) -> None:
    """Choosing holds the loop: a connection that is opened meanwhile would fail, and its host be blamed."""

    async def run() -> Request:
        with suppress(StorageError), scheduler.choosing():
            services_of(scheduler.spider.crawler)[Intake].add_seeds([parse(f"{HOST}/")])
            assert scheduler.next_request() is None
            assert not scheduler._dispatch  # no host is looked up either
            assert scheduler.add_revisits(None) == 0
            raise StorageError("no room")  # what is queued is asked for all the same
        return await scheduler.request()

    assert asyncio.run(run()).url == f"{HOST}/robots.txt"


def test_a_page_that_ends_lets_its_host_go_on(scheduler: Opened) -> None:
    """Robots.txt, then the page, each by its own lease."""

    async def run() -> list[str]:
        services_of(scheduler.spider.crawler)[Intake].add_seeds([parse(f"{HOST}/")])
        urls = []
        for _ in range(2):
            lease = lease_in(await scheduler.request())
            assert lease is not None
            urls.append(lease.row.url)
            await scheduler.spider.complete(page_of(lease, scheduler.crawl.run.now(), status=404))
            lease.host.next_free = 0.0
            scheduler.crawl.session.frontier.workbench.wait(lease.host, 0.0, work=True)
        return urls

    assert asyncio.run(run()) == [f"{HOST}/robots.txt", f"{HOST}/"]
    assert scheduler.in_flight.by_host == {}


def test_requests_of_others_are_handed_out_as_they_are(scheduler: Opened) -> None:
    """The very object, once; a second of the same is dropped unless it wants to be asked."""
    first, again, forced = Request(f"{HOST}/own"), Request(f"{HOST}/own"), Request(f"{HOST}/own", dont_filter=True)
    taken = [scheduler.enqueue_request(request) for request in (first, again, forced)]

    async def run() -> list[Request | None]:
        return [scheduler.next_request(), scheduler.next_request(), scheduler.next_request()]

    handed = asyncio.run(run())
    assert taken == [True, False, True]
    assert handed == [first, forced, None]
    assert handed[0] is first


def test_a_copy_of_a_lease_is_a_request_like_any_other(scheduler: Opened) -> None:
    """``meta=response.meta``: nothing of the lease's goes with it."""

    async def run() -> Request:
        services_of(scheduler.spider.crawler)[Intake].add_seeds([parse(f"{HOST}/")])
        return await scheduler.request()

    sent = asyncio.run(run())
    copy = Request(f"{HOST}/own", meta=dict(sent.meta))
    scheduler.enqueue_request(copy)

    assert leased(copy) is None
    assert "dont_redirect" not in copy.meta


def test_a_leased_request_that_a_middleware_hands_back_goes_out_again(scheduler: Opened) -> None:
    """It was not sent yet, so its lease still stands."""

    async def run() -> tuple[Request, Request | None]:
        services_of(scheduler.spider.crawler)[Intake].add_seeds([parse(f"{HOST}/")])
        sent = await scheduler.request()
        scheduler.enqueue_request(sent)
        return sent, scheduler.next_request()

    sent, again = asyncio.run(run())
    assert again is sent
    assert leased(sent) is not None


def test_when_a_crawl_is_over(scheduler: Opened) -> None:
    """With nothing queued, or only hosts that rest for very long; not while it is halted, or a request waits."""
    assert scheduler.idle()
    assert not scheduler.has_pending_requests()
    scheduler.crawl.run.pause("no room")
    assert scheduler.has_pending_requests()
    scheduler.crawl.run.go_on()
    scheduler.enqueue_request(Request(f"{HOST}/own"))
    assert scheduler.has_pending_requests()
    scheduler._others.clear()
    scheduler.websub.await_pushes()
    assert not scheduler.has_pending_requests()
    of_hubs: Any = SimpleNamespace()
    scheduler.websub._listening = of_hubs
    assert scheduler.has_pending_requests()


def test_a_pause_that_is_over_has_the_engine_ask(scheduler: Opened) -> None:
    """At once."""
    scheduler.resume()

    assert scheduler.asked == 1


def test_a_new_session_waits_for_the_last_lease(scheduler: Opened) -> None:
    """Then its parts are found instead of the old ones."""
    before = scheduler.crawl.session

    async def run() -> None:
        services = services_of(scheduler.spider.crawler)
        services[Intake].add_seeds([parse(f"{HOST}/")])
        lease = lease_in(await scheduler.request())
        assert lease is not None
        scheduler.crawl.run.lose("a partition was taken")
        assert not scheduler.rejoin()
        await scheduler.spider.complete(page_of(lease, scheduler.crawl.run.now()))
        assert scheduler.rejoin()
        assert services[Session] is scheduler.crawl.session is not before
        assert services[LongPages] is scheduler.long
        scheduler._engine.cancel()

    asyncio.run(run())
    assert scheduler.crawl.run.lost == ""


def test_a_request_that_a_middleware_replaced_ends_its_lease(scheduler: Opened) -> None:
    """One that the engine has, or that waits here, does not."""

    async def run() -> Any:
        services_of(scheduler.spider.crawler)[Intake].add_seeds([parse(f"{HOST}/")])
        sent = await scheduler.request()
        lease = lease_in(sent)
        scheduler._others.append(sent)
        await scheduler.complete_replaced()
        assert lease is not None
        assert not lease.ended
        scheduler._others.clear()
        await scheduler.complete_replaced()
        return lease

    assert asyncio.run(run()).ended
    assert scheduler.crawl.run.stats["pages/middleware"] == 1  # type: ignore[index]


def test_its_close_is_the_last_commit(scheduler: Opened, caplog: pytest.LogCaptureFixture) -> None:
    """What was queued is kept, and what is left is said; the folder is its own until Scrapy says that it has ended."""
    caplog.set_level(logging.INFO)

    async def run() -> None:
        services_of(scheduler.spider.crawler)[Intake].add_seeds([parse(f"{HOST}/")])
        closing: Any = scheduler.close("shutdown")
        await closing.asFuture(asyncio.get_running_loop())

    asyncio.run(run())
    assert scheduler.crawl.run.closed
    assert scheduler.crawl.folder.locked()
