"""The Scrapy request of each kind of lease, and what it carries."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crawlerproject.errors import FetchError
from crawlerproject.frontier.subrequests import Subrequest
from crawlerproject.guard.guard import guard_of
from crawlerproject.middlewares.leased import leased
from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import FLAG_HUB
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
    assert guard_of(bench.spider.crawler).leased(request)
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
    monkeypatch.setattr(bench.role, "ask_until", lambda host: 77.0)
    exchange = leased(requests_of(bench).request(bench.page_lease(), None))

    assert exchange is not None
    assert exchange.ask_until == 77.0


def test_a_sub_request_of_a_page_in_the_browser(bench: Bench) -> None:
    """With the browser's headers, the proxy and the time that the page has for it; it is told that it is sent."""
    granted: list[bool] = []
    lease: Any = bench.page_lease()
    lease.embed = Subrequest(
        parse(f"{HOST}/app.js"), lease.row, 2000.0, True, {"Accept": "*/*"}, "http://proxy.test:3128", 10.0,
        refused=lambda reason: None, granted=lambda: granted.append(True), answered=lambda outcome: None,
    )  # fmt: skip
    requests = requests_of(bench)
    request = requests.request(lease, None)

    assert granted == [True]
    assert request.headers["Accept"] == b"*/*"
    assert (request.meta["proxy"], request.meta["download_timeout"]) == ("http://proxy.test:3128", 10.0)
    assert request.callback == requests._embeds.answered


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
