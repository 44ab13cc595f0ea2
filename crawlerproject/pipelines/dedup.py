"""The first pipeline: says what a page repeats, before it is archived. Nothing is dropped for it.

A crawl calls it by itself (``crawl/completion/pipeline.py``); in ITEM_PIPELINES it lets items pass.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from crawlerproject.items import Page
from crawlerproject.rules.duplicates.simhash import text_fingerprint
from crawlerproject.runtime.loop_budget import LoopBudget

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from crawlerproject.crawl.scheduler import FrontierScheduler

_LINKS_AT_A_TIME = 5_000  # five milliseconds


class DedupPipeline:
    """Marks exact, declared (rel=canonical) and near duplicates; their links are followed later than others'."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._budget = LoopBudget()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Scrapy's way in."""
        return cls(crawler)

    async def process_item(self, item: Any) -> Any:
        """Compare a Page with what the crawl has; the first pipeline, so what follows is done in the same go."""
        await self._budget.room()
        if isinstance(item, Page) and item.text is not None:
            scheduler = cast("FrontierScheduler", self._crawler.engine.scheduler)
            with scheduler.crawl.poison.reading(item.lease.row):
                self._compare(scheduler, item, item.text)
            if item.duplicate is not None:
                await _queue_behind(item)
        return item

    def _compare(self, scheduler: FrontierScheduler, page: Page, text: bytes) -> None:
        if not page.fingerprinted:
            page.fingerprint = text_fingerprint(text)
        if page.fingerprint is not None:
            page.notes.append(("simhash", f"{page.fingerprint:016x}"))
        page.duplicate = found = scheduler.repeated(page)
        if found is None:
            return
        page.notes.append(("duplicate", found.kind))
        page.notes.append(("duplicate-of", found.url))
        if found.kind == "near":
            page.notes.append(("simhash-distance", str(found.bits)))
        self._crawler.stats.inc_value(f"duplicates/{found.kind}")


async def _queue_behind(page: Page) -> None:
    """Let the links of a page that repeats another wait behind others; a hundred thousand of them not in one go."""
    links, page.found = page.found, []
    for start in range(0, len(links), _LINKS_AT_A_TIME):
        if start:
            await asyncio.sleep(0)
        page.found += [link.behind() for link in links[start : start + _LINKS_AT_A_TIME]]
