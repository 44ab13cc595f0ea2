"""Download handlers under test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.utils.test import get_crawler

from crawlerproject.errors import FetchError
from crawlerproject.fetch.download_handler import CrawlerDownloadHandler
from crawlerproject.request_meta import exchange_of
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.settings import OURS


@asynccontextmanager
async def handler(tmp_path: Path, **settings: Any) -> AsyncIterator[CrawlerDownloadHandler]:
    """A handler that may connect to loopback, where every *.test is."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 site.test proxy.test\n")
    defaults = {"FETCH_ALLOW_NETWORKS": ["127.0.0.0/8"], "FETCH_HOSTS_FILE": str(hosts), "CRAWLER_NAME": "Test"}
    made = CrawlerDownloadHandler.from_crawler(get_crawler(settings_dict=OURS | defaults | settings))
    try:
        yield made
    finally:
        await made.close()


async def failure(made: CrawlerDownloadHandler, request: Request) -> FetchError:
    """The error a request ends with."""
    with pytest.raises(FetchError) as failed:
        await made.download_request(request)
    return failed.value


def wire_of(request: Request) -> Wire:
    """What crossed the network for a request."""
    wire = exchange_of(request).wire
    assert wire is not None
    return wire
