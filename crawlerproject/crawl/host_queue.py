"""Scrapy's SCHEDULER_PRIORITY_QUEUE for other spiders: it hands out one request per host at a time.

The guard lets a host have one request in flight, and then a pause. What waits for that in the downloader takes a place
of CONCURRENT_REQUESTS from other hosts, and no priority can overtake it any more; what waits here does neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from scrapy.pqueues import DownloaderAwarePriorityQueue, DownloaderInterface
from scrapy.utils.httpobj import urlparse_cached

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


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
    """As Scrapy's own otherwise; its files on disk are the same."""

    def __init__(self, crawler: Crawler, *args: Any, **kwargs: Any) -> None:
        super().__init__(crawler, *args, **kwargs)
        self._downloader_interface = _FreeHosts(crawler)
