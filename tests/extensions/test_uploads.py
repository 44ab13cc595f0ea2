"""The process that uploads beside a crawl, as the extension sees it (whole: tests/crawls/archive/test_uploads.py)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from crawlerproject.extensions.uploads import Uploads
from crawlerproject.settings import OURS
from crawlerproject.stores.crawl_dir import CrawlDir


def test_a_process_that_has_died_does_not_disturb_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The end is said to a pipe that has no reader any more: a warning, and the process is waited for."""
    crawler = Crawler(Spider, Settings(OURS))
    uploads = Uploads(crawler, (tmp_path / "there").as_uri())
    uploads._folder = CrawlDir(tmp_path)
    uploads._start()
    process = uploads._process
    assert process is not None
    process.kill()
    process.wait()

    with caplog.at_level(logging.WARNING):
        asyncio.run(uploads.spider_closed(Spider("web"), "finished"))

    assert process.stdin is not None
    assert process.stdin.closed
    assert [record.message for record in caplog.records] == [
        "The process that uploads the archive has ended before the crawl",
        f"Not all of the archive is at {uploads._url} yet; scrapy upload goes on with it",
    ]
