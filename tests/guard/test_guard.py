"""The guard that the download handler asks: what it takes for the frontier's, and what it judges."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from crawlerproject.config.promised_settings import keep_guard, keep_whole
from crawlerproject.guard.guard import Guard, Refused, guard_of
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import META_KEY
from crawlerproject.settings import OURS
from tests.exchanges import under_lease

LEASE: Any = SimpleNamespace(row=SimpleNamespace(host="a.test"))


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    """One that excludes never.test."""
    (tmp_path / "never.txt").write_text("# why\nnever.test\n")
    given = {"NEVERCRAWL_FILE": str(tmp_path / "never.txt"), "NEVERCRAWL_USER_FILE": "", "CRAWLER_NAME": "foobot"}
    crawler = get_crawler(settings_dict=OURS | given)
    crawler._apply_settings()
    return guard_of(crawler)


def judged(guard: Guard, url: str, **meta: Any) -> Reason | None:
    """Why a request is refused; every site forbids /no."""

    async def download(request: Request) -> Response:
        assert request.url.endswith("/robots.txt")
        return Response(request.url, body=b"User-agent: *\nDisallow: /no")

    try:
        request = Request(url, meta=meta)
        guard.check(request)
        asyncio.run(guard.robots.judge(request, download))
    except Refused as refused:
        return refused.reason
    return None


def test_a_lease_is_the_object_that_was_handed_out() -> None:
    """Once; no copy of it, as a redirect or a retry makes them."""
    guard, request = Guard(get_crawler()), under_lease(Request("http://a.test/"), LEASE)
    guard.leases[request] = LEASE
    assert guard.leases.pop(request.replace(url="http://b.test/"), None) is None
    assert guard.leases.pop(request.copy(), None) is None
    assert guard.leases.pop(Request("http://a.test/", meta=request.meta), None) is None
    assert guard.leases.pop(request, None) is LEASE
    assert guard.leases.pop(request, None) is None


def test_a_request_that_is_never_sent_is_not_kept() -> None:
    """One that a middleware refused holds no memory."""
    guard = Guard(get_crawler())
    for number in range(100):
        guard.leases[Request(f"http://a.test/{number}")] = LEASE
    assert len(guard.leases) <= 1


LEASED = under_lease(Request("http://b.test/"), LEASE, address="x").meta


@pytest.mark.parametrize("meta", [{}, {"robots_checked": True}, {META_KEY: LEASE}, LEASED])
def test_no_word_in_meta_is_believed(guard: Guard, meta: dict[str, Any]) -> None:
    """robots.txt and NeverCrawl hold whatever a request says of itself."""
    assert judged(guard, "http://b.test/no", **meta) is Reason.ROBOTS
    assert judged(guard, "http://www.never.test/", **meta) is Reason.NEVERCRAWL
    assert judged(guard, "http://b.test/yes", **meta) is None


def refused(guard: Guard, url: str, lease: Any = None) -> Refused | None:
    """The refusal of a request by what needs no robots.txt; None: it passes."""
    try:
        guard.check(Request(url), lease)
    except Refused as refusal:
        return refusal
    return None


def test_an_excluded_host_is_refused_and_counted(guard: Guard) -> None:
    """From whatever source, subdomains and ports included, a lease as well: the list may be newer than it."""
    excluded: Any = SimpleNamespace(row=SimpleNamespace(host="never.test:81"))
    for url, lease in (("http://never.test/", None), ("https://www.never.test:8443/x", None), ("http://x/", excluded)):
        refusal = refused(guard, url, lease)
        assert refusal is not None
        assert refusal.reason is Reason.NEVERCRAWL
        assert "line 2" in refusal.detail
    stats = guard._crawler.stats
    assert stats is not None
    assert stats.get_value("refused/nevercrawl") == 3
    assert refused(guard, "http://b.test/never.test") is None
    assert refused(guard, "http://a.test/", LEASE) is None


def test_a_bad_port_is_refused_before_anything_is_asked(guard: Guard) -> None:
    """With a reason of its own, over http and https, root dots and user info included."""
    for url in ("http://a.test:25/", "https://a.test.:6667/x", "http://u:p@[::1]:10080/"):
        assert judged(guard, url) is Reason.BAD_PORT
    assert judged(guard, "http://a.test:8080/") is None


def test_a_crawler_has_one_guard() -> None:
    """The same clocks, rules and lists, whichever handler asks."""
    crawler = get_crawler()
    assert guard_of(crawler) is guard_of(crawler)
    assert guard_of(crawler) is not guard_of(get_crawler())


def test_settings_that_take_a_promise_away_are_mended() -> None:
    """At the spider's own priority; what else stood there stays."""
    ours = "crawlerproject.render.handler.RenderingDownloadHandler"
    settings = Settings()
    settings.set("DOWNLOAD_HANDLERS", {"https": "theirs.Handler", "ftp": "theirs.Ftp"}, "spider")
    commits = "crawlerproject.extensions.commit_loop.CommitLoop"
    settings.set("EXTENSIONS", {"theirs.Extension": 1, commits: None}, "cmdline")
    settings.set("DOWNLOADER", "theirs.Downloader", "spider")

    keep_guard(settings)
    assert dict(settings.getdict("DOWNLOAD_HANDLERS")) == {"http": ours, "https": ours, "ftp": "theirs.Ftp"}
    assert settings["DOWNLOADER"] == "scrapy.core.downloader.Downloader"
    assert settings.getdict("EXTENSIONS")["crawlerproject.extensions.commit_loop.CommitLoop"] is None

    keep_whole(settings)
    assert settings.getdict("EXTENSIONS")["crawlerproject.extensions.commit_loop.CommitLoop"] == 100
    assert settings.getdict("EXTENSIONS")["theirs.Extension"] == 1
    assert settings["SCHEDULER"] == "crawlerproject.crawl.scheduler.FrontierScheduler"
