"""The only process of a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from crawlerproject.crawl.membership.types import Store
    from crawlerproject.crawl.run import Run
    from crawlerproject.fleet.ip_reservations import IpReservations, ReservationEnds
    from crawlerproject.fleet.shared_sums import SharedSums
    from crawlerproject.fleet.text_questions import TextQuestions
    from crawlerproject.frontier.discovered import DiscoveredUrl
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.models import CrawlModels
    from crawlerproject.frontier.messages import HubMessage
    from crawlerproject.frontier.ownership import HostOwnership
    from crawlerproject.rules.url.urls import Address
    from crawlerproject.stores.rocks.store import RocksStore


class Solo:
    """The only process of its crawl, with its frontier on its own disk."""

    own_frontier, all_hosts = True, True
    forsaken = ""

    def __init__(self, store: RocksStore) -> None:
        self._rocks = store
        self.store: Store = store
        self.own_store: RocksStore | None = store
        self.ownership: HostOwnership | None = None

    def stuck(self, frontier: Frontier, run: Run) -> None:
        """No commit could be made, so there was no ``turn``."""

    def take(self, found: Iterable[DiscoveredUrl], frontier: Frontier, now: float) -> int:
        """Queue what was found; how many were new. StorageError."""
        return frontier.add(found, now)

    def changed(self, pages: Iterable[tuple[Address, float]], frontier: Frontier, now: float) -> int:
        """Take word that known pages have changed; how many are believed. StorageError."""
        return frontier.announcements.changed(pages, now)

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Before a commit, what other workers wrote: nothing."""

    async def deliver(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Within a commit, what was found for others: nothing, since ``take`` has queued it."""

    def deliver_now(self, frontier: Frontier, now: float) -> None:
        """As ``deliver``."""

    def settle(self) -> None:
        """After a commit, what was read is done with: nothing."""

    def keep_delivered(self, *, keep: bool) -> None:
        """While a backup is made: no other process is written to."""

    async def turn(self, frontier: Frontier, models: CrawlModels, run: Run, idle: Callable[[], bool]) -> bool:
        """After a commit, whether hosts may have come from other workers."""
        return False

    def mend(self) -> None:
        """Before ``reach``, in the loop's own thread: have the store take changes again. StorageError."""
        self._rocks.mend()

    def reach(self) -> None:
        """Find out whether the disk takes more. Blocking; StorageError."""
        self.store.sync()

    def finished(self, idle: Callable[[], bool]) -> bool:
        """Whether nothing is left to do in the whole crawl."""
        return idle()

    def may_ask(self, host: str) -> bool:
        """Whether an answer will surely come before another worker may ask the host."""
        return True

    def ask_until(self, host: str) -> float | None:
        """Until when (seconds since boot) an answer must be complete: no lease runs out."""
        return None

    def part_of(self, budget: int | None) -> int | None:
        """How many of the known pages that are visited again this process chooses: all."""
        return budget

    def reservations(self, run: Run, ends: ReservationEnds) -> IpReservations | None:
        """The workbench has the clocks of all addresses."""
        return None

    def hubs(self) -> Callable[[HubMessage], None] | None:
        """How to write to the worker that hubs reach; None: they reach this process."""
        return None

    def sums(self, run: Run) -> SharedSums | None:
        """What the crawl may spend this process may."""
        return None

    def texts(self, run: Run) -> TextQuestions | None:
        """The store has those of all hosts."""
        return None

    def close(self) -> None:
        """No other process waits for its hosts."""
