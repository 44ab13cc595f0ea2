"""Finds what a page repeats, before it is archived. No page is dropped for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from crawlerproject.errors import StorageError
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.rules.archive.warc_records import payload_digest
from crawlerproject.rules.duplicates.simhash import text_fingerprint
from crawlerproject.runtime.loop_budget import LoopBudget
from crawlerproject.stores.protocols import Fingerprint

if TYPE_CHECKING:
    from crawlerproject.crawl.run import Stats
    from crawlerproject.frontier.learned.duplicates import DuplicateIndex
    from crawlerproject.items import Page
    from crawlerproject.stores.poison import Poison

_LINKS_AT_A_TIME = 5_000  # five milliseconds


class Comparison:
    """Marks exact, declared (rel=canonical) and near duplicates; their links are followed later than others'."""

    def __init__(self, duplicates: DuplicateIndex, poison: Poison, stats: Stats) -> None:
        self._duplicates = duplicates
        self._poison = poison
        self._stats = stats
        self._budget = LoopBudget()

    async def compare(self, page: Page) -> None:
        """Compare a page with what the crawl has. What follows at once is done in the same turn of the event loop."""
        await self._budget.room()
        if page.text is None:
            return
        with self._poison.reading(page.lease.row):
            self._mark(page, page.text)
        if page.duplicate is not None:
            await _queue_behind(page)

    def _mark(self, page: Page, text: bytes) -> None:
        if not page.fingerprinted:
            page.fingerprint = text_fingerprint(text)
        if page.fingerprint is not None:
            page.notes.append(("simhash", f"{page.fingerprint:016x}"))
        page.duplicate = found = self._repeated(page)
        if found is None:
            return
        page.notes.append(("duplicate", found.kind))
        page.notes.append(("duplicate-of", found.url))
        if found.kind == "near":
            page.notes.append(("simhash-distance", str(found.bits)))
        self._stats.inc_value(f"duplicates/{found.kind}")

    def _repeated(self, page: Page) -> Duplicate | None:
        """Another's payload, what the page names as canonical, or nearly another's text."""
        row = page.lease.row
        if page.payload:
            page.digest = payload_digest(page.payload)
            exact = self._duplicates.exact(page.digest, page.url)
            if exact is not None:
                return exact
        if page.canonical is not None and page.canonical.key != row.page_key:
            return Duplicate("canonical", page.canonical.url)
        if page.fingerprint is None:
            return None
        try:
            return self._duplicates.near(Fingerprint(row.host, page.fingerprint, row.page_key))
        except StorageError:
            return None  # a page that is not compared is archived like any other


async def _queue_behind(page: Page) -> None:
    """Let a duplicate's links wait behind others; a hundred thousand of them take several turns of the event loop."""
    links, page.found = page.found, []
    for start in range(0, len(links), _LINKS_AT_A_TIME):
        if start:
            await asyncio.sleep(0)
        page.found += [link.behind() for link in links[start : start + _LINKS_AT_A_TIME]]
