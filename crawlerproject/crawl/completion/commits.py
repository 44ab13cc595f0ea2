"""A commit: the archive's bytes first, then one atomic change of the frontier."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from crawlerproject.errors import StorageError
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT, pack_open
from crawlerproject.stores.protocols import Changes

if TYPE_CHECKING:
    from crawlerproject.crawl.crawl import Crawl


class Commits:
    """Makes the ends of pages durable together: ``begin``, then the archive's ``sync``, then ``end``."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._max_bytes = crawl.crawler.settings.getint("WARC_MAX_BYTES")
        self.lock = asyncio.Lock()  # one in the loop and the last one never overlap

    def begin(self) -> tuple[Changes, list[tuple[str, bytes]]]:
        """What the next commit holds: all ends up to now, and the archive's length that covers them."""
        crawl = self._crawl
        crawl.archive.flush()
        state = crawl.archive.warc.state()
        facts = [(ARCHIVE_FACT, pack_open(state))] if state else []
        facts += crawl.learned.facts() + crawl.totals.facts()
        return crawl.frontier.state.take_changes(), facts

    def end(self, changes: Changes, facts: list[tuple[str, bytes]]) -> None:
        """Apply a commit whose archive bytes are durable by now."""
        crawl = self._crawl
        crawl.frontier.state.apply(changes, facts)
        crawl.duplicates.stored(changes)
        crawl.learned.stored()
        crawl.totals.stored(facts)
        if crawl.fleet is not None:
            crawl.fleet.exchange.settle()
        stats = crawl.crawler.stats
        assert stats is not None
        crawl.troubles.refused(crawl.frontier.state.refused.take_seeds())
        for reason, count in crawl.frontier.state.refused.take().items():
            stats.inc_value(f"refused/{reason}", count)

    def whole(self) -> None:
        """A whole commit at once, blocking."""
        crawl = self._crawl
        changes, facts = self.begin()
        try:
            crawl.archive.sync()
            if crawl.fleet is not None:
                crawl.fleet.exchange.deliver_now(crawl.frontier, crawl.now())
        except StorageError:
            crawl.frontier.state.take_back(changes)
            raise
        self.end(changes, facts)
        crawl.store.sync()

    def roll(self) -> None:
        """Close the open WARC when it is full; everything in it must be committed, so commit first."""
        warc = self._crawl.archive.warc
        state = warc.state()
        if state is not None and state.length >= self._max_bytes:
            self.whole()
            warc.roll_if_full()
