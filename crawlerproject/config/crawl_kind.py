"""Which kind of crawl the settings make, which folder it has, and which of its processes this one is.

| kind | STATE_URL | its folder | the frontier |
|---|---|---|---|
| alone | ``rocksdb:`` | CRAWL_DIR | in its folder |
| local fleet | ``rocksdb:fleet``, set by ``scrapy fleet`` | CRAWL_DIR/FLEET_WORKER | in its folder: its own hosts |
| fleet over Redis | ``redis://…`` and its like | CRAWL_DIR/FLEET_WORKER | in its folder: the hosts that it holds now |
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from scrapy.settings import BaseSettings

from crawlerproject.stores.crawl_dir import CrawlDir

if TYPE_CHECKING:
    from scrapy.crawler import Crawler  # most commands start without a crawler

_ROCKSDB = "rocksdb:"
LOCAL = "rocksdb:fleet"
"""STATE_URL of a worker whose supervisor is ``scrapy fleet`` on the same machine."""
CRAWLS = CrawlDir("crawls")
"""Where crawls have their folders when CRAWL_DIR names none."""


def shared(settings: BaseSettings) -> bool:
    """Whether this is a worker whose fleet meets in Redis."""
    url = str(settings["STATE_URL"])
    if url.startswith(_ROCKSDB):
        return False
    from crawlerproject.stores.redis.connection import SCHEMES  # the start of any other crawl is for nothing of Redis

    return url.startswith(SCHEMES)


def local(settings: BaseSettings) -> bool:
    """Whether this is a worker with a frontier of its own, beside others on this machine."""
    return str(settings["STATE_URL"]) == LOCAL


def one_of_several(settings: BaseSettings) -> bool:
    """Whether this is a worker of a fleet of either kind, with a folder of its own in the crawl's."""
    return shared(settings) or local(settings)


def worker_name(settings: BaseSettings) -> str:
    """What this worker is called: FLEET_WORKER, or the machine's name."""
    return str(settings["FLEET_WORKER"] or socket.gethostname())


def is_of_frontier(crawler: Crawler) -> bool:
    """Whether this is a crawl by the frontier: no shell, and no spider that is not ours."""
    return crawler.crawling and getattr(crawler.spider, "seeds", None) is not None


def answer_seconds(settings: BaseSettings) -> float:
    """The longest that a request, or a page in the browser, may take."""
    fetch: float = settings.getfloat("FETCH_TIMEOUT_SECONDS")
    render: float = settings.getfloat("RENDER_TIMEOUT_SECONDS")
    return fetch if settings["RENDER"] == "never" else max(fetch, render)


def whole_crawl(settings: BaseSettings, spider_name: str = "web") -> CrawlDir:
    """CRAWL_DIR, or ``crawls/<spider name>``; the folders of several workers are in it."""
    return CrawlDir(settings["CRAWL_DIR"] or CRAWLS / spider_name)


def crawl_of(crawler: Crawler) -> CrawlDir:
    """The folder of the whole crawl that a process works for."""
    return whole_crawl(crawler.settings, getattr(crawler.spider, "name", "web"))


def crawl_folder(settings: BaseSettings, spider_name: str = "web") -> CrawlDir:
    """The folder that this process writes into: of several workers each has one of its own."""
    folder = whole_crawl(settings, spider_name)
    return CrawlDir(folder / worker_name(settings)) if one_of_several(settings) else folder
