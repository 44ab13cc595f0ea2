"""The download handler over an archive: the response of a capture, and nothing for any other request."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.archived_response import render_record, seen
from crawlerproject.reparse.scheduler import LEFT_OUT, SETTING, ArchivedRequest
from crawlerproject.stores.archive.captures import Captures
from crawlerproject.stores.crawl_dir import CrawlDir

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

UNREADABLE = "reparse/unreadable"
"""Statistic: captures that the archive does not have as its index says."""

logger = logging.getLogger(__name__)


class ArchiveHandler:
    """Reads the record, and that of the body where a page had not changed."""

    lazy = False

    def __init__(self, crawler: Crawler, folders: list[CrawlDir]) -> None:
        self._crawler = crawler
        self._folders = folders
        self._captures = Captures(folders)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As the command has set it."""
        return cls(crawler, [CrawlDir(folder) for folder in json.loads(crawler.settings[SETTING])["folders"]])

    async def download_request(self, request: Request) -> Response:
        """Scrapy: the response. Raises IgnoreRequest for others than the scheduler's, and for a broken record."""
        chosen = request.chosen if isinstance(request, ArchivedRequest) else None
        if chosen is None:
            self._count(LEFT_OUT)
            raise IgnoreRequest(f"nothing is fetched while an archive is read again: {request.url}")
        render = render_record(self._folders, chosen.rendered.place()) if chosen.rendered is not None else None
        try:
            found = seen(self._captures, chosen.capture, render)
        except OperatorError as error:
            self._count(UNREADABLE)
            logger.error("%s", error)
            raise IgnoreRequest(str(error)) from None
        request.meta["archived"] = found.date
        found.response.request = request
        return found.response

    async def close(self) -> None:
        """Scrapy: nothing is open."""

    def _count(self, key: str) -> None:
        assert self._crawler.stats is not None
        self._crawler.stats.inc_value(key)
