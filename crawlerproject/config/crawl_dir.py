"""Which folder a crawl has, by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.config.fleet import one_of_several, worker_name
from crawlerproject.stores.crawl_dir import CrawlDir

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

CRAWLS = CrawlDir("crawls")
"""Where crawls have their folders when CRAWL_DIR names none."""


def whole_crawl(settings: BaseSettings, spider_name: str = "web") -> CrawlDir:
    """CRAWL_DIR, or ``crawls/<spider name>``; the folders of several workers are in it."""
    return CrawlDir(settings["CRAWL_DIR"] or CRAWLS / spider_name)


def crawl_folder(settings: BaseSettings, spider_name: str = "web") -> CrawlDir:
    """The folder that this process writes into: of several workers each has one of its own."""
    folder = whole_crawl(settings, spider_name)
    return CrawlDir(folder / worker_name(settings)) if one_of_several(settings) else folder
