"""Ends every lease by our own steps: no setting, and no pipeline of a project, comes between.

A project's items go through ITEM_PIPELINES, in which no step of ours stands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from crawlerproject.crawl.completion.long_pages import MOST_AT_ONCE, LongPages
from crawlerproject.items import FailedFetch, FetchedPage, LeaseResult, failed
from crawlerproject.reasons import Reason

if TYPE_CHECKING:
    from scrapy import Request

    from crawlerproject.crawl.completion.pages import PageCompletion
    from crawlerproject.crawl.dispatch import UnderWay
    from crawlerproject.crawl.intake import Intake
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.pipelines.dedup import DedupPipeline
    from crawlerproject.stores.poison import Poison

logger = logging.getLogger(__name__)


class PagePipeline:
    """Takes one LeaseResult for every lease: compares the page, queues its links, archives it and ends the lease."""

    def __init__(
        self,
        dedup: DedupPipeline,
        intake: Intake,
        completion: PageCompletion,
        poison: Poison,
        under_way: UnderWay,
        count_error: Callable[[], None],
    ) -> None:
        """``count_error`` is called after each error of our own."""
        self._dedup = dedup
        self._intake = intake
        self._completion = completion
        self._poison = poison
        self._under_way = under_way
        self.count_error = count_error
        self.long = LongPages(self, intake)

    async def complete(self, result: LeaseResult) -> None:
        """Compare, archive and end a page. An error of our own leaves its row queued; many in a row stop the crawl."""
        self._under_way.answered(result.lease)
        try:
            await self._dedup.process_item(result)
            if not result.lease.ended:
                self._finish(result)
        except Exception:
            row = result.lease.row
            logger.exception("could not end %s", row.url, extra={"url": row.url, "host": row.host})
            self.fail(result.lease)

    def _finish(self, result: LeaseResult) -> None:
        """Queue a page's links, archive it and end its lease. A page with very many links ends later, by ``end``."""
        found, changed, outcome, requisites = result.found, result.changed, result.outcome, result.requisites
        if self._intake.waits_for_store and len(found) + len(changed) + len(requisites) > MOST_AT_ONCE:
            self.long.begin(result)
        else:
            if changed:
                self._intake.announced(changed)
            added = self._intake.queue(found)
            if added is None or (requisites and self._intake.queue(requisites) is None):
                self.long.hold(result, links=added)
            else:
                result.new_links = added
                self.end(result)
        if self._poison.suspects and isinstance(outcome, FetchedPage | FailedFetch) and outcome.wire is not None:
            self._poison.acquit(result.lease.row.key)

    def end(self, result: LeaseResult) -> None:
        """A page's links are queued: archive it and end its lease."""
        with self._poison.reading(result.lease.row):
            self._completion.finish(result)
        self._under_way.over(result.lease)

    def requeue(self, lease: Lease) -> None:
        """End a lease whose page could not be completed; it will be tried again."""
        self._completion.requeue(lease)
        self._under_way.over(lease)

    def fail(self, lease: Lease) -> None:
        """As ``requeue``, and count an error of our own."""
        self.requeue(lease)
        self.count_error()

    async def complete_replaced(self, known: Container[Request]) -> None:
        """End the leases whose request left the engine without an answer: a middleware replaced it.

        ``known``: the requests that the engine has or will have.
        """
        for lease in self._under_way.unanswered(known):
            outcome = failed(lease, Reason.MIDDLEWARE, "a downloader middleware put another request in its place")
            if lease.embed is not None:
                lease.embed.answered(RuntimeError(outcome.error))
            await self.complete(LeaseResult.of(lease, outcome))
