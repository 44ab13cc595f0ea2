"""When Scrapy's engine asks, and a page's way in one task: the engine sees what Scrapy's own way would show it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from scrapy import Request, Spider, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scraper import Slot
from scrapy.crawler import Crawler
from scrapy.extensions.corestats import CoreStats
from scrapy.http import HtmlResponse, Response
from scrapy.logformatter import LogFormatter
from scrapy.settings import Settings
from scrapy.utils.request import RequestFingerprinter
from twisted.internet.defer import Deferred, succeed

from crawlerproject.crawl.engine import Engine, FastPath
from crawlerproject.errors import FrontierDamaged
from crawlerproject.request_meta import lease_in
from crawlerproject.rules.row_kinds import FLAG_HUB, FLAG_RENDER
from crawlerproject.spiders.web import WebSpider
from tests.crawl.sessions import Bench, Stats, requests_of, run_of, settings_of
from tests.hostile.arena import Arena, Asked, answer, arena, page

_THEIRS = "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware"  # does nothing to what asks for no login


class OldSpider(WebSpider):
    """Overrides what it should not."""

    def answered(self, response: Response, **kwargs: Any) -> Any:
        """No coroutine."""
        return super().answered(response, **kwargs)


class Derived(ExecutionEngine):
    """An engine of a project that does something at each request."""

    def _start_scheduled_request(self) -> bool:
        return super()._start_scheduled_request()


def crawler_of(settings: Settings, spider: type[Spider] = WebSpider) -> Crawler:
    """A crawler whose engine is made and has not begun."""
    crawler: Any = Crawler(spider, settings)
    crawler.spider = spider.from_crawler(crawler)
    crawler.addons.load_settings(settings)
    crawler.settings = settings
    crawler.stats, crawler.request_fingerprinter = Stats(), RequestFingerprinter(crawler)
    crawler.logformatter = LogFormatter()
    crawler.engine = ExecutionEngine(crawler, lambda _: None)
    crawler.engine._slot = SimpleNamespace()
    made: Crawler = crawler
    return made


def test_an_ordinary_crawl_takes_it() -> None:
    """Our chain, Scrapy's engine, no delay."""
    assert FastPath.of(crawler_of(settings_of())) is not None


@pytest.mark.parametrize(
    "given",
    [
        {"DOWNLOADER_MIDDLEWARES": {_THEIRS: 300}},
        {"SPIDER_MIDDLEWARES": {"scrapy.spidermiddlewares.depth.DepthMiddleware": 900}},
        {"DOWNLOAD_DELAY": 1},
        {"DOWNLOAD_SLOTS": {"all": {"concurrency": 1}}},
        {"CONCURRENT_REQUESTS_PER_DOMAIN": 8},
    ],
)
def test_what_a_project_puts_on_the_way_is_not_passed_by(given: dict[str, Any]) -> None:
    """Middlewares, delays, slots: requests go Scrapy's way."""
    assert FastPath.of(crawler_of(settings_of(**given))) is None


def test_neither_are_other_engines_and_callbacks() -> None:
    """A project's engine; a spider whose callback is no coroutine."""
    crawler: Any = crawler_of(settings_of())
    crawler.engine.__class__ = Derived
    assert FastPath.of(crawler) is None
    assert FastPath.of(crawler_of(settings_of(), OldSpider)) is None


def test_only_leased_pages_that_nobody_listens_to(tmp_path: Path) -> None:
    """Hubs, renders and requests of a spider's own go Scrapy's way; so does every request while somebody listens."""
    crawler = crawler_of(settings_of())
    path, bench = FastPath.of(crawler), Bench(tmp_path / "crawl")
    bench.add("http://a.test/page")
    request = requests_of(bench).request(bench.page_lease(), None)
    lease = lease_in(request)
    assert path is not None
    assert lease is not None

    def heard(**_: Any) -> None:
        """Whatever it is."""

    assert path.takes(request)
    assert not path.takes(Request("http://a.test/own"))
    assert not path.takes(request.copy())
    for signal in (signals.request_reached_downloader, signals.response_downloaded, signals.request_left_downloader):
        crawler.signals.connect(heard, signal)
        assert not path.takes(request)
        crawler.signals.disconnect(heard, signal)
        assert path.takes(request)
    row = lease.row
    for flag in (FLAG_HUB, FLAG_RENDER):
        lease.row = row._replace(flags=flag)
        assert not path.takes(request)
    bench.close()


class Parts:
    """An engine's parts, which note what is done with them, and a handler that answers or raises."""

    def __init__(self, answer: Response | Exception) -> None:
        self.answer = answer
        self.met: list[str] = []
        self.given: list[Any] | Exception = []
        slot = SimpleNamespace(nextcall=SimpleNamespace(schedule=lambda: self.met.append("asks"), _call=None))
        slot.add_request, slot.remove_request = self._noted("begins"), self._noted("ends")
        self.downloader = SimpleNamespace(active=set(), handlers=SimpleNamespace(_get_handler=lambda _: self))
        self.scraper = SimpleNamespace(
            slot=Slot(), logformatter=LogFormatter(), enqueue_scrape=self._enqueue,
            handle_spider_error=self._spider_error, handle_spider_output_async=self._output,
            spidermw=SimpleNamespace(scrape_response_async=self._scraped),
        )  # fmt: skip
        engine = SimpleNamespace(
            _slot=slot, downloader=self.downloader, scraper=self.scraper, needs_backout=lambda: True
        )
        crawler: Any = Crawler(WebSpider, settings_of())
        crawler.spider = WebSpider.from_crawler(crawler)
        crawler.signals.connect(self._received, signals.response_received)
        self.crawler = crawler
        self.path = FastPath(crawler, engine)

    def _noted(self, what: str) -> Any:
        return lambda request: self.met.append(what)

    def _received(self, response: Response, request: Request) -> None:
        assert response.request is request
        self.met.append(f"received, {len(self.downloader.active)} in the downloader")

    async def download_request(self, request: Request) -> Response:
        """The answer, later."""
        self.met.append(f"sent, {len(self.downloader.active)} in the downloader")
        await asyncio.sleep(0)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def answered(self, response: Response) -> list[Any]:
        """The spider's callback."""
        slot = self.scraper.slot
        self.met.append(f"answered, {len(slot.active)} of {slot.active_size} bytes in the scraper")
        if isinstance(self.given, Exception):
            raise self.given
        return self.given

    def _enqueue(self, failure: Any, request: Request) -> Deferred[None]:
        self.met.append(f"failed: {failure.value!r}")
        return succeed(None)

    def _spider_error(self, failure: Any, request: Request, response: Response) -> None:
        self.met.append(f"spider failed: {failure.value!r}")

    async def _scraped(self, call: Any, response: Response, request: Request) -> Any:
        return await call(response, request)

    async def _output(self, output: Any, request: Request, response: Response) -> None:
        self.met.append(f"extracted {list(output)}")

    def run(self) -> list[str]:
        """What one request meets on its way, to its end."""

        async def run() -> None:
            request = Request("http://a.test/", callback=self.answered)
            assert not self.path.begin(request)  # the engine says that it is full
            while "ends" not in self.met:
                await asyncio.sleep(0)

        asyncio.run(run())
        assert not self.downloader.active
        assert self.scraper.slot.is_idle()
        assert self.scraper.slot.active_size == 0
        assert self.met[0] == "begins"
        assert self.met[-2:] == ["ends", "asks"]
        return self.met[1:-2]


BODY = b"<p>text</p>" * 1000
SENT = "sent, 1 in the downloader"
READ = ["asks", "received, 0 in the downloader", f"answered, 1 of {len(BODY)} bytes in the scraper"]


def test_the_engine_sees_each_step() -> None:
    """In the downloader until it is read, in the scraper until the spider is done, in progress to the end."""
    parts = Parts(HtmlResponse("http://a.test/", body=BODY))

    assert parts.run() == [SENT, *READ]


def test_scrapys_own_count_needs_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever else listens gets the signal, and Scrapy counts either way."""
    parts = Parts(HtmlResponse("http://a.test/", body=BODY))
    crawler = parts.crawler
    crawler.stats = stats = Stats()
    heard: list[Any] = []
    counter = CoreStats.from_crawler(crawler)
    signal, send = signals.response_received, crawler.signals.send_catch_log

    def noted(**given: Any) -> Any:
        heard.append(given["signal"])
        return send(**given)

    monkeypatch.setattr(crawler.signals, "send_catch_log", noted)

    both = parts.run()
    parts.met.clear()
    crawler.signals.disconnect(parts._received, signal)
    alone = parts.run()
    parts.met.clear()
    crawler.signals.disconnect(counter.response_received, signal)
    nobody = parts.run()

    assert both == [SENT, *READ]
    assert alone == nobody == [step for step in both if not step.startswith("received")]
    assert heard == [signal]
    assert stats["response_received_count"] == 2


def test_what_is_extracted_goes_scrapys_way() -> None:
    """Items and requests, in their order."""
    parts = Parts(HtmlResponse("http://a.test/", body=BODY))
    parts.given = [{"n": 1}, {"n": 2}]

    assert parts.run() == [SENT, *READ, "extracted [{'n': 1}, {'n': 2}]"]


def test_errors_go_scrapys_way() -> None:
    """Those of a download to the request's errback, those of a callback where Scrapy counts them."""
    failed = Parts(OSError("gone"))
    assert failed.run() == [SENT, "asks", "failed: OSError('gone')"]

    wrong = Parts(HtmlResponse("http://a.test/", body=BODY))
    wrong.given = ValueError("no")
    assert wrong.run() == [SENT, *READ, "spider failed: ValueError('no')"]


def _odd(asked: Asked) -> bytes | None:
    """Redirects, errors and what is no HTML."""
    answers = {
        "/": page("/moved", "/gone", "/data.json", "/bad", "/same", text="the front of it all"),
        "/moved": answer(status="301 Moved Permanently", Location="/target"),
        "/target": page("/", text="where it has moved to"),
        "/data.json": answer('{"a": 1}', mime="application/json"),
        "/bad": b"no HTTP\r\n\r\n",
        "/same": page("/moved", "/gone", "/data.json", "/bad", "/same", text="the front of it all"),
    }
    return answers.get(asked.path)


def _lines(web: Arena, name: str, settings: dict[str, str]) -> list[tuple[Any, ...]]:
    """What the request log of a crawl says of each address, times left out."""
    crawled = web.crawl(web.url("odd.test"), web.url("innocent.test"), settings=settings, name=name)
    log = [orjson.loads(line) for path in crawled.folder.glob("log/requests-*.jsonl") for line in path.open("rb")]
    fields = ("url", "reason", "status", "digest", "bytes", "via", "depth", "hop", "error", "tries", "duplicate")
    return sorted(tuple(str(line.get(name)) for name in fields) for line in log)


def test_both_ways_lead_to_the_same_crawl(tmp_path: Path) -> None:
    """A middleware that does nothing sends the second crawl Scrapy's way."""
    with arena(tmp_path) as web:
        web.innocent(pages=8)
        web.site("odd.test", _odd)
        fast = _lines(web, "fast", {})
        slow = _lines(web, "slow", {"DOWNLOADER_MIDDLEWARES": orjson.dumps({_THEIRS: 300}).decode()})

    assert len(fast) >= 15
    assert fast == slow


class Scrapys:
    """As far as Scrapy's engine is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.full = False
        self.ended = ""
        self.spider: Any = object()
        self._slot = SimpleNamespace(
            nextcall=SimpleNamespace(schedule=self._schedule, _call=None), inprogress={"a request"}
        )

    def _schedule(self) -> None:
        self.asked += 1

    def needs_backout(self) -> bool:
        """Whether it has all that it may have."""
        return self.full

    async def close_spider_async(self, *, reason: str) -> None:
        """The end."""
        self.ended = reason


@pytest.fixture
def scrapys() -> Scrapys:
    """A running engine."""
    return Scrapys()


def engine_of(scrapys: Scrapys | None) -> Engine:
    """Ours, before that one."""
    return Engine(SimpleNamespace(engine=scrapys), run_of())  # type: ignore[arg-type]


def test_it_is_asked_to_ask(scrapys: Scrapys) -> None:
    """One question of the engine's takes all that is ready."""
    engine_of(scrapys).ask()

    assert scrapys.asked == 1


@pytest.mark.parametrize("why", ["full", "no spider", "closed", "not there"])
def test_it_is_left_alone(scrapys: Scrapys, why: str) -> None:
    """A request that ends has a full one ask; one that ends takes nothing more."""
    engine = engine_of(None if why == "not there" else scrapys)
    scrapys.full = why == "full"
    engine._run.closed = why == "closed"
    if why == "no spider":
        scrapys.spider = None
    engine.ask()

    assert scrapys.asked == 0


def test_the_earliest_moment_counts(scrapys: Scrapys) -> None:
    """A later one does not put it off, an earlier one takes its place, none changes nothing."""
    engine = engine_of(scrapys)

    async def run() -> None:
        engine.ask_at(1000.01, 1000.0)
        engine.ask_at(2000.0, 1000.0)
        engine.ask_at(None, 1000.0)
        engine.ask_at(999.0, 1000.0)
        while not scrapys.asked:
            await asyncio.sleep(0)
        await asyncio.sleep(0.03)

    asyncio.run(run())
    assert scrapys.asked == 1


def test_a_moment_that_is_forgotten(scrapys: Scrapys) -> None:
    """At the end of a crawl nothing wakes the engine."""
    engine = engine_of(scrapys)

    async def run() -> None:
        engine.ask_at(1000.0, 1000.0)
        engine.cancel()
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert scrapys.asked == 0


def test_what_it_has_begun(scrapys: Scrapys) -> None:
    """Before it runs there is nothing."""
    assert cast("set[object]", engine_of(scrapys).requests()) == {"a request"}
    assert engine_of(None).requests() == set()


def test_damage_ends_the_crawl(scrapys: Scrapys, caplog: pytest.LogCaptureFixture) -> None:
    """With its sentence, and a reason that a watcher sees."""
    engine = engine_of(scrapys)

    async def run() -> None:
        engine.stop_for_damage(FrontierDamaged("a block is broken."))
        await asyncio.sleep(0)

    asyncio.run(run())
    assert scrapys.ended == "frontier_damaged"
    assert caplog.messages == ["a block is broken. The crawl stops."]
