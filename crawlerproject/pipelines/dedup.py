"""Finds what a page repeats, before it is archived. No page is dropped for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from hashlib import sha1
from typing import Self

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import ensure_awaitable

from crawlerproject.config.crawl_kind import is_of_frontier
from crawlerproject.errors import StorageError
from crawlerproject.frontier.learned.duplicates import DuplicateIndex
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.items import LeaseResult
from crawlerproject.runtime.services import Services, Stats, services_of
from crawlerproject.stores.protocols import Fingerprint

logger = logging.getLogger(__name__)
_LINKS_AT_A_TIME = 5_000  # five milliseconds


class DedupPipeline:
    """Marks exact, declared (rel=canonical) and near duplicates; their links are followed later than others'."""

    for_pages = True

    def __init__(self, services: Services, stats: Stats) -> None:
        self._services = services
        self._stats = stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """For a crawl by the frontier. Raises NotConfigured elsewhere."""
        if not is_of_frontier(crawler):
            raise NotConfigured
        assert crawler.stats is not None
        return cls(services_of(crawler), crawler.stats)

    def process_item(self, page: LeaseResult) -> LeaseResult | Awaitable[LeaseResult]:
        """Compare a page with what the crawl has: at once, as a rule.

        In a fleet a page that repeats none of this worker's waits for an answer about those of the others, and a
        duplicate with very many links takes several turns of the event loop.
        """
        duplicates = self._services[DuplicateIndex]
        if not page.digest and (payload := page.payload) and (page.is_text or duplicates.ahead is not None):
            page.digest = sha1(payload, usedforsecurity=False).digest()
            if duplicates.ahead is not None:
                return self._process_ahead(duplicates.ahead(page.digest), page)
        if not page.is_text:
            return page
        # Another's payload, or nearly another's text: of the canonical that it names, if of that one's.
        row = page.row
        page.duplicate = duplicates.exact(page.digest, row.url) if page.digest else None
        if page.duplicate is None and page.fingerprint is not None:
            made = Fingerprint(row.host, page.fingerprint, row.page_key if row.flags else row.key)
            try:
                named = duplicates.named(made, page.canonical) if page.canonical is not None else None
                page.duplicate = named or duplicates.near(made)
            except StorageError:  # a page that is not compared is archived like any other
                logger.debug("%s is not compared", row.url)
        if duplicates.others is not None or page.duplicate is not None:
            return self._process_later(duplicates, page)
        self._note(page)
        return page

    async def _process_ahead(self, ahead: Awaitable[None], page: LeaseResult) -> LeaseResult:
        await ahead
        return await ensure_awaitable(self.process_item(page))

    async def _process_later(self, duplicates: DuplicateIndex, page: LeaseResult) -> LeaseResult:
        if duplicates.others is not None and page.fingerprint is not None and page.duplicate is None:
            made = Fingerprint(page.row.host, page.fingerprint, page.row.page_key)
            page.duplicate = await duplicates.near_elsewhere(made, page.canonical)
        self._note(page)
        if page.duplicate is not None:
            await _queue_behind(page)
        return page

    def _note(self, page: LeaseResult) -> None:
        notes, found = page.notes, page.duplicate
        if page.fingerprint is not None:
            notes.append(("simhash", f"{page.fingerprint:016x}"))
        if found is None:
            return
        notes.append(("duplicate", found.kind))
        notes.append(("duplicate-of", found.url))
        if found.kind != "exact":
            notes.append(("simhash-distance", str(found.bits)))
        self._stats.inc_value(f"duplicates/{found.kind}")


async def _queue_behind(page: LeaseResult) -> None:
    """Let a duplicate's links wait behind others; a hundred thousand of them take several turns of the event loop."""
    links, behind = page.found, list[DiscoveredUrl]()
    for start in range(0, len(links), _LINKS_AT_A_TIME):
        if start:
            await asyncio.sleep(0)
        behind += [link.behind() for link in links[start : start + _LINKS_AT_A_TIME]]
    page.found = behind
