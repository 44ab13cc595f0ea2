"""Settings that a crawl by the frontier has no use for are named once, and only where somebody set them."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from crawlerproject.config.unused_settings import INSTEAD, unused
from crawlerproject.spiders.web import WebSpider

# As `scrapy startproject` has it.
TEMPLATE = {"ROBOTSTXT_OBEY": True, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": 1}


class Wishing(WebSpider):
    """As in many a tutorial."""

    custom_settings = {"COOKIES_ENABLED": True, "DOWNLOAD_DELAY": 2.5, "RETRY_ENABLED": False}
    allowed_domains = ["example.org"]


def said(spider: type[WebSpider], project: Settings, **given: Any) -> list[str]:
    """The names in the warning."""
    crawler = Crawler(spider, project)
    return [text.partition(" ")[0] for text in unused(spider(**given), crawler.settings)]


def test_nothing_is_said_where_nobody_wished_for_anything() -> None:
    """In our own project, and in a fresh one."""
    assert said(WebSpider, get_project_settings()) == []
    assert said(WebSpider, Settings(TEMPLATE)) == []


def test_each_is_named() -> None:
    """Whoever sets it: the project, the spider, the command line."""
    assert said(Wishing, Settings(TEMPLATE)) == ["COOKIES_ENABLED", "DOWNLOAD_DELAY", "allowed_domains"]
    wishes = {name: True if name.endswith("_ENABLED") else 7 for name in INSTEAD}
    project = Settings(wishes | {"DEFAULT_REQUEST_HEADERS": {"Accept-Language": "eo"}})
    assert said(WebSpider, project) == list(INSTEAD)
    project = get_project_settings()
    project.set("HTTPCACHE_ENABLED", "1", "cmdline")
    assert said(WebSpider, project) == ["HTTPCACHE_ENABLED"]


def test_it_is_one_line_and_no_delay_is_left(caplog: pytest.LogCaptureFixture) -> None:
    """Scrapy's delay would hold up all hosts, which share one slot; a shell or ``parse`` hears nothing."""
    for given in ({"seeds": "https://a.test/"}, {}):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "crawlerproject.config.unused_settings"):
            crawler = Crawler(Wishing, Settings(TEMPLATE))
            Wishing.from_crawler(crawler, **given)
        assert len(caplog.records) == len(given)
    crawler = Crawler(Wishing, Settings(TEMPLATE))
    Wishing.from_crawler(crawler, seeds="https://a.test/")
    assert crawler.settings.getfloat("DOWNLOAD_DELAY") == 0
