"""A worker of a fleet on one machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.config.crawl_kind import worker_name
from crawlerproject.crawl.roles.single_process import SingleProcess
from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.fleet.fleet_quotas import FleetQuotas
from crawlerproject.fleet.local.fleet_tables import Counts
from crawlerproject.fleet.local.local_mail import LocalExchange, LocalHosts, LocalMail
from crawlerproject.fleet.local.supervisor_link import RUNNING, SupervisorLink
from crawlerproject.frontier.frontier_state import unsure_until
from crawlerproject.frontier.known_seeds import widened_by
from crawlerproject.frontier.other_workers import HubMessage, ScopeWidened
from crawlerproject.rules.fleet_shares import partitions_wanted
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import read_plan
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT, open_frontier
from crawlerproject.stores.rocks.rocks_store import RocksStore

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.crawl.run import Run
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.models import CrawlModels


class LocalPlace(NamedTuple):
    """A worker's place in the plan."""

    rank: int  # how many workers come before it
    workers: int
    of_first: int  # a partition of the first of them
    of_others: tuple[int, ...] = ()  # one of each of the others


class LocalWorker(SingleProcess):
    """A worker of a fleet on one machine: hosts by the plan, a frontier on its own disk, a supervisor."""

    all_hosts = False

    def __init__(
        self,
        link: SupervisorLink,
        store: RocksStore,
        hosts: LocalHosts,
        mail: LocalMail,
        settings: BaseSettings,
        place: LocalPlace,
    ) -> None:
        self._exchange = LocalExchange(hosts, store.messages, mail)
        super().__init__(store, hosts, self._exchange, link, paced=settings.getbool("PACE_PER_IP"))
        self._place = place
        self._sharing: asyncio.Task[None] | None = None
        self._link = link
        self._hosts = hosts
        self._mail = mail
        self._began = False

    @property
    def forsaken(self) -> str:
        """Its supervisor has died, and with it the addresses that it reserves."""
        return self._link.broken

    async def read_messages(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """As of any worker; let the others know by which redirected seeds the scope has widened."""
        widened: list[ScopeWidened] = []
        if not self._began:
            await asyncio.to_thread(self.store.sync)  # what an earlier process of this worker left is posted, too
            self._began = True
            if (before := widened_by(self.store)) is not None:  # what a crash may have kept from being sent
                widened.append(before)
        widened += frontier.state.moved
        frontier.state.moved = []
        for each in widened:
            for partition in self._place.of_others:
                self._hosts.send_to(partition, each)
        await self._exchange.read(frontier, clock)

    async def after_commit(self, frontier: Frontier, models: CrawlModels, run: Run, idle: Callable[[], bool]) -> bool:
        """Post what is durable now, and report to the supervisor."""
        mail, exchange = self._mail, self._exchange
        exchange.settle()  # what was read may have changed nothing, so that there was no commit
        mail.turn()
        moved, exchange.moved = exchange.moved, False
        self._report(frontier, run, quiet=exchange.empty and mail.quiet and not moved and idle())
        if self._sums is not None:
            self._sums.durable()
            if self._sharing is None:  # else the answer to how much is spent is still to come
                self._sharing = asyncio.get_running_loop().create_task(self._share(self._sums, run, idle=idle()))
        return True

    async def _share(self, sums: FleetQuotas, run: Run, *, idle: bool) -> None:
        try:
            if not run.has_joined:
                running_seconds = await self._link.ask(RUNNING)
                run.joined(max(0.0, running_seconds - run.running_seconds))
            await sums.exchange(idle=idle)
        except StorageError:
            return  # the commit loop sees that the supervisor has exited
        finally:
            self._sharing = None

    def commit_failed(self, frontier: Frontier, run: Run) -> None:
        """The supervisor's status shows why this worker pauses."""
        self._report(frontier, run, quiet=False)

    def _report(self, frontier: Frontier, run: Run, *, quiet: bool) -> None:
        done, queued = run.tallies, max(0, frontier.hosts.waiting_urls)
        counts = Counts(done.pages, done.bytes, done.errors, queued, run.halted)
        self._link.report(self._mail.unread(), counts, quiet=quiet)

    def finished(self, idle: Callable[[], bool]) -> bool:
        """All workers have agreed on it."""
        return self._link.done

    def part_of(self, budget: int | None) -> int | None:
        """An equal part for each worker."""
        place = self._place
        return None if budget is None else partitions_wanted(budget, place.workers, place.rank)

    def hubs(self) -> Callable[[HubMessage], None] | None:
        """They reach the first worker of the plan."""
        if not self._place.rank:
            return None
        return partial(self._hosts.send_to, self._place.of_first)

    def close(self) -> None:
        """Let the supervisor know, too, that this process has ended in good order."""
        if self._sharing is not None:
            self._sharing.cancel()
        self._mail.close()
        self._link.close()


def join_local(settings: BaseSettings, folder: CrawlDir, run: Run) -> LocalWorker:
    """Open the frontier and the mailbox of this worker's place in the plan. Raises OperatorError."""
    crawl, name = CrawlDir(folder.parent), worker_name(settings)
    link = SupervisorLink(crawl.supervisor_socket, name)
    try:
        plan = read_plan(crawl)
        if plan is None or name not in plan.workers:
            raise OperatorError(f"{crawl.fleet_plan} has no {name}; the same scrapy fleet makes it again.")
        store = open_frontier(folder)
        try:
            unsure = unsure_until(store, run.now(), clean_start=store.fact(CLEAN_FACT) != b"0")
            of_first = min(plan.held(plan.workers[0]), default=0)
            held = (min(plan.held(other), default=None) for other in plan.workers if other != name)
            of_others = tuple(partition for partition in held if partition is not None)
            place = LocalPlace(plan.workers.index(name), len(plan.workers), of_first, of_others)
            mail = LocalMail(store, link.ask, plan)
            return LocalWorker(link, store, LocalHosts(plan, name, unsure), mail, settings, place)
        except BaseException:
            store.close()
            raise
    except BaseException:
        link.close()
        raise
