"""What a sub-request comes to: for the page that waits for it, and for the archive."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from crawlerproject.crawl.subrequests import SubrequestAnswers
from crawlerproject.errors import FetchError, LeaseOver
from crawlerproject.fetch.exchange import META_KEY
from crawlerproject.guard.pace import Refused
from crawlerproject.items import FetchedPage, LeaseResult
from crawlerproject.middlewares.leased import LeasedExchange
from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import FLAG_SUBREQUEST, ROW_KINDS
from crawlerproject.wire import Wire

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
        embed = SimpleNamespace(answered=self.told.append)
        lease: Any = SimpleNamespace(row=row, embed=embed)
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


def fetched(result: LeaseResult) -> FetchedPage:
    """A response, whatever its status."""
    assert isinstance(result.outcome, FetchedPage)
    return result.outcome


@pytest.fixture
def asked() -> Asked:
    """One that is under way."""
    return Asked()


def test_the_answer_goes_to_the_page_and_to_the_archive(asked: Asked) -> None:
    """The same bytes."""
    asked.exchange.wire = Wire(status=200, body=b"alert(1)")
    response = asked.answer(200)

    assert asked.told == [response]
    assert [fetched(result).body for result in asked.pipeline.completed] == [b"alert(1)"]


def test_a_redirect_names_its_target(asked: Asked) -> None:
    """Absolute, as the log has it."""
    asked.exchange.wire = Wire(status=302)
    asked.answer(302, {"Location": "/other.js"})

    assert fetched(asked.pipeline.completed[0]).location == "http://a.test/other.js"


def test_an_answer_that_a_middleware_made(asked: Asked) -> None:
    """Nothing was fetched: the page gets an error, and nothing is archived as the server's."""
    asked.answer(200)

    assert asked.pipeline.completed[0].outcome.reason is Reason.MIDDLEWARE
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
    assert [result.outcome.reason for result in asked.pipeline.completed] == [reason]
    assert asked.pipeline.errors == (reason is Reason.INTERNAL_ERROR)


def test_a_lease_that_ran_out_goes_back(asked: Asked) -> None:
    """Nothing was sent: another worker may ask now."""
    asked.fail(LeaseOver("over"))

    assert asked.pipeline.completed == []
    assert asked.pipeline.back == [asked.exchange.lease]
