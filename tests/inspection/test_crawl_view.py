"""What a look at a crawl takes from its last start."""

from __future__ import annotations

import json
from pathlib import Path

from scrapy.settings import SETTINGS_PRIORITIES

from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.crawl.sessions import settings_of

CMDLINE = SETTINGS_PRIORITIES["cmdline"]


def test_a_default_of_the_start_is_still_a_default(tmp_path: Path) -> None:
    """A list of hosts that was never made is no news to a look either; what was set is as it was set."""
    settings = settings_of(CRAWL_DIR=str(tmp_path))
    before = settings.getpriority("NEVERCRAWL_FILE")
    started = {"NEVERCRAWL_FILE": settings["NEVERCRAWL_FILE"], "HOST_PACE_FILE": "paces.txt"}
    (tmp_path / "frontier").mkdir()
    CrawlDir(tmp_path).run.write_text(json.dumps({"settings": started, "cwd": "/where", "started": 1.0}))

    seen = CrawlView(settings).settings

    assert (seen["HOST_PACE_FILE"], seen.getpriority("HOST_PACE_FILE")) == ("/where/paces.txt", CMDLINE)
    assert seen.getpriority("NEVERCRAWL_FILE") == before
