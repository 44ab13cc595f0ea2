"""What one line in ADDONS changes of a project's settings, for spiders that are ours and for all others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import scrapy
from requests import Session
from scrapy.addons import AddonManager
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares import cookies
from scrapy.settings import BaseSettings, Settings, default_settings
from scrapy.utils.project import get_project_settings
from tldextract import TLDExtract

from crawlerproject.addon import PoliteCrawl
from crawlerproject.config.old_settings import NOWHERE
from crawlerproject.config.promised_settings import SCRAPY_HANDLER
from crawlerproject.errors import OperatorError
from crawlerproject.spiders.web import WebSpider

ADDONS = {"crawlerproject.addon.PoliteCrawl": 100}
ROBOTS = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
LOG_STATS = "crawlerproject.extensions.scrapy_parts.RestingLogStats"
# What of Scrapy's defaults is otherwise for spiders that are not ours; docs/addon.md tells why.
OTHERWISE = {
    "ADDONS", "SPIDER_MODULES", "TWISTED_REACTOR", "ASYNCIO_EVENT_LOOP", "USER_AGENT", "LOG_FORMATTER",
    "DOWNLOAD_HANDLERS", "DOWNLOAD_HANDLERS_BASE", "DOWNLOADER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES_BASE",
    "SCHEDULER_PRIORITY_QUEUE", "CONCURRENT_REQUESTS", "EXTENSIONS", "EXTENSIONS_BASE",
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


def test_cookies_download_no_list_of_suffixes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Scrapy's middleware asks publicsuffix.org with the first cookie, by a client that no guard knows."""
    monkeypatch.setattr(cookies, "_split_domain", TLDExtract(cache_dir=str(tmp_path), include_psl_private_domains=True))
    monkeypatch.setattr(Session, "get", lambda *_, **__: pytest.fail("asks for the list"))

    settings_of(Plain, {})

    assert [cookies._is_public_domain(name) for name in ("co.uk", "github.io", "example.co.uk")] == [True, True, False]


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
    extensions = set(settings.getwithbase("EXTENSIONS")) ^ set(default_settings.EXTENSIONS_BASE)
    assert extensions == {LOG_STATS, "scrapy.extensions.logstats.LogStats"}


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


def test_log_stats_that_are_off_stay_off() -> None:
    """Ours takes the place of Scrapy's, and not that of nothing."""
    off = {"EXTENSIONS": {"scrapy.extensions.logstats.LogStats": None}}

    assert LOG_STATS not in settings_of(Plain, off).getwithbase("EXTENSIONS")


@pytest.mark.parametrize("spider", [Plain, WebSpider])
@pytest.mark.parametrize(
    ("name", "value", "wished"),
    [
        ("ROBOTSTXT_OBEY", False, True),
        ("ROBOTSTXT_OBEY", True, False),  # of Scrapy's template
        ("DOWNLOAD_VERIFY_CERTIFICATES", False, True),
        ("DOWNLOAD_TLS_MIN_VERSION", "TLSv1.3", True),
        ("DOWNLOADER_CLIENT_TLS_CIPHERS", "DEFAULT", False),
        ("DNS_TIMEOUT", 5, True),
    ],
)
def test_what_no_spider_uses_is_said(
    spider: type[scrapy.Spider], name: str, value: Any, wished: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """In one line, with what happens instead; what a template writes, or means nothing, needs no word."""
    settings_of(spider, {name: value})

    assert (f"Set, but without effect here: {name} ({NOWHERE[name]})." in caplog.messages) is wished


class Before213(Plain):
    """Of an earlier Scrapy."""

    def start_requests(self) -> Any:
        """What nothing calls any more."""


class Both(Before213):
    """Of a spider that serves both."""

    async def start(self) -> Any:
        """What Scrapy calls."""
        yield None


@pytest.mark.parametrize(("spider", "said"), [(Before213, True), (Both, False), (Plain, False), (WebSpider, False)])
def test_start_requests_alone_is_said(
    spider: type[scrapy.Spider], said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Scrapy would end at once, with nothing."""
    settings_of(spider, {})

    assert any("has start_requests() and no start()" in message for message in caplog.messages) is said


def test_an_address_to_send_from_must_be_there() -> None:
    """Every request would fail."""
    with pytest.raises(OperatorError, match=r"^DOWNLOAD_BIND_ADDRESS is '192\.0\.2\.1'; use an IP address of this"):
        settings_of(Plain, {"DOWNLOAD_BIND_ADDRESS": "192.0.2.1"})


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
