"""The promises in one object a crawler, which the download handler asks in the end: no setting reaches it.

The middlewares of the chain are parts of it and decide early. A spider's ``custom_settings`` may replace the chain;
then the guard decides alone. What the frontier leased is known by the very object that it handed out: a copy of it (a
redirect, a retry, ``meta=response.meta``) is a request like any other.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from crawlerproject.middlewares.nevercrawl import NeverCrawlMiddleware
from crawlerproject.middlewares.pace import PaceMiddleware
from crawlerproject.middlewares.robots import RobotsMiddleware

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawlerproject.frontier.lease import Lease
    from crawlerproject.middlewares.robots import Download


class Guard:
    """One crawler's NeverCrawl list, robots.txt rules and clocks."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._leased: WeakKeyDictionary[Request, Lease] = WeakKeyDictionary()

    @cached_property
    def never_crawl(self) -> NeverCrawlMiddleware:
        """Who is never asked."""
        return NeverCrawlMiddleware.from_settings_of(self._crawler)

    @cached_property
    def robots(self) -> RobotsMiddleware:
        """What each origin's robots.txt says, where the frontier was not asked."""
        return RobotsMiddleware.from_settings_of(self._crawler)

    @cached_property
    def pace(self) -> PaceMiddleware:
        """The clocks of all hosts and addresses."""
        return PaceMiddleware.from_settings_of(self._crawler)

    def lease(self, request: Request, lease: Lease) -> None:
        """The frontier hands this request out: it has judged it, and promised its pause."""
        self._leased[request] = lease

    def leased(self, request: Request) -> bool:
        """Whether this is a request of the frontier's that is still to be sent."""
        return request in self._leased

    def lease_of(self, request: Request) -> Lease | None:
        """The lease under which this request is sent, once; None: it is not the frontier's."""
        return self._leased.pop(request, None)

    async def judge(self, request: Request, download: Download) -> None:
        """Refuse what may not be asked for; raises ``Refused``. ``download`` fetches a robots.txt."""
        self.never_crawl.judge(request)
        await self.robots.judge(request, download)


_guards: WeakKeyDictionary[Crawler, Guard] = WeakKeyDictionary()


def guard_of(crawler: Crawler) -> Guard:
    """The crawler's one guard."""
    guard = _guards.get(crawler)
    if guard is None:
        guard = _guards[crawler] = Guard(crawler)
    return guard
