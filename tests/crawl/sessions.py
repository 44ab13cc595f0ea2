"""A crawl's session around a store in memory and an archive in a folder, with a clock in the test's hand."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scrapy.crawler import Crawler
from scrapy.settings import Settings

from crawlerproject.crawl.lease_requests import LeaseRequests
from crawlerproject.crawl.roles.single_process import SingleProcess
from crawlerproject.crawl.run import Run
from crawlerproject.crawl.session import Session, assembled
from crawlerproject.errors import StorageError
from crawlerproject.frontier.assembly import never_crawl_of
from crawlerproject.frontier.leasing import Lookup
from crawlerproject.frontier.passage import DiscoveredUrl, Lease
from crawlerproject.guard.guard import guard_of
from crawlerproject.items import LeaseResult
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.page.text_fingerprint import text_fingerprint
from crawlerproject.rules.url.urls import parse
from crawlerproject.spiders.web import WebSpider
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.operator_files.watched_lists import NeverCrawlLists
from crawlerproject.stores.poison import Poison
from crawlerproject.stores.protocols import Changes
from tests.stores.memory_store import MemoryStore

HOST = "http://a.test"
SETTINGS = {"CRAWLER_CONTACT": "you@example.org", "RENDER": "never", "NEVERCRAWL_FILE": ""}


class Stats(Counter[str]):
    """Scrapy's collector, as far as a crawl needs it."""

    def inc_value(self, key: str, count: int = 1) -> None:
        """Count."""
        self[key] += count


class FullStore(MemoryStore):
    """Takes nothing while ``full`` says why."""

    full = ""

    def apply(self, changes: Changes) -> None:
        """StorageError without room."""
        if self.full:
            raise StorageError(self.full)
        super().apply(changes)

    def sync(self) -> None:
        """StorageError without room."""
        if self.full:
            raise StorageError(self.full)


def run_of(clock: Callable[[], float] | None = None) -> Run:
    """A run that excludes no host."""
    return Run(Stats(), NeverCrawlLists([], 60.0), clock=clock)


def settings_of(**given: Any) -> Settings:
    """The project's settings, and what a test gives."""
    settings = Settings()
    settings.setmodule("crawlerproject.settings")
    settings.update({**SETTINGS, **given}, priority="cmdline")
    return settings


def spider_of(settings: Settings, seeds: str = f"{HOST}/", **arguments: Any) -> WebSpider:
    """The spider as Scrapy makes it."""
    crawler = Crawler(WebSpider, settings)
    crawler.spider = WebSpider.from_crawler(crawler, seeds=seeds, **arguments)
    return crawler.spider


class Bench:
    """One session, what is around it, and a hand that answers as the web would."""

    def __init__(
        self,
        folder: Path,
        *,
        store: FullStore | None = None,
        now: float = 1000.0,
        seeds: str = f"{HOST}/",
        **given: Any,
    ) -> None:
        """``given``: settings by their names, arguments of the spider in lower case."""
        self.now = now
        self.stats = Stats()
        self.store = store or FullStore()
        self.folder = CrawlDir(folder)
        own = {name: value for name, value in given.items() if name.isupper()}
        self.settings = settings_of(**{"CRAWL_DIR": str(folder), **own})
        arguments = {name: value for name, value in given.items() if not name.isupper()}
        self.spider = spider_of(self.settings, **arguments)
        self.run = Run(self.stats, never_crawl_of(self.settings), clock=lambda: self.now)
        self.role = SingleProcess(self.store)  # type: ignore[arg-type]
        self.folder.mkdir(parents=True, exist_ok=True)
        self.poison = Poison(self.folder, self.now)
        waiting = self.poison.unmarked
        self.session: Session = assembled(self.settings, self.folder, self.spider, self.run, self.role, waiting)
        self.frontier = self.session.frontier
        self.frontier.begin_loading()
        while self.frontier.load_some(100):
            pass

    def add(self, *urls: str, flags: int = 0) -> int:
        """Queue links of one page."""
        return self.frontier.add([DiscoveredUrl(parse(url), 1, "L", HOST, 10, flags) for url in urls], self.now)

    def lease(self) -> Lease:
        """The next lease, names looked up on the way, when its host is free."""
        while True:
            turn = self.frontier.leasing.next(self.now)
            if isinstance(turn, Lookup):
                turn = self.frontier.leasing.looked_up(turn.host, "192.0.2.1", 1e12, self.now)
            if turn is not None:
                return turn
            wake = self.frontier.wake_at()
            assert wake is not None, "nothing is queued"
            self.now = max(self.now, wake)

    def page_lease(self) -> Lease:
        """As ``lease``, robots.txt of the host answered on the way: everything is allowed."""
        while (lease := self.lease()).row.kind.is_robots:
            self.session.pages.finish(page_of(lease, self.now, status=404))
        return lease

    def commit(self) -> None:
        """One commit, blocking."""
        self.session.commits.commit_blocking()

    def close(self) -> None:
        """As a crawl ends."""
        self.session.close(self.now)

    def again(self, **given: Any) -> Bench:
        """The next start on the same store and folder."""
        return Bench(self.folder, store=self.store, now=self.now + 100, **given)

    def crash(self, to: Path) -> Bench:
        """A start on what a process left that died now."""
        shutil.copytree(self.folder, to)
        return Bench(to, store=self.store, now=self.now + 100)


def page_of(lease: Lease, now: float, *, status: int = 200, body: bytes = b"words", **more: Any) -> LeaseResult:
    """The end of a lease that was answered; ``text`` makes it an HTML page that was read."""
    head = b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
    wire = Wire(
        request_bytes=b"GET / HTTP/1.1\r\n\r\n",
        head_bytes=head,
        body=body,
        status=status,
        ip="192.0.2.1",
        started_at=now,
        ended_at=now,
        ttfb_seconds=0.05,
        received_bytes=len(head) + len(body),
    )
    reason = more.pop("reason", Reason.FETCHED if status == 200 else Reason.HTTP_ERROR)
    if (text := more.pop("text", None)) is not None:
        more.update(is_text=True, fingerprint=text_fingerprint(text))
    made = LeaseResult(lease.row, reason, status, lease=lease, wire=wire, answered=True, body=body, **more)
    made.ttfb_seconds = wire.ttfb_seconds
    made.payload = body if status == 200 else b""
    return made


class Answers:
    """Callback and errback of a lease's request."""

    async def answered(self, response: Any) -> Any:
        """Any answer."""

    async def on_error(self, failure: Any) -> Any:
        """None."""


def requests_of(bench: Bench) -> LeaseRequests:
    """What makes the requests of a session's leases."""
    return LeaseRequests(bench.session, guard_of(bench.spider.crawler), bench.poison, Answers(), Answers())
