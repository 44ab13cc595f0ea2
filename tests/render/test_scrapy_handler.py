"""Failures and cut answers as Scrapy documents them, for spiders that are not ours."""

from __future__ import annotations

import asyncio
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
from crawlerproject.fetch.exchange import META_KEY, exchange_of
from crawlerproject.guard.refusal import Refused
from crawlerproject.reasons import Reason
from crawlerproject.render import handler as handlers
from crawlerproject.render.scrapy_handler import ScrapyDownloadHandler
from crawlerproject.wire import Wire

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
