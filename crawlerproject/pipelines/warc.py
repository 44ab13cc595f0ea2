"""Scrapy's ITEM_PROCESSOR, and the last of a page's pipelines: queued links, then archive, log and the lease's end.

Items go through the project's pipelines, the pages of a crawl through ours; ``ITEM_PIPELINES`` lists both. Whatever a
project's settings say, a page is compared first and archived last.
"""

from __future__ import annotations

import logging
from typing import Any, Self

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.pipelines import ItemPipelineManager
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.misc import build_from_crawler

from crawlerproject.config.crawl_kind import is_of_frontier
from crawlerproject.crawl.dispatch import InFlight
from crawlerproject.crawl.intake import MOST_AT_ONCE, Intake, LongPages
from crawlerproject.items import LeaseResult
from crawlerproject.pipelines.dedup import DedupPipeline
from crawlerproject.runtime.services import Services, services_of
from crawlerproject.stores.poison import Poison

logger = logging.getLogger(__name__)


class WarcPipeline:
    """Ends pages. One with very many links ends later, when ``LongPages`` has queued them."""

    for_pages = True

    def __init__(self, services: Services) -> None:
        self._services = services

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """For a crawl by the frontier. Raises NotConfigured elsewhere."""
        if not is_of_frontier(crawler):
            raise NotConfigured
        return cls(services_of(crawler))

    def process_item(self, page: LeaseResult) -> LeaseResult:
        """Queue a page's links, archive it and end its lease."""
        intake, long = self._services[Intake], self._services[LongPages]
        found, changed, requisites = page.found, page.changed, page.requisites
        if len(found) + len(changed) + len(requisites) > MOST_AT_ONCE:
            long.begin(page)
            return page
        if changed:
            intake.announced(changed)
        added = intake.queue(found) if found else 0
        if added is None or (requisites and intake.queue(requisites) is None):
            long.hold(page, links=added)
        else:
            page.new_links = added
            long.end(page)
        return page


_OURS = (DedupPipeline, WarcPipeline)


class PageProcessor(ItemPipelineManager):
    """Ends every lease by one call of ``process_item_async`` with its result.

    A pipeline with ``for_pages = True`` gets the pages of the crawl, between ours, and no items.
    """

    def __init__(self, *pipelines: Any, crawler: Crawler) -> None:
        self._for_pages: list[Any] = []  # the project's
        super().__init__(*pipelines, crawler=crawler)
        self._services = services_of(crawler)
        self._dedup, self._warc = [_the_one(kind, pipelines, crawler) for kind in _OURS]

    def _add_middleware(self, mw: Any) -> None:
        super()._add_middleware(mw)
        if getattr(mw, "for_pages", False):
            self.methods["process_item"].pop()
            if not isinstance(mw, _OURS):
                self._for_pages.append(mw)

    async def process_item_async(self, item: Any) -> Any:
        """Scrapy's, for a project's items. A page has ended when this returns, or waits for what its end needs."""
        if not isinstance(item, LeaseResult):
            return await super().process_item_async(item)
        services, lease = self._services, item.lease
        in_flight, poison = services[InFlight], services[Poison]
        in_flight.answered(lease)
        line = in_flight.line
        try:
            if line.waiting or line.over():
                await line.room()
            with poison.reading(lease.row):  # mostly all of it, in one go
                compared = self._dedup.process_item(item)
                if compared is item and not self._for_pages:
                    if not lease.ended:
                        self._warc.process_item(item)
                    return item
            if compared is not item:
                await compared
            if self._for_pages:
                await self._show(item)
            if not lease.ended:
                with poison.reading(lease.row):
                    self._warc.process_item(item)
        except Exception:  # an error of our own leaves the row queued; many in a row stop the crawl
            row = lease.row
            logger.exception("could not end %s", row.url, extra={"url": row.url, "host": row.host})
            services[LongPages].fail(lease)
        return item

    async def _show(self, page: LeaseResult) -> None:
        """A project's pipelines may add to a page's ``notes``; the page is archived whatever they do."""
        for pipeline in self._for_pages:
            process = pipeline.process_item
            given = (page, self._spider) if process in self._mw_methods_requiring_spider else (page,)
            try:
                await ensure_awaitable(process(*given))
            except Exception:
                known = {"url": page.lease.row.url, "host": page.lease.row.host}
                name = type(pipeline).__name__
                logger.exception("%s failed on %s; it is archived all the same", name, page.lease.row.url, extra=known)


def _the_one(kind: type[Any], pipelines: tuple[Any, ...], crawler: Crawler) -> Any:
    """Scrapy's instance, or one of our own where a project's settings leave it out; None outside a crawl."""
    for pipeline in pipelines:
        if type(pipeline) is kind:
            return pipeline
    try:
        return build_from_crawler(kind, crawler)
    except NotConfigured:
        return None
