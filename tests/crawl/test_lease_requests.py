"""The Scrapy request of each kind of lease, and what it carries."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from crawlerproject.crawl.lease_requests import SubrequestAnswers
from crawlerproject.errors import FetchError, LeaseOver
from crawlerproject.frontier.subrequests import Subrequest
from crawlerproject.guard.guard import Refused, guard_of
from crawlerproject.items import LeaseResult
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import META_KEY, LeasedExchange, leased
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.row_kinds import FLAG_HUB, FLAG_SUBREQUEST, ROW_KINDS
from crawlerproject.rules.url.urls import parse
from tests.crawl.sessions import HOST, Bench, requests_of


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session with a page queued."""
    bench = Bench(tmp_path)
    bench.add(f"{HOST}/one")
    return bench


def test_a_page(bench: Bench) -> None:
    """Known to the guard as the frontier's, with its promised pause and its address; Scrapy leaves it alone."""
    lease = bench.page_lease()
    requests = requests_of(bench)
    request = requests.request(lease, None)
    exchange = leased(request)

    assert exchange is not None
    assert exchange.lease is lease
    assert exchange.address == lease.address
    assert (exchange.error, exchange.ask_until) == (None, None)
    assert request in guard_of(bench.spider.crawler).leases
    assert request.dont_filter
    assert request.meta["dont_redirect"]
    assert request.meta["download_slot"] == "all"
    assert request.method == "GET"


def test_a_copy_of_its_meta_is_no_lease(bench: Bench) -> None:
    """``meta=response.meta`` inherits nothing."""
    request = requests_of(bench).request(bench.page_lease(), None)

    assert leased(request.replace(url=f"{HOST}/two")) is None


def test_a_failure_that_is_known_goes_with_it(bench: Bench) -> None:
    """Raised by the download handler: nothing is sent."""
    error = FetchError(Reason.DNS_NOT_FOUND, "no such name")
    exchange = leased(requests_of(bench).request(bench.page_lease(), error))

    assert exchange is not None
    assert exchange.error is error


def test_poison_is_not_asked_for_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page over which processes died."""
    requests, lease = requests_of(bench), bench.page_lease()
    requests._poison.suspects[lease.row.key] = SimpleNamespace(poison=True)  # type: ignore[assignment]
    exchange = leased(requests.request(lease, None))

    assert exchange is not None
    assert exchange.error is not None
    assert exchange.error.reason is Reason.POISON


def test_a_worker_has_its_answers_before_its_lease_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a fleet another may ask the host then."""
    monkeypatch.setattr(bench.frontier.state.ownership, "sole", False)
    monkeypatch.setattr(bench.frontier.state.ownership, "ask_until", lambda host: 77.0)
    exchange = leased(requests_of(bench).request(bench.page_lease(), None))

    assert exchange is not None
    assert exchange.ask_until == 77.0


def test_a_sub_request_of_a_page_in_the_browser(bench: Bench) -> None:
    """With the browser's headers, the proxy and the time that the page has for it; it is told that it is sent."""
    granted: list[bool] = []
    lease: Any = bench.page_lease()
    lease.subrequest = Subrequest(
        parse(f"{HOST}/app.js"), lease.row, 2000.0, True, {"Accept": "*/*"}, "http://proxy.test:3128", 10.0,
        refused=lambda reason: None, granted=lambda: granted.append(True), answered=lambda outcome: None,
    )  # fmt: skip
    requests = requests_of(bench)
    request = requests.request(lease, None)

    assert granted == [True]
    assert request.headers["Accept"] == b"*/*"
    assert (request.meta["proxy"], request.meta["download_timeout"]) == ("http://proxy.test:3128", 10.0)
    assert request.callback == requests._subrequests.answered


def test_a_hub_is_asked_by_a_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """WebSub 5.1."""
    bench = Bench(tmp_path, WEBSUB_PORT=8000)
    bench.add("http://hub.test/", flags=FLAG_HUB)
    lease = bench.page_lease()
    assert bench.session.subscriptions is not None
    monkeypatch.setattr(bench.session.subscriptions, "form", lambda row: b"hub.mode=subscribe")
    request = requests_of(bench).request(lease, None)

    assert (request.method, request.body) == ("POST", b"hub.mode=subscribe")
    assert request.headers["Content-Type"] == b"application/x-www-form-urlencoded"


URL = "http://a.test/app.js"


class Pipeline:
    """Notes what comes of pages."""

    def __init__(self) -> None:
        self.completed: list[LeaseResult] = []
        self.back: list[Any] = []
        self.errors = 0

    async def complete(self, result: LeaseResult) -> None:
        """To the archive."""
        self.completed.append(result)

    def requeue(self, lease: Any) -> None:
        """To the queue."""
        self.back.append(lease)

    def count_error(self) -> None:
        """A fault of ours."""
        self.errors += 1


class Asked:
    """A sub-request under a lease, and what the page in the browser was told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.pipeline = Pipeline()
        self.request = Request(URL)
        row = SimpleNamespace(url=URL, kind=ROW_KINDS[FLAG_SUBREQUEST])
        subrequest = SimpleNamespace(answered=self.told.append)
        lease: Any = SimpleNamespace(row=row, kind=row.kind, subrequest=subrequest)
        self.exchange = self.request.meta[META_KEY] = LeasedExchange(ref(self.request), lease=lease)
        self.answers = SubrequestAnswers(self.pipeline, self.pipeline)  # type: ignore[arg-type]

    def answer(self, status: int, headers: dict[str, str] | None = None) -> Response:
        """An answer came."""
        response = Response(URL, status=status, headers=headers, body=b"alert(1)", request=self.request)
        asyncio.run(self.answers.answered(response))
        return response

    def fail(self, error: Exception) -> None:
        """None came."""
        failure: Any = SimpleNamespace(value=error, request=self.request)
        asyncio.run(self.answers.on_error(failure))


@pytest.fixture
def asked() -> Asked:
    """One that is under way."""
    return Asked()


def test_the_answer_goes_to_the_page_and_to_the_archive(asked: Asked) -> None:
    """The same bytes."""
    asked.exchange.wire = Wire(status=200, body=b"alert(1)")
    response = asked.answer(200)

    assert asked.told == [response]
    assert [result.body for result in asked.pipeline.completed] == [b"alert(1)"]


def test_a_redirect_names_its_target(asked: Asked) -> None:
    """Absolute, as the log has it."""
    asked.exchange.wire = Wire(status=302)
    asked.answer(302, {"Location": "/other.js"})

    assert asked.pipeline.completed[0].location == "http://a.test/other.js"


def test_an_answer_that_a_middleware_made(asked: Asked) -> None:
    """Nothing was fetched: the page gets an error, and nothing is archived as the server's."""
    asked.answer(200)

    assert asked.pipeline.completed[0].reason is Reason.MIDDLEWARE
    assert isinstance(asked.told[0], RuntimeError)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FetchError(Reason.CONNECT_TIMEOUT, "too slow"), Reason.CONNECT_TIMEOUT),
        (Refused(Reason.ROBOTS, "forbidden"), Reason.ROBOTS),
        (IgnoreRequest("dropped"), Reason.MIDDLEWARE),
        (ValueError("a fault"), Reason.INTERNAL_ERROR),
    ],
)
def test_why_there_is_none(asked: Asked, error: Exception, reason: Reason) -> None:
    """The page is told, the log has the reason; only a fault of ours counts as one."""
    asked.fail(error)

    assert asked.told == [error]
    assert [result.reason for result in asked.pipeline.completed] == [reason]
    assert asked.pipeline.errors == (reason is Reason.INTERNAL_ERROR)


def test_a_lease_that_ran_out_goes_back(asked: Asked) -> None:
    """Nothing was sent: another worker may ask now."""
    asked.fail(LeaseOver("over"))

    assert asked.pipeline.completed == []
    assert asked.pipeline.back == [asked.exchange.lease]
