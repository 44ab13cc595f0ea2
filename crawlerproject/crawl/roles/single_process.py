"""The role of a crawl's only process, from which those of a fleet's workers derive; which role settings ask for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.config.crawl_kind import local, shared
from crawlerproject.errors import StorageError, StoreForgot
from crawlerproject.fleet.fleet_quotas import FleetQuotas
from crawlerproject.frontier.assembly import revisit_policy
from crawlerproject.frontier.frontier_state import Exchange, HostOwnership
from crawlerproject.rules.text_likeness import MAX_BITS
from crawlerproject.stores.crawl_folders import refuse_part
from crawlerproject.stores.protocols import A_CRAWL, RoundOptions
from crawlerproject.stores.rocks.frontier_folder import open_frontier
from crawlerproject.stores.rocks.rocks_store import RocksStore

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.crawl.run import Run
    from crawlerproject.fleet.questions import Coordinator, IpReservations, ReservationEnds
    from crawlerproject.fleet.text_questions import TextQuestions
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.duplicates import Ahead
    from crawlerproject.frontier.learned.models import CrawlModels
    from crawlerproject.frontier.other_workers import HubMessage
    from crawlerproject.stores.crawl_dir import CrawlDir


class Membership(NamedTuple):
    """A process's place among those of its crawl."""

    absent: str  # why it has none at this moment, in words; "" while it has
    crawl: str = ""  # the name of the fleet's crawl; "": its frontier is on its own disk
    held: int = 0  # partitions
    partitions: int = 0  # of the crawl


class SingleProcess:
    """The only process of its crawl, with its frontier on its own disk. Workers of fleets override what differs."""

    keeps_hosts = all_hosts = True

    def __init__(
        self,
        store: RocksStore,
        ownership: HostOwnership | None = None,
        exchange: Exchange | None = None,
        coordinator: Coordinator | None = None,
        *,
        paced: bool = False,
    ) -> None:
        """``ownership``: which hosts are this process's; None: all. ``exchange``: how links reach those of others.

        ``coordinator``: of a fleet; ``paced``: its workers take turns at IP addresses.
        """
        self.store = store
        self.ownership = ownership
        self.exchange = exchange or Exchange()
        self._coordinator = coordinator
        self._paced = paced
        self._sums: FleetQuotas | None = None

    @property
    def forsaken(self) -> str:
        """Why this process must end although the crawl is not done; "" while it need not."""
        return ""

    def membership(self, run: Run) -> Membership:
        """Whether it is where it belongs: at work, or paused by the operator alone."""
        return Membership(self.forsaken or run.lost or run.paused)

    # --- commits --------------------------------------------------------------------------------

    async def read_messages(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Before a commit begins: what other workers wrote takes effect in it."""

    async def after_commit(self, frontier: Frontier, models: CrawlModels, run: Run, idle: Callable[[], bool]) -> bool:
        """Do and report what follows from a commit; whether hosts may have come from other workers."""
        return False

    def commit_failed(self, frontier: Frontier, run: Run) -> None:
        """No commit could be made, so ``after_commit`` was not called."""

    # --- the store ------------------------------------------------------------------------------

    def reopen_store(self) -> None:
        """Before ``check_store``, in the loop's own thread: have the store take changes again. StorageError."""
        self.store.mend()

    def check_store(self) -> None:
        """Find out whether the store takes more. Blocking; StorageError."""
        self.store.sync()

    def close(self) -> None:
        """Take and send nothing more; other workers may have the hosts."""

    # --- what the workers of a fleet share ------------------------------------------------------

    def finished(self, idle: Callable[[], bool]) -> bool:
        """Whether nothing is left to do in the whole crawl."""
        return idle()

    def part_of(self, budget: int | None) -> int | None:
        """How many of the known pages that are visited again this process chooses."""
        return budget

    def reservations(self, run: Run, ends: ReservationEnds) -> IpReservations | None:
        """With PACE_PER_IP no two workers send to an address at a time; None: the workbench has all clocks."""
        if self._coordinator is None or not self._paced:
            return None
        from crawlerproject.fleet.questions import IpReservations

        return IpReservations(self._coordinator.reserve, ends, partial(self._unanswered, run))

    def _unanswered(self, run: Run, error: StorageError) -> None:
        """The coordinator was asked in vain. What it has forgotten, or its death, ends the crawl with a commit."""
        if not (self.forsaken or isinstance(error, StoreForgot)):
            run.pause(str(error))

    def hubs(self) -> Callable[[HubMessage], None] | None:
        """How to write to the worker that hubs reach; None: they reach this process. Blocking; StorageError."""
        return None

    def sums(self, run: Run) -> FleetQuotas | None:
        """What all workers may spend together; None: this process may spend it alone."""
        if self._coordinator is not None:
            self._sums = FleetQuotas(self._coordinator.shares, partial(self._unanswered, run))
        return self._sums

    def texts(self, run: Run) -> TextQuestions | None:
        """Asks about texts of other workers' hosts; None: the store has those of all hosts, or none is compared."""
        if self._coordinator is None:
            return None
        from crawlerproject.fleet.text_questions import TextQuestions

        return TextQuestions(self.store, self._coordinator.texts, MAX_BITS, run.stats.inc_value)

    def content_ahead(self) -> Ahead | None:
        """Fetches what a page is compared with; None: the store has it at hand."""
        return None


def role_of(settings: BaseSettings, folder: CrawlDir, run: Run, wanted: RoundOptions = A_CRAWL) -> SingleProcess:
    """Open the frontier's store, in a fleet as its worker, whose clock ``run`` follows then. Raises OperatorError."""
    # A fleet's parts are imported by a fleet's workers only: the start of a crawl of one process is for nothing else.
    if local(settings):
        from crawlerproject.crawl.roles.local_role import join_local

        return join_local(settings, folder, run)
    if not shared(settings):
        refuse_part(folder)
        return SingleProcess(open_frontier(folder))
    from crawlerproject.crawl.roles.redis_role import RedisWorker
    from crawlerproject.fleet.redis.fleet_worker import join

    fleet = join(settings, folder, accept_loss=wanted.accept_loss)
    run.follow(fleet.begin())
    run.joined(fleet.running_seconds)
    current = fleet.begin_round(wanted, run.now(), run.round)
    run.round = current.number
    # The budget is the round's.
    revisits = fleet.revisits(current, revisit_policy(settings, None)) if wanted.recrawl else None
    return RedisWorker(fleet, settings, revisits)
