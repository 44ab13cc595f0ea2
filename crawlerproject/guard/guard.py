"""One object a crawler, asked by the download handler: which requests are the frontier's, and whether others may go.

A leased request is known by the very object that the scheduler handed out: a copy of it (a redirect, a retry,
``meta=response.meta``) is a request like any other.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from crawlerproject.frontier.assembly import never_crawl_of
from crawlerproject.guard.pace import PaceGuard, refused
from crawlerproject.guard.robots import RobotsGuard
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.refused_urls import bad_port
from crawlerproject.rules.url.urls import host_key, host_name
from crawlerproject.runtime.clock import steady
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawlerproject.frontier.lease import Lease
    from crawlerproject.guard.robots import Download
    from crawlerproject.stores.operator_files.watched_lists import NeverCrawlLists


class Guard:
    """One crawler's NeverCrawl lists, robots.txt rules and clocks."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._leased: WeakKeyDictionary[Request, Lease] = WeakKeyDictionary()

    @cached_property
    def never_crawl(self) -> NeverCrawlLists:
        """The process's one reader of the lists: the crawl's filters ask it as well."""
        return never_crawl_of(self._crawler.settings)

    @cached_property
    def robots(self) -> RobotsGuard:
        """The rules of each origin that the frontier was not asked about."""
        return RobotsGuard.from_crawler(self._crawler)

    @cached_property
    def pace(self) -> PaceGuard:
        """The clocks of all hosts and addresses."""
        return PaceGuard.from_crawler(self._crawler)

    def lease(self, request: Request, lease: Lease) -> None:
        """The frontier hands this request out: it has judged it, and promised its pause."""
        self._leased[request] = lease

    def leased(self, request: Request) -> bool:
        """Whether this is a request of the frontier's that is still to be sent."""
        return request in self._leased

    def lease_of(self, request: Request) -> Lease | None:
        """The lease under which this request is sent, once; None: it is not the frontier's."""
        return self._leased.pop(request, None)

    def check(self, request: Request, lease: Lease | None = None) -> None:
        """Refuse what NeverCrawl excludes now, a lease included: the list may have grown since it was handed out.

        Raises ``Refused``, also for a port at which no web server is to be looked for.
        """
        key = host_key(request.url) if lease is None else lease.row.host
        if lease is None and bad_port(key):
            raise refused(self._crawler.stats, request, Reason.BAD_PORT, key)
        name, now = host_name(key), steady()
        if self.never_crawl.current(now).excludes(name):
            listing = self.never_crawl.listing(name, now)
            where = f"line {listing.line} of {listing.path}" if listing is not None else "just taken off"
            detail = f"{name} ({where})"
            raise refused(self._crawler.stats, request, Reason.NEVERCRAWL, detail, logged=lease is not None)

    async def judge(self, request: Request, download: Download) -> float:
        """Refuse what may not be asked for; the pause that its robots.txt asks for, in seconds. Raises ``Refused``.

        ``download`` fetches a robots.txt.
        """
        self.check(request)
        return await self.robots.judge(request, download)


def guard_of(crawler: Crawler) -> Guard:
    """The crawler's one guard."""
    return services_of(crawler).once(Guard, lambda: Guard(crawler))
