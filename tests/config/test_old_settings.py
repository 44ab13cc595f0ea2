"""Settings of earlier versions: a renamed one counts, one that is a constant now does not, and one line says so."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from crawlerproject.config.crawl_file import CrawlFile, apply, refuse_unknown
from crawlerproject.config.old_settings import take_old_names
from crawlerproject.settings import OURS, constant, renamed
from crawlerproject.spiders.web import WebSpider

OLD, NEW = "FRONTIER_PATIENCE_SECONDS", "FRONTIER_MAX_REST_SECONDS"


def started(project: Settings, spider: type[WebSpider] = WebSpider) -> Settings:
    """The settings of a crawler, as its add-ons leave them."""
    crawler = Crawler(spider, project)
    crawler.addons.load_settings(crawler.settings)
    return crawler.settings


def test_the_table_is_of_names_that_are_none_any_more() -> None:
    """And leads to names that are."""
    assert set(renamed.values()) <= set(OURS)
    assert not set(OURS) & (set(renamed) | set(constant))
    refuse_unknown([*renamed, *constant], "A file")


@pytest.mark.parametrize("old", renamed)
def test_a_renamed_setting_counts(old: str) -> None:
    """At the priority at which it was set; its new name wins where both are given alike."""
    settings = Settings(OURS, "default")
    settings.set(old, 7, "project")
    assert take_old_names(settings) == [f"{old} is {renamed[old]} now"]
    assert settings[renamed[old]] == 7
    settings.set(renamed[old], 8, "project")
    take_old_names(settings)
    assert settings[renamed[old]] == 8
    settings.set(old, 9, "cmdline")
    take_old_names(settings)
    assert settings[renamed[old]] == 9


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
