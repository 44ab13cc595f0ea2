"""The scheduler's queue for spiders that are not ours: one request of each host at a time, the most urgent first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.squeues import FifoMemoryQueue
from scrapy.utils.test import get_crawler

from crawlerproject.crawl.host_queue import HostPriorityQueue


@pytest.fixture
def downloader() -> Any:
    """What the queue sees of Scrapy's."""
    found: Any = SimpleNamespace(active=set(), slots={}, ip_concurrency=0, DOWNLOAD_SLOT=Downloader.DOWNLOAD_SLOT)
    found.get_slot_key = lambda request: Downloader.get_slot_key(found, request)
    return found


@pytest.fixture
def queue(downloader: SimpleNamespace) -> HostPriorityQueue:
    """In memory."""
    crawler: Any = get_crawler()
    crawler._engine = SimpleNamespace(downloader=downloader)
    return HostPriorityQueue.from_crawler(crawler, FifoMemoryQueue, "")


def pop(queue: HostPriorityQueue, downloader: SimpleNamespace) -> str | None:
    """The next request's URL; it is on its way from then on."""
    request = queue.pop()
    if request is not None:
        downloader.active.add(request)
    return None if request is None else request.url


def test_one_request_of_each_host(queue: HostPriorityQueue, downloader: SimpleNamespace) -> None:
    """The most urgent of each; nothing more until an answer is there, and nothing is lost meanwhile."""
    for url, priority in (("http://a.test/1", 0), ("http://a.test/2", 5), ("http://b.test/1", 0)):
        queue.push(Request(url, priority=priority))

    assert {pop(queue, downloader), pop(queue, downloader)} == {"http://a.test/2", "http://b.test/1"}
    assert pop(queue, downloader) is None
    assert queue.peek() is None
    assert len(queue) == 1
    downloader.active.clear()
    assert pop(queue, downloader) == "http://a.test/1"


def test_a_slot_of_a_spiders_own_is_no_host(queue: HostPriorityQueue, downloader: SimpleNamespace) -> None:
    """``meta["download_slot"]`` for all hosts: they do not wait for each other, and the guard knows the hosts."""
    for host in ("a", "b", "c"):
        queue.push(Request(f"http://{host}.test/", meta={"download_slot": "mine"}))
    queue.push(Request("http://a.test/2"))

    assert len({pop(queue, downloader) for _ in range(4)} - {None}) == 4
