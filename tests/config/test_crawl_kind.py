"""Which folder a crawl and each of its workers have, by the settings."""

import socket
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from crawlerproject.config.crawl_kind import answer_seconds, crawl_folder, whole_crawl

ALONE = {"STATE_URL": "rocksdb:", "CRAWL_DIR": "", "FLEET_WORKER": ""}
SHARED = {**ALONE, "STATE_URL": "redis://localhost:6379/0"}


@pytest.mark.parametrize(
    ("settings", "folder"),
    [
        (ALONE, "crawls/web"),
        ({**ALONE, "CRAWL_DIR": "/big/disk"}, "/big/disk"),
        ({**SHARED, "FLEET_WORKER": "w1"}, "crawls/web/w1"),
        ({**SHARED, "CRAWL_DIR": "c"}, f"c/{socket.gethostname()}"),
    ],
)
def test_the_folder_that_a_process_writes_into(settings: dict[str, Any], folder: str) -> None:
    """CRAWL_DIR or the spider's name; of several workers each has one of its own."""
    assert crawl_folder(Settings(settings)) == Path(folder)
    assert whole_crawl(Settings(settings)) == Path(settings["CRAWL_DIR"] or "crawls/web")


def test_another_spider_has_a_folder_of_its_own() -> None:
    """By its name."""
    assert crawl_folder(Settings(ALONE), "plan") == Path("crawls/plan")


@pytest.mark.parametrize(("render", "seconds"), [("never", 30.0), ("auto", 45.0)])
def test_the_longest_that_anything_takes(render: str, seconds: float) -> None:
    """The browser counts where there may be one."""
    given = {"FETCH_TIMEOUT_SECONDS": 30, "RENDER_TIMEOUT_SECONDS": 45, "RENDER": render}
    assert answer_seconds(Settings(given)) == seconds
