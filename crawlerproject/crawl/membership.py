"""What differs between a crawl of one process and a worker of a fleet."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from crawlerproject.config.fleet import answer_seconds, shared
from crawlerproject.crawl.start.bootstrap import revisit_policy
from crawlerproject.fleet.held_partitions import LEAST_DOUBT_SECONDS
from crawlerproject.fleet.ip_reservations import IpReservations
from crawlerproject.fleet.join import join
from crawlerproject.fleet.shared_sums import SharedSums
from crawlerproject.fleet.text_questions import TextQuestions
from crawlerproject.frontier.assembly import pause_stretch
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.frontier.ownership import HostOwnership
from crawlerproject.rules.duplicates.permuted_tables import MAX_BITS
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.redis.buffer.store import BufferedStore
from crawlerproject.stores.redis.rounds import A_CRAWL, Wanted
from crawlerproject.stores.redis.texts import RedisTexts
from crawlerproject.stores.rocks.frontier_folder import open_frontier
from crawlerproject.stores.rocks.store import RocksStore

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.crawl.run import Run
    from crawlerproject.errors import FetchError
    from crawlerproject.fleet.revisit_round import RevisitRound
    from crawlerproject.fleet.worker import Fleet
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.learner import Kept
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.rules.url.urls import Address

logger = logging.getLogger(__name__)

Store = BufferedStore | RocksStore

# What a request may take beyond its timeout, as the loop's lag.
_HOLD_MARGIN_SECONDS = 5.0


class ReservationEnds(Protocol):
    """Is called with the answer to each reservation."""

    def granted(self, lease: Lease, error: FetchError | None) -> None:
        """The address is reserved for the lease."""

    def refused(self, lease: Lease, wait_seconds: float) -> None:
        """Another worker has the address; try again after this time."""


class Solo:
    """The only process of its crawl, with its frontier on its own disk."""

    alone = True

    def __init__(self, store: RocksStore) -> None:
        self.store: Store = store
        self.ownership: HostOwnership | None = None

    def take(self, found: Iterable[DiscoveredUrl], frontier: Frontier, now: float) -> int:
        """Queue what was found; how many were new. StorageError."""
        return frontier.add(found, now)

    def changed(self, pages: Iterable[tuple[Address, float]], frontier: Frontier, now: float) -> int:
        """Take word that known pages have changed; how many are believed. StorageError."""
        return frontier.changed(pages, now)

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Before a commit, what other workers wrote: nothing."""

    async def deliver(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Within a commit, what was found for others: nothing, since ``take`` has queued it."""

    def deliver_now(self, frontier: Frontier, now: float) -> None:
        """As ``deliver``."""

    def settle(self) -> None:
        """After a commit, what was read is done with: nothing."""

    async def turn(self, frontier: Frontier, learned: Kept, run: Run, idle: Callable[[], bool]) -> bool:
        """After a commit, whether hosts may have come from other workers."""
        return False

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

    def reservations(self, run: Run, ends: ReservationEnds) -> IpReservations | None:
        """The workbench has the clocks of all addresses."""
        return None

    def sums(self, run: Run) -> SharedSums | None:
        """What the crawl may spend this process may."""
        return None

    def texts(self, run: Run) -> TextQuestions | None:
        """The store has those of all hosts."""
        return None

    def close(self) -> None:
        """No other process waits for its hosts."""


class Member:
    """A worker of a fleet: a ``Fleet`` decides about the hosts of its partitions, in a frontier in Redis."""

    alone = False

    def __init__(self, fleet: Fleet, settings: BaseSettings, revisits: RevisitRound | None = None) -> None:
        """``fleet.begin`` has been called. ``revisits``: known pages are visited again."""
        self._settings = settings
        self.store: Store = fleet.store
        self.ownership: HostOwnership | None = fleet.held
        self._fleet = fleet
        self._revisits = revisits
        self._sums: SharedSums | None = None
        exchange, held = fleet.exchange, fleet.held
        self.read, self.deliver, self.deliver_now = exchange.read, exchange.deliver, exchange.deliver_now
        self.settle, self.reach, self.close = exchange.settle, fleet.reach, fleet.close
        self.may_ask, self.ask_until = held.may_ask, held.ask_until

    def take(self, found: Iterable[DiscoveredUrl], frontier: Frontier, now: float) -> int:
        """Keep what was found for the next commit, what is for this worker's own hosts as well."""
        self._fleet.exchange.outbox.extend(found)
        return 0

    def changed(self, pages: Iterable[tuple[Address, float]], frontier: Frontier, now: float) -> int:
        """As for ``Solo``; kept for the next commit, as what was found."""
        self._fleet.exchange.changed.extend(pages)
        return 0

    async def turn(self, frontier: Frontier, learned: Kept, run: Run, idle: Callable[[], bool]) -> bool:
        """As for ``Solo``; renew, report, give and take partitions. Raises LeaseLost."""
        fleet, done = self._fleet, run.tallies
        for how, count in fleet.store.links.filter.take_counts().items():
            run.stats.inc_value(f"links/{how}", count)
        fleet.counts = {"pages": done.pages, "bytes": done.bytes, "errors": done.errors}
        choosing = self._revisits is not None and await self._choose(self._revisits, frontier, run)
        await fleet.turn(frontier, learned, idle=idle() and not choosing)
        if self._sums is not None:
            await self._sums.turn(idle=idle() and not choosing)
        return True

    async def _choose(self, revisits: RevisitRound, frontier: Frontier, run: Run) -> bool:
        """Queue known pages that are visited again; whether there may be more of them."""
        choosing, queued = revisits.busy, revisits.queued
        await revisits.turn(frontier, run.now)
        run.stats.inc_value("recrawl/queued", revisits.queued - queued)
        if choosing and not revisits.busy:
            logger.info("%d known pages are visited again", revisits.queued)
        return choosing

    def finished(self, idle: Callable[[], bool]) -> bool:
        """As for ``Solo``: all workers have agreed on it."""
        return self._fleet.done

    def reservations(self, run: Run, ends: ReservationEnds) -> IpReservations | None:
        """With PACE_PER_IP no two workers send to an address at the same time."""
        settings = self._settings
        if not settings.getbool("PACE_PER_IP"):
            return None
        rest_seconds = pause_stretch(settings) * settings.getfloat("PACE_IP_SECONDS")
        return IpReservations(
            self._fleet,
            hold_seconds=answer_seconds(settings) + _HOLD_MARGIN_SECONDS,
            # Another worker's clock may be a little behind.
            rest_seconds=rest_seconds and rest_seconds + LEAST_DOUBT_SECONDS,
            granted=ends.granted,
            refused=ends.refused,
            failed=lambda error: run.pause(str(error)),
        )

    def sums(self, run: Run) -> SharedSums | None:
        """What the crawl may spend all workers share."""
        self._sums = SharedSums(self._fleet.share, run.pause)
        return self._sums

    def texts(self, run: Run) -> TextQuestions | None:
        """Texts of other workers' hosts are asked about, unless NEAR_DUPLICATE_MAX_PAGES is 0."""
        base = self._fleet.store.store
        most = self._settings.getint("NEAR_DUPLICATE_MAX_PAGES")
        if not most:
            return None
        return TextQuestions(RedisTexts(base.link, base.crawl, most), MAX_BITS, run.stats.inc_value)


Membership = Solo | Member
"""One process's place among those of its crawl."""


def membership_of(settings: BaseSettings, folder: CrawlDir, run: Run, wanted: Wanted = A_CRAWL) -> Membership:
    """Open the frontier's store, in a fleet as its member, whose clock ``run`` follows then. Raises OperatorError."""
    if not shared(settings):
        return Solo(open_frontier(folder))
    fleet = join(settings, folder)
    run.follow(fleet.begin())
    run.joined(fleet.running_seconds)
    current = fleet.begin_round(wanted, run.now(), run.round)
    run.round = current.number
    # The budget is the round's.
    revisits = fleet.revisits(current, revisit_policy(settings, None)) if wanted.recrawl else None
    return Member(fleet, settings, revisits)
