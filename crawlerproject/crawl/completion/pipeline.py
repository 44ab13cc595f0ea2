"""The end of every Page, by our own pipelines: no setting, and no pipeline of a project's, comes between.

A project's items go through ITEM_PIPELINES; ours stand there too and let them pass.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from crawlerproject.parse.response_page import page_by_middleware
from crawlerproject.pipelines.dedup import DedupPipeline
from crawlerproject.pipelines.warc import WarcPipeline

if TYPE_CHECKING:
    from scrapy import Request

    from crawlerproject.crawl.scheduler import FrontierScheduler
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.items import Page
    from crawlerproject.spiders.web import WebSpider

logger = logging.getLogger(__name__)


class PagePipeline:
    """Takes one Page for every lease; finds those of which a middleware of the project left none."""

    def __init__(self, scheduler: FrontierScheduler) -> None:
        self._scheduler = scheduler
        self._dedup = DedupPipeline.from_crawler(scheduler.crawler)
        self._warc = WarcPipeline.from_crawler(scheduler.crawler)
        self._sent: dict[int, tuple[Lease, Request]] = {}  # by the lease's id: no Page has come of it yet

    def expect(self, lease: Lease, request: Request) -> None:
        """A request is on its way."""
        self._sent[id(lease)] = (lease, request)

    def forget(self, lease: Lease) -> None:
        """A lease goes back, or its Page is here."""
        self._sent.pop(id(lease), None)

    async def complete(self, page: Page) -> None:
        """Compare, archive and end a Page. A fault of ours leaves its row queued; many in a row stop the crawl."""
        self.forget(page.lease)
        try:
            await self._dedup.process_item(page)
            self._warc.process_item(page)
        except Exception:
            logger.exception("could not end %s", page.url)
            self._scheduler.put_back(page)
            cast("WebSpider", self._scheduler.crawler.spider).count_error()

    async def complete_lost(self) -> None:
        """End the leases whose request the engine let go without an answer: a middleware put another in its place."""
        slot: Any = getattr(self._scheduler.crawler.engine, "_slot", None)
        if slot is None or not self._sent:
            return
        waiting = self._scheduler.waiting()
        lost = [
            lease for lease, request in self._sent.values() if request not in slot.inprogress and request not in waiting
        ]
        for lease in lost:
            await self.complete(_replaced(lease))


def _replaced(lease: Lease) -> Page:
    page = page_by_middleware(lease, "a downloader middleware put another request in its place")
    if lease.embed is not None:
        lease.embed.answered(RuntimeError(page.error))
    return page
