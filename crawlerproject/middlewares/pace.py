"""The adaptive delay of each host, for requests that the frontier did not lease: they wait here for their moment.

Waiting takes no turn: the guard in the download handler does, and lets a request wait again when another was quicker.
So what a later middleware drops or answers itself leaves no clock behind.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Self

from scrapy import Request
from scrapy.crawler import Crawler

from crawlerproject.guard.guard import PaceGuard, guard_of
from crawlerproject.request_meta import lease_in


class PaceMiddleware:
    """``PACE_*`` and ``BACKOFF_*``: the pause follows the host's response times and its troubles."""

    def __init__(self, pace: PaceGuard) -> None:
        self._pace = pace

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(guard_of(crawler).pace)

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """Wait until host and address are free. A leased request has waited in the workbench: no coroutine for it."""
        return self._pace.until_free(request) if lease_in(request) is None else None
