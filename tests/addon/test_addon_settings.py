"""What one line in ADDONS changes of a project's settings, for spiders that are ours and for all others."""

from __future__ import annotations

from typing import Any

import pytest
import scrapy
from scrapy.addons import AddonManager
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings, Settings, default_settings
from scrapy.utils.project import get_project_settings

from crawlerproject.addon import PoliteCrawl
from crawlerproject.config.promised_settings import SCRAPY_HANDLER
from crawlerproject.spiders.web import WebSpider

ADDONS = {"crawlerproject.addon.PoliteCrawl": 100}
ROBOTS = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
# What of Scrapy's defaults is otherwise for spiders that are not ours; docs/addon.md tells why.
OTHERWISE = {
    "ADDONS", "SPIDER_MODULES", "TWISTED_REACTOR", "ASYNCIO_EVENT_LOOP", "USER_AGENT", "LOG_FORMATTER",
    "DOWNLOAD_HANDLERS", "DOWNLOAD_HANDLERS_BASE", "DOWNLOADER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES_BASE",
    "SCHEDULER_PRIORITY_QUEUE", "CONCURRENT_REQUESTS",
}  # fmt: skip
# A project's own, one for each way in which the add-on could be in its way.
THEIRS: dict[str, Any] = {
    "COOKIES_ENABLED": False, "RETRY_TIMES": 7, "DEPTH_LIMIT": 3, "CONCURRENT_REQUESTS": 5, "DOWNLOAD_DELAY": 2,
    "CONCURRENT_ITEMS": 9, "USER_AGENT": "foobot/1", "FETCH_MAX_BYTES": 77, "PACE_PRESET": "mirror",
    "SCHEDULER": "their.Scheduler", "SCHEDULER_PRIORITY_QUEUE": "their.Queue", "LOG_FORMATTER": "scrapy.LogFormatter",
    "DUPEFILTER_CLASS": "their.Filter", "TELNETCONSOLE_ENABLED": False, "LOG_LEVEL": "ERROR",
}  # fmt: skip


class Plain(scrapy.Spider):
    """Not ours."""

    name = "plain"


class Stripped(WebSpider):
    """Ours, with a list of add-ons that leaves ours out."""

    custom_settings = {"ADDONS": {}}


def settings_of(spider: type[scrapy.Spider], theirs: dict[str, Any]) -> BaseSettings:
    """The settings of a crawler in another project, as a runner makes it."""
    project = Settings({"ADDONS": ADDONS, **theirs})
    AddonManager.load_pre_crawler_settings(project)
    crawler = Crawler(spider, project)
    crawler.settings.update(project)
    crawler.addons.load_settings(crawler.settings)
    return crawler.settings


def test_other_spiders_keep_scrapys_defaults() -> None:
    """All but the few that are named here."""
    settings = settings_of(Plain, {})

    names = [name for name in dir(default_settings) if name.isupper()]
    assert {name for name in names if settings[name] != getattr(default_settings, name)} <= OTHERWISE
    assert set(settings["DOWNLOADER_MIDDLEWARES"]) == {"crawlerproject.crawl.host_queue.StopMiddleware"}
    assert set(default_settings.DOWNLOADER_MIDDLEWARES_BASE) - set(settings["DOWNLOADER_MIDDLEWARES_BASE"]) == {ROBOTS}
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    assert (handlers["http"], handlers["https"], handlers["ftp"]) == (SCRAPY_HANDLER, SCRAPY_HANDLER, None)
    assert settings["USER_AGENT"] == "PoliteCrawler/1.0"


@pytest.mark.parametrize("name", THEIRS)
def test_a_projects_own_settings_win(name: str) -> None:
    """For spiders that are not ours, and for our own settings."""
    assert settings_of(Plain, THEIRS)[name] == THEIRS[name]


@pytest.mark.parametrize(
    ("theirs", "token"),
    [
        ({}, "PoliteCrawler"),
        ({"USER_AGENT": "foobot (+https://foo.example/)"}, "foobot"),
        ({"USER_AGENT": "Mozilla/5.0 (compatible; foo-bot/2.1; +https://foo.example/)"}, "foo-bot"),
        ({"USER_AGENT": "Mozilla/5.0 (X11; Linux)", "ROBOTSTXT_USER_AGENT": "foobot"}, "foobot"),
        ({"USER_AGENT": "foobot/1", "CRAWLER_NAME": "barbot"}, "barbot"),
    ],
)
def test_the_name_in_robots_txt_is_the_one_that_is_sent(theirs: dict[str, str], token: str) -> None:
    """So that a site that refuses that name is not asked."""
    assert settings_of(Plain, theirs)["CRAWLER_NAME"] == token


def test_our_spiders_have_the_frontier_whatever_the_project_says() -> None:
    """Where a list of add-ons leaves ours out, too."""
    for spider in (WebSpider, Stripped):
        settings = settings_of(spider, THEIRS)

        assert settings["SCHEDULER"] == "crawlerproject.crawl.scheduler.FrontierScheduler"
        assert settings.getint("CONCURRENT_REQUESTS") == settings.getint("FRONTIER_MAX_IN_FLIGHT")
        assert settings.getdict("DOWNLOAD_HANDLERS")["http"].endswith("RenderingDownloadHandler")
        assert settings.getint("DOWNLOAD_DELAY") == 0
        assert settings["FETCH_MAX_BYTES"] == 77
        assert settings.getdict("ADDONS") == ADDONS


def test_a_reactor_that_runs_keeps_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that has installed one chose it; Scrapy would refuse another."""
    monkeypatch.setattr("crawlerproject.addon.is_reactor_installed", lambda: True)
    settings = Settings()

    PoliteCrawl.update_pre_crawler_settings(settings)

    assert settings["ASYNCIO_EVENT_LOOP"] is None


def test_our_spiders_have_none_of_scrapys_downloader_middlewares() -> None:
    """Its redirects and retries would hurry a host behind the frontier's back."""
    settings = settings_of(WebSpider, {})

    chain = settings.get_component_priority_dict_with_base("DOWNLOADER_MIDDLEWARES")

    assert {str(component).partition(".")[0] for component in chain} == {"crawlerproject"}


class Chained(Plain):
    """Not ours either, and with a chain of its own."""

    custom_settings = {"DOWNLOADER_MIDDLEWARES": {"their.Middleware": 543}}


@pytest.mark.parametrize("spider", [Plain, Chained])
def test_in_our_own_project_a_chain_of_ones_own_has_scrapys_around_it(spider: type[scrapy.Spider]) -> None:
    """Other spiders without one go through ours, where redirects and retries are off."""
    crawler = Crawler(spider, get_project_settings())
    crawler.addons.load_settings(crawler.settings)

    chain = crawler.settings.getwithbase("DOWNLOADER_MIDDLEWARES")

    redirects = "scrapy.downloadermiddlewares.redirect.RedirectMiddleware"
    assert chain.get(redirects) == (600 if spider is Chained else None)
    assert ("their.Middleware" in chain) is (spider is Chained)
