"""Settings of which a start warns, in one line: those of earlier versions, which go on working, and wishes in vain.

Settings of Scrapy's that a crawl by the frontier has no use for are named only where somebody set them.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Any

import pytest
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from crawlerproject.config.crawl_file import CrawlFile, apply, kept_settings, plain, refuse_unknown
from crawlerproject.config.old_settings import INSTEAD, ours_of, take_old_names, unused
from crawlerproject.config.settings_table import ALL, FORMER, RENAMED, SETTINGS, WITHOUT_EFFECT
from crawlerproject.config.values import preset_of
from crawlerproject.fetch.pool import Limits
from crawlerproject.settings import OURS
from crawlerproject.spiders.web import WebSpider
from tests.web.running import PROJECT

OLD, NEW = "FRONTIER_PATIENCE_SECONDS", "FRONTIER_MAX_REST_SECONDS"


def started(project: Settings, spider: type[WebSpider] = WebSpider) -> Settings:
    """The settings of a crawler, as its add-ons leave them."""
    crawler = Crawler(spider, project)
    crawler.addons.load_settings(crawler.settings)
    return crawler.settings


def test_the_table_is_of_names_that_are_none_any_more() -> None:
    """And leads to names that are."""
    assert set(RENAMED.values()) <= set(ALL)
    assert not set(SETTINGS) & {*RENAMED, *FORMER, *WITHOUT_EFFECT}
    refuse_unknown([*RENAMED, *FORMER, *WITHOUT_EFFECT], "A file")


@pytest.mark.parametrize("old", RENAMED)
def test_a_renamed_setting_counts(old: str) -> None:
    """At the priority at which it was set; its new name wins where both are given alike."""
    settings = Settings(OURS, "default")
    settings.set(old, 7, "project")
    new = RENAMED[old]
    assert take_old_names(settings)[0] == f"{old} is {new} now"
    assert settings[new] == 7
    settings.set(new, 8, "project")
    take_old_names(settings)
    assert settings[new] == 8
    settings.set(old, 9, "cmdline")
    take_old_names(settings)
    assert settings[new] == 9


class Patient(WebSpider):
    """A spider of a project that was written for an earlier version."""

    custom_settings = {OLD: 30, "RENDER_MAX_PAGES": 5}


@pytest.mark.parametrize("project", [{}, {"ADDONS": {"crawlerproject.addon.PoliteCrawl": 100}}])
def test_wherever_it_is_set(project: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """A spider, a project, a command line, a crawl.toml: here and under the add-on, with one line of warning."""
    made = Settings(project) if project else get_project_settings()
    with caplog.at_level(logging.WARNING, "crawlerproject.config.old_settings"):
        assert started(made, Patient)[NEW] == 30
    assert [record.getMessage() for record in caplog.records] == [
        f"Settings of an earlier version: {OLD} is {NEW} now; RENDER_MAX_PAGES has no effect, it is always 100,000."
    ]
    made.set(OLD, "40", "cmdline")
    assert started(made, Patient)[NEW] == "40"
    if project:
        assert started(Settings({**project, OLD: 50}))[NEW] == 50
    kept = get_project_settings()
    apply(CrawlFile(settings={OLD: 60}), kept)
    assert kept[NEW] == 60


def test_nothing_is_said_of_new_names(caplog: pytest.LogCaptureFixture) -> None:
    """A start without old ones has no such line."""
    settings = get_project_settings()
    settings.set(NEW, 30, "cmdline")
    with caplog.at_level(logging.WARNING, "crawlerproject.config.old_settings"):
        assert started(settings)[NEW] == 30
    assert caplog.records == []


def test_they_are_read() -> None:
    """Each with the constant for its default, where it is needed; PACE_WINDOW with its preset's numbers."""
    code = "".join(path.read_text() for path in (PROJECT / "crawlerproject").rglob("*.py"))
    read = set(re.findall(r'settings\.get(?:int|float|)\(\s*"([A-Z_]+)", [A-Z_"a-z]+\s*\)', code))

    assert set(FORMER) - read == {"PACE_WINDOW"}


def test_the_bounds_of_a_fetch_are_those_that_are_given() -> None:
    """As an example: the constants, and old names in their place."""
    plain_limits = Limits.from_settings(Settings(OURS))
    given = Settings(OURS | {"FETCH_MIN_BYTES_PER_SECOND": "7", "FETCH_SLOW_GRACE_SECONDS": 0})

    assert (plain_limits.min_bytes_per_second, plain_limits.slow_grace_seconds) == (100, 10)
    assert Limits.from_settings(given) == replace(plain_limits, min_bytes_per_second=7.0, slow_grace_seconds=0.0)
    assert preset_of(Settings(OURS | {"PACE_WINDOW": "9"})).window == 9


@pytest.mark.parametrize("name", FORMER)
def test_a_setting_that_is_a_constant_now_holds_if_it_is_given(name: str) -> None:
    """The code that has the constant reads the old name first, whoever has set it; the start says so."""
    settings = Settings(OURS, "default")
    assert take_old_names(settings) == []
    settings.set(name, "7", "cmdline")
    assert take_old_names(settings) == [f"{name} is no longer a setting, but its value 7 still applies"]
    assert ours_of(settings)[name] == "7"  # run.json and other processes of the crawl get it as well
    assert kept_settings(settings)[name] == plain(name, "7")  # crawl.toml, for the next start


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
        with caplog.at_level(logging.WARNING, "crawlerproject.config.old_settings"):
            crawler = Crawler(Wishing, Settings(TEMPLATE))
            Wishing.from_crawler(crawler, **given)
        assert len(caplog.records) == len(given)
    crawler = Crawler(Wishing, Settings(TEMPLATE))
    Wishing.from_crawler(crawler, seeds="https://a.test/")
    assert crawler.settings.getfloat("DOWNLOAD_DELAY") == 0
