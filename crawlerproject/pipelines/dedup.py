"""Finds what a page repeats, before it is archived. No page is dropped for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from crawlerproject.errors import StorageError
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.items import Compared, FailedRender, FetchedPage
from crawlerproject.pipelines import NOT_FOR_SCRAPY
from crawlerproject.rules.archive.warc_records import payload_digest
from crawlerproject.runtime.loop_budget import LoopBudget
from crawlerproject.stores.protocols import Fingerprint

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from crawlerproject.frontier.learned.duplicates import Duplicate, DuplicateIndex
    from crawlerproject.items import LeaseResult, PageText
    from crawlerproject.rules.url.urls import Address
    from crawlerproject.runtime.services import Stats
    from crawlerproject.stores.poison import Poison
    from crawlerproject.stores.protocols import QueuedPage

_LINKS_AT_A_TIME = 5_000  # five milliseconds


class DedupPipeline:
    """Marks exact, declared (rel=canonical) and near duplicates; their links are followed later than others'."""

    def __init__(self, duplicates: DuplicateIndex, poison: Poison, stats: Stats) -> None:
        self._duplicates = duplicates
        self._poison = poison
        self._stats = stats
        self.line = LoopBudget()  # of pages that wait to be compared and archived

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Only a crawl makes one. Raises NotConfigured."""
        raise NotConfigured(NOT_FOR_SCRAPY)

    async def process_item(self, result: LeaseResult) -> LeaseResult:
        """Compare a page with what the crawl has. What follows at once is done in the same turn of the event loop.

        In a fleet a page that repeats none of this worker's waits for an answer about those of the others.
        """
        await self.line.room()
        outcome = result.outcome
        if isinstance(outcome, FailedRender) or outcome.text is None:
            return result
        with self._poison.reading(result.lease.row):
            payload = outcome.payload if isinstance(outcome, FetchedPage) else b""
            result.compared = self._compared(result.lease.row, payload, outcome.text)
        if self._duplicates.others is not None:
            await self._compare_elsewhere(result, outcome.text.canonical)
        self._note(result)
        if result.compared.duplicate is not None:
            await _queue_behind(result)
        return result

    def _compared(self, row: QueuedPage, payload: bytes, text: PageText) -> Compared:
        digest = payload_digest(payload) if payload else b""
        return Compared(digest, text.fingerprint, self._repeated(row, digest, text.canonical, text.fingerprint))

    def _repeated(
        self, row: QueuedPage, digest: bytes, canonical: Address | None, fingerprint: int | None
    ) -> Duplicate | None:
        """Another's payload, or nearly another's text: of the page that it names as canonical, if of that one's."""
        if digest and (exact := self._duplicates.exact(digest, row.url)) is not None:
            return exact
        if fingerprint is None:
            return None
        made = Fingerprint(row.host, fingerprint, row.page_key)
        try:
            named = self._duplicates.named(made, canonical) if canonical is not None else None
            return named or self._duplicates.near(made)
        except StorageError:
            return None  # a page that is not compared is archived like any other

    async def _compare_elsewhere(self, result: LeaseResult, canonical: Address | None) -> None:
        row, (_, fingerprint, found) = result.lease.row, result.compared
        if fingerprint is not None and found is None:
            made = Fingerprint(row.host, fingerprint, row.page_key)
            found = await self._duplicates.near_elsewhere(made, canonical)
            result.compared = result.compared._replace(duplicate=found)

    def _note(self, result: LeaseResult) -> None:
        notes, (_, fingerprint, found) = result.notes, result.compared
        if fingerprint is not None:
            notes.append(("simhash", f"{fingerprint:016x}"))
        if found is None:
            return
        notes.append(("duplicate", found.kind))
        notes.append(("duplicate-of", found.url))
        if found.kind != "exact":
            notes.append(("simhash-distance", str(found.bits)))
        self._stats.inc_value(f"duplicates/{found.kind}")


async def _queue_behind(result: LeaseResult) -> None:
    """Let a duplicate's links wait behind others; a hundred thousand of them take several turns of the event loop."""
    links, behind = result.found, list[DiscoveredUrl]()
    for start in range(0, len(links), _LINKS_AT_A_TIME):
        if start:
            await asyncio.sleep(0)
        behind += [link.behind() for link in links[start : start + _LINKS_AT_A_TIME]]
    result.found = behind
