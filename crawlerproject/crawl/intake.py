"""What enters a running crawl: a page's links, seeds, and announcements of changed pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from crawlerproject.errors import StorageError
from crawlerproject.frontier.discovered import DiscoveredUrl, seed_found
from crawlerproject.frontier.learned.revisit_queue import seed_again

if TYPE_CHECKING:
    from crawlerproject.crawl.run import Run
    from crawlerproject.crawl.session import Session
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.rules.url.urls import Address


def visit_again(frontier: Frontier, seeds: Iterable[Address], now: float) -> int:
    """Queue pages that are known once more, since the operator names them as seeds; how many. StorageError.

    In a fleet over Redis those of other workers' hosts are not found here.
    """
    store = frontier.state.store
    known = [(seed, record) for seed in seeds if (record := store.page(seed.key, seed.host)) is not None]
    return frontier.again([seed_again(seed, record, now) for seed, record in known], now)


class Intake:
    """Queues what the spider, the pages and the hubs name. The crawl pauses when the store has no room."""

    def __init__(self, session: Session, run: Run, wake: Callable[[], None]) -> None:
        """``wake``: there may be work."""
        self._member = session.member
        self._frontier = session.frontier
        self._troubles = session.troubles
        self._resumed = session.resumed
        self._run = run
        self.wake = wake

    @property
    def paused(self) -> str:
        """Why the store takes nothing; "" while it does."""
        return self._run.paused

    @property
    def waits_for_store(self) -> bool:
        """Whether to queue a URL takes time, since its host and its key are looked up at once."""
        return self._member.own_frontier

    def add(self, found: Iterable[DiscoveredUrl]) -> int:
        """Queue the links of one page as one batch; how many were new (in a fleet none yet)."""
        return self.queue(found) or 0

    def queue(self, found: Iterable[DiscoveredUrl]) -> int | None:
        """As ``add``; None when the store has no room: the crawl pauses, and they are queued when that is over."""
        try:
            return self._member.take(found, self._frontier, self._run.now())
        except StorageError as error:
            self._run.pause(str(error))
            return None

    def add_seeds(self, seeds: Sequence[Address], *, known_too: bool = False) -> None:
        """Queue the operator's seeds; ``known_too``: those that no earlier start had also when their pages are known.

        A crawl that ends as it begins ignores them.
        """
        if self._run.closed:
            return
        queued = self.add([seed_found(address) for address in seeds])
        if known_too and queued < len(seeds) and self._member.own_frontier and not self._run.paused:
            visit_again(self._frontier, filter(self._resumed.is_new, seeds), self._run.now())
        self._troubles.refused(self._frontier.state.refused.take_seeds())
        self.wake()

    def changed(self, pages: Iterable[tuple[Address, float]]) -> int:
        """Known pages are announced to have changed at these moments; how many are believed (in a fleet none yet).

        StorageError.
        """
        return self._member.changed(pages, self._frontier, self._run.now())

    def announced(self, pages: Iterable[tuple[Address, float]]) -> None:
        """As ``changed``, announced by a list: a pause where the store has no room."""
        try:
            self.changed(pages)
        except StorageError as error:  # repeated when the list is read again
            self._run.pause(str(error))
