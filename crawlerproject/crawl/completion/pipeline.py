"""The steps that complete every Page. They are called directly: no setting and no item pipeline comes between."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from crawlerproject.crawl.completion.long_pages import MOST_AT_ONCE, LongPages
from crawlerproject.parse.response_page import page_by_middleware

if TYPE_CHECKING:
    from scrapy import Request

    from crawlerproject.crawl.completion.comparison import Comparison
    from crawlerproject.crawl.completion.pages import PageCompletion
    from crawlerproject.crawl.intake import Intake
    from crawlerproject.crawl.under_way import UnderWay
    from crawlerproject.items import Page
    from crawlerproject.stores.poison import Poison

logger = logging.getLogger(__name__)


class PagePipeline:
    """Takes one Page for every lease: compares it, queues its links, archives it and ends its lease."""

    def __init__(
        self,
        comparison: Comparison,
        intake: Intake,
        completion: PageCompletion,
        poison: Poison,
        under_way: UnderWay,
        count_error: Callable[[], None],
    ) -> None:
        """``count_error`` is called after each error of our own."""
        self._comparison = comparison
        self._intake = intake
        self._completion = completion
        self._poison = poison
        self._under_way = under_way
        self.count_error = count_error
        self.long = LongPages(self, intake)

    async def complete(self, page: Page) -> None:
        """Compare, archive and end a Page. An error of our own leaves its row queued; many in a row stop the crawl."""
        self._under_way.answered(page.lease)
        try:
            await self._comparison.compare(page)
            if not page.lease.ended:
                self._finish(page)
        except Exception:
            logger.exception("could not end %s", page.url)
            self.fail(page)

    def _finish(self, page: Page) -> None:
        """Queue a page's links, archive it and end its lease. A page with very many links ends later, by ``end``."""
        if self._intake.waits_for_store and len(page.found) + len(page.changed) > MOST_AT_ONCE:
            self.long.begin(page)
        else:
            if page.changed:
                self._intake.announced(page.changed)
            added = self._intake.queue(page.found)
            if added is None:
                self.long.hold(page)
            else:
                page.new_links = added
                self.end(page)
        if self._poison.suspects and page.wire is not None:
            self._poison.acquit(page.lease.row.key)

    def end(self, page: Page) -> None:
        """A page's links are queued: archive it and end its lease."""
        with self._poison.reading(page.lease.row):
            self._completion.finish(page)
        self._under_way.over(page.lease)

    def put_back(self, page: Page) -> None:
        """End the lease of a page that could not be completed; it will be tried again."""
        self._completion.put_back(page)
        self._under_way.over(page.lease)

    def fail(self, page: Page) -> None:
        """As ``put_back``, and count an error of our own."""
        self.put_back(page)
        self.count_error()

    async def complete_replaced(self, known: Container[Request]) -> None:
        """End the leases whose request left the engine without an answer: a middleware replaced it.

        ``known``: the requests that the engine has or will have.
        """
        for lease in self._under_way.unanswered(known):
            page = page_by_middleware(lease, "a downloader middleware put another request in its place")
            if lease.embed is not None:
                lease.embed.answered(RuntimeError(page.error))
            await self.complete(page)
