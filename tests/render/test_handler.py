"""The guarded download handler: what it lets through, and what it adds to an answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from crawlerproject.errors import FetchError
from crawlerproject.fetch.download_handler import CrawlerDownloadHandler
from crawlerproject.guard.guard import Refused, guard_of
from crawlerproject.reasons import Reason
from crawlerproject.render import handler as handlers
from crawlerproject.render.handler import RenderingDownloadHandler, ScrapyDownloadHandler
from crawlerproject.request_meta import META_KEY, exchange_of
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.robots import policy
from crawlerproject.rules.row_kinds import FLAG_ROBOTS, ROW_KINDS
from crawlerproject.settings import OURS
from tests.exchanges import under_lease

RULES = b"User-agent: *\nDisallow: /no\n"


class Below:
    """The network: every site has RULES."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def download(self, handler: CrawlerDownloadHandler, request: Request) -> Response:
        """In the place of our HTTP client."""
        self.asked.append(request)
        exchange_of(request).wire = Wire(ip="192.0.2.1")
        return Response(request.url, body=RULES if request.url.endswith("/robots.txt") else b"page")

    @property
    def urls(self) -> list[str]:
        """What was asked for."""
        return [request.url for request in self.asked]


@pytest.fixture
def below(monkeypatch: pytest.MonkeyPatch) -> Below:
    """What the handler meets instead of the network."""
    made = Below()

    async def download(handler: CrawlerDownloadHandler, request: Request) -> Response:
        return await made.download(handler, request)

    monkeypatch.setattr(CrawlerDownloadHandler, "download_request", download)
    return made


@pytest.fixture
def handler(tmp_path: Path, below: Below) -> RenderingDownloadHandler:
    """One that has no pause between requests, and a list of one domain."""
    (tmp_path / "never.txt").write_text("never.test\n")
    given: dict[str, Any] = {
        "NEVERCRAWL_FILE": str(tmp_path / "never.txt"), "NEVERCRAWL_USER_FILE": "", "PACE_PRESET": "mirror",
        "PACE_MIN_SECONDS": 0, "PACE_START_SECONDS": 0, "PACE_PER_IP": False,
    }  # fmt: skip
    crawler = get_crawler(settings_dict=OURS | given)
    crawler._apply_settings()
    return RenderingDownloadHandler.from_crawler(crawler)


def leased(handler: RenderingDownloadHandler, url: str, host: str, *, robots: bool = False) -> Request:
    """A request as the scheduler hands it out."""
    lease: Any = SimpleNamespace(
        row=SimpleNamespace(host=host),
        kind=ROW_KINDS[FLAG_ROBOTS if robots else 0],
        address="192.0.2.1",
        delay_seconds=5.0,
    )
    request = under_lease(Request(url), lease)
    guard_of(handler.crawler).leases[request] = lease
    return request


def download(handler: RenderingDownloadHandler, *requests: Request) -> list[Reason | None]:
    """Why each is refused, one after the other; None: it was answered."""

    async def one(request: Request) -> Reason | None:
        try:
            await handler.download_request(request)
        except Refused as refusal:
            return refusal.reason
        return None

    async def all_of_them() -> list[Reason | None]:
        return [await one(request) for request in requests]

    return asyncio.run(all_of_them())


def test_a_lease_is_sent_as_it_is(handler: RenderingDownloadHandler, below: Below) -> None:
    """The frontier has judged it: no robots.txt is asked for. A second at once is the pace guard's."""
    first = leased(handler, "http://a.test/no", "a.test")
    again = leased(handler, "http://a.test/again", "a.test")
    assert download(handler, first, again) == [None, Reason.PACE_GUARD]
    assert below.asked == [first]


def test_a_lease_to_a_host_that_was_excluded_since_is_refused(handler: RenderingDownloadHandler, below: Below) -> None:
    """NeverCrawl is asked below every middleware, at the last moment."""
    assert download(handler, leased(handler, "http://www.never.test/", "www.never.test")) == [Reason.NEVERCRAWL]
    assert below.asked == []


def test_another_request_is_judged_first(handler: RenderingDownloadHandler, below: Below) -> None:
    """A copy of a leased one included: robots.txt once, then the page; and its exchange tells what crossed the wire."""
    request = leased(handler, "http://a.test/no", "a.test").replace(url="http://a.test/yes")
    forbidden, never = Request("http://a.test/no/x"), Request("http://never.test/")
    assert download(handler, request, forbidden, never) == [None, Reason.ROBOTS, Reason.NEVERCRAWL]
    assert below.urls == ["http://a.test/robots.txt", "http://a.test/yes"]
    wire = exchange_of(request).wire
    assert wire is not None
    assert wire.ip == "192.0.2.1"


def test_a_large_robots_txt_of_a_crawl_is_read_at_once(
    handler: RenderingDownloadHandler, below: Below, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a thread: the frontier then finds it parsed."""
    body = RULES + b"".join(b"Disallow: /x%d\n" % number for number in range(5_000))
    monkeypatch.setitem(globals(), "RULES", body)
    policy._parsed.cache_clear()
    assert download(handler, leased(handler, "http://a.test/robots.txt", "a.test", robots=True)) == [None]
    assert policy._parsed.cache_info().misses == 1
    policy.parse_robots(body, guard_of(handler.crawler).robots.token)
    assert policy._parsed.cache_info().hits == 1


URL = "http://a.test/"


class Bench:
    """The handler over a web of one answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: Response | Exception, **settings: Any) -> None:
        async def fetched(self: Any, request: Request) -> Response:
            exchange_of(request).wire = Wire(body=b"x" * 1000)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(handlers.RenderingDownloadHandler, "download_request", fetched)
        crawler = get_crawler(settings_dict={"CRAWLER_NAME": "TestBot"} | settings)
        self.handler = ScrapyDownloadHandler.from_crawler(crawler)
        self.request = Request(URL)

    def fetch(self, **meta: Any) -> Response:
        """The answer."""
        self.request.meta.update(meta)
        return asyncio.run(self._fetch())

    async def _fetch(self) -> Response:
        return await self.handler.download_request(self.request)


def test_an_answer_comes_through_without_its_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``meta=response.meta`` the bytes would go to the next page, and on disk."""
    bench = Bench(monkeypatch, Response(URL, body=b"all"))

    assert bench.fetch().body == b"all"
    assert META_KEY not in bench.request.meta


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (Reason.DNS_NOT_FOUND, CannotResolveHostError),
        (Reason.CONNECT_REFUSED, DownloadConnectionRefusedError),
        (Reason.FIRST_BYTE_TIMEOUT, DownloadTimeoutError),
    ],
)
def test_failures_are_scrapys_classes(monkeypatch: pytest.MonkeyPatch, reason: Reason, kind: type[Exception]) -> None:
    """And ours at once, so that RETRY_EXCEPTIONS and our own errbacks both know them."""
    wire = Wire()
    bench = Bench(monkeypatch, FetchError(reason, "why", wire))

    with pytest.raises(kind) as failed:
        bench.fetch()
    error: Any = failed.value
    assert (error.reason, error.detail, error.wire) == (reason, "why", wire)
    assert type(error).__name__ == kind.__name__
    assert META_KEY not in bench.request.meta


def test_a_failure_that_trying_again_would_not_mend_stays_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrapy has no class for it."""
    bench = Bench(monkeypatch, FetchError(Reason.PRIVATE_ADDRESS, "10.0.0.1"))

    with pytest.raises(FetchError) as failed:
        bench.fetch()
    assert type(failed.value) is FetchError


def test_a_refusal_for_a_robots_txt_that_failed_is_that_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page would have failed in the same way."""
    refusal = Refused(Reason.ROBOTS_UNREACHABLE)
    refusal.__cause__ = FetchError(Reason.CONNECT_REFUSED)
    with pytest.raises(DownloadConnectionRefusedError):
        Bench(monkeypatch, refusal).fetch()

    for cause in (None, FetchError(Reason.PRIVATE_ADDRESS), ValueError()):
        refusal = Refused(Reason.ROBOTS)
        refusal.__cause__ = cause
        with pytest.raises(Refused):
            Bench(monkeypatch, refusal).fetch()


@pytest.mark.parametrize(
    ("flag", "kind"),
    [
        ("truncated-length", DownloadCancelledError),
        ("truncated-time", DownloadTimeoutError),
        ("truncated-disconnect", ResponseDataLossError),
    ],
)
def test_a_part_of_an_answer_is_a_failure(monkeypatch: pytest.MonkeyPatch, flag: str, kind: type[Exception]) -> None:
    """A spider takes every answer for a whole one."""
    with pytest.raises(kind):
        Bench(monkeypatch, Response(URL, flags=[flag])).fetch()


def test_a_part_is_wanted_where_scrapys_switch_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a setting or by the request; what broke off is marked as Scrapy marks it."""
    lost = Response(URL, flags=["truncated-disconnect"])

    assert Bench(monkeypatch, lost).fetch(download_fail_on_dataloss=False).flags[-1] == "dataloss"
    lost = Response(URL, flags=["truncated-disconnect"])
    assert Bench(monkeypatch, lost, DOWNLOAD_FAIL_ON_DATALOSS=False).fetch().flags[-1] == "dataloss"
    with pytest.raises(DownloadTimeoutError):
        Bench(monkeypatch, Response(URL, flags=["truncated-time"])).fetch(download_fail_on_dataloss=False)
