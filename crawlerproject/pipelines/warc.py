"""The last of a page's pipelines: queues its links, then has it archived, logged and its lease ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from crawlerproject.crawl.intake import MOST_AT_ONCE, Intake, LongPages
from crawlerproject.pipelines.dedup import is_of_frontier
from crawlerproject.runtime.services import Services, services_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from crawlerproject.items import LeaseResult


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
        if intake.waits_for_store and len(found) + len(changed) + len(requisites) > MOST_AT_ONCE:
            long.begin(page)
            return page
        if changed:
            intake.announced(changed)
        added = intake.queue(found)
        if added is None or (requisites and intake.queue(requisites) is None):
            long.hold(page, links=added)
        else:
            page.new_links = added
            long.end(page)
        return page
