"""FRONTIER_MAX_IN_FLIGHT is what it says, above the default too: Scrapy's own limits follow it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from crawlerproject.spiders.web import WebSpider
from tests.hostile.arena import Asked, answer, arena
from tests.web.running import many_files

HOSTS = 1_080
NAMES = ("CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN")


class Eager(WebSpider):
    """A spider with settings of its own."""

    custom_settings = {"FRONTIER_MAX_IN_FLIGHT": 1_700}


class Careful(WebSpider):
    """A spider that wants less than the frontier leases."""

    custom_settings = {"CONCURRENT_REQUESTS": 8}


def concurrency(spider: type[WebSpider], settings: dict[str, Any], project: Settings) -> list[int]:
    """Scrapy's limits once a crawler has its settings; ``settings`` as on the command line."""
    project.setdict(settings, "cmdline")
    crawler = Crawler(spider, project)
    crawler.settings.update(project)  # as CrawlerRunner does with a crawler that it is given
    crawler.addons.load_settings(crawler.settings)
    return [crawler.settings.getint(name) for name in NAMES]


def test_scrapys_limits_follow_whoever_sets_it() -> None:
    """The command line, a spider, the default; and a limit of Scrapy's that somebody set stands."""
    assert concurrency(WebSpider, {}, get_project_settings()) == [1_000, 1_000]
    assert concurrency(WebSpider, {"FRONTIER_MAX_IN_FLIGHT": "2500"}, get_project_settings()) == [2_500, 2_500]
    assert concurrency(Eager, {}, get_project_settings()) == [1_700, 1_700]
    assert concurrency(Eager, {"FRONTIER_MAX_IN_FLIGHT": "3000"}, get_project_settings()) == [3_000, 3_000]
    assert concurrency(Careful, {}, get_project_settings()) == [8, 1_000]


@pytest.mark.parametrize("theirs", [{}, {"FRONTIER_MAX_IN_FLIGHT": 1_200}])
def test_in_another_project_too(theirs: dict[str, int]) -> None:
    """Where the crawler comes as an add-on, what the project says counts."""
    project = Settings({"ADDONS": {"crawlerproject.addon.PoliteCrawl": 100}, **theirs})

    assert concurrency(WebSpider, {}, project) == [theirs.get("FRONTIER_MAX_IN_FLIGHT", 1_000)] * 2


def test_more_than_the_default_are_asked_at_the_same_time(tmp_path: Path) -> None:
    """Over a thousand hosts that answer nobody before more than a thousand have been asked."""
    many_files()
    now, most = 0, 0

    async def hold(asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(150):
            if most > 1_000:
                break
            await asyncio.sleep(0.1)
        now -= 1
        writer.write(answer("", mime="text/plain"))

    with arena(tmp_path) as web:
        seeds = [web.raw_site(f"h{number}.test", hold) for number in range(HOSTS)]

        web.crawl(*seeds, settings={"FRONTIER_MAX_IN_FLIGHT": "1100"}, until=lambda: most > 1_000)

    assert most > 1_000
