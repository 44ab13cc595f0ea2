"""Scrapy's SCHEDULER_PRIORITY_QUEUE for other spiders: it hands out one request per host at a time.

The guard lets a host have one request in flight, and then a pause. What waits for that in the downloader takes a place
of CONCURRENT_REQUESTS from other hosts, and no priority can overtake it any more; what waits here does neither. What
still waits for its host when the spider is closed comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Self
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue, DownloaderInterface
from scrapy.statscollectors import StatsCollector
from scrapy.utils.httpobj import urlparse_cached

from crawlerproject.guard.guard import Stopped


class _FreeHosts(DownloaderInterface):
    """Without the download slots whose host has a request on its way; ``meta["download_slot"]`` may name others.

    By the downloader's own list: its slots have a request only a turn of the event loop later.
    """

    def stats(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """The slots to choose among, each with its active downloads."""
        active = self.downloader.active
        hosts = {urlparse_cached(request).hostname for request in active}
        counts = Counter(map(self.downloader.get_slot_key, active))
        return [(counts[slot], slot) for slot in possible_slots if slot not in hosts]


class HostPriorityQueue(DownloaderAwarePriorityQueue):
    """Scrapy's queue with another order of hosts; its files on disk are the same."""

    def __init__(self, crawler: Crawler, *args: Any, **kwargs: Any) -> None:
        super().__init__(crawler, *args, **kwargs)
        self._downloader_interface = _FreeHosts(crawler)

    def pop(self) -> Request | None:
        """The next request of a host that is free."""
        request = super().pop()
        if request is not None:
            _from_queue.add(request)
        return request


_from_queue: WeakSet[Request] = WeakSet()


class StopMiddleware:
    """What waited for its host when the spider was closed goes back into the queue, unsent: a JOBDIR keeps it.

    A request that did not come from the queue (``engine.download``, a media pipeline's) has no place there: it fails as
    one that is ignored.
    """

    def __init__(self, stats: StatsCollector | None) -> None:
        self._stats = stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.stats)

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Scrapy: the download failed."""
        if not isinstance(exception, Stopped) or request not in _from_queue:
            return None
        if self._stats is not None:
            self._stats.inc_value("pace/given_back")
        return request.replace(dont_filter=True)  # it is known already
