"""The operator's orders to a running crawl: pauses, stops, added seeds, checkpoints, limits of the crawl."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider

from crawlerproject.crawl.intake import MOST_AT_ONCE, visit_again
from crawlerproject.crawl.run import Run
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.crawl.session import Session
from crawlerproject.errors import StorageError
from crawlerproject.extensions.crawl_task import CrawlTask
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.hosts.host import HostState
from crawlerproject.frontier.known_seeds import KnownSeeds
from crawlerproject.frontier.passage import seed_found
from crawlerproject.rules.printable import listed
from crawlerproject.rules.url.scope import BadOption, Seeds, host_limits, seeds_of
from crawlerproject.rules.url.urls import Address
from crawlerproject.stores.backup.checkpoint_orders import Answer, Order, OrdersHere, Stage, remove_checkpoint
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.operator_files.control import Pauses
from crawlerproject.stores.protocols import Changes

logger = logging.getLogger(__name__)

_LEFT: dict[str, str] = {
    HostState.PAUSED: "Hosts that are paused: {hosts} (scrapy pause --list).",
    HostState.LIMITED: (
        "Hosts that have had as much as they may have: {hosts} (scrapy hosts); a higher limit lets them go on."
    ),
}
STOPPED = "stopped"
"""A crawl's ``finish_reason`` after ``scrapy stop``."""
# A look is two calls of the system: 20 µs.
_TICK_SECONDS = 0.5

_LOOK_SECONDS = 0.02

# How long what is in memory only may take to be written out before a checkpoint waits for it itself: 80 MB take about a
# second (stores/rocks/rocks_tables.py).
_MOST_LOOKS = 500


class Orders(CrawlTask):
    """Pauses and resumes, takes in seeds, makes checkpoints for backups; ends a crawl at a limit, or when asked to."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler, _TICK_SECONDS)
        self._stopping = False
        self._began = time.time()  # an earlier stop was for others
        self._backups: Backups | None = None  # from the first look on

    def spider_closed(self) -> None:
        """Orders from now on are the next start's. Logs what stays queued because of pauses and limits."""
        scheduler = self.scheduler
        for why, hosts in scheduler.crawl.session.frontier.hosts.held.items() if scheduler is not None else ():
            if hosts > 0:
                logger.info("%s Their URLs stay queued.", _LEFT[why].format(hosts=f"{hosts:,}"))
        self.engine_stopped()

    def spider_idle(self) -> None:
        """Seeds that were added a moment ago are taken in before a crawl ends without work."""
        scheduler = self.scheduler
        if scheduler is None or self._stopping or not scheduler.crawl.session.role.all_hosts:
            return
        if scheduler.crawl.control.added():
            raise DontCloseSpider

    async def tick(self, scheduler: FrontierScheduler) -> bool:
        """One look at limits, pauses, backups and added seeds."""
        try:
            await self._look(scheduler)
        except (StorageError, OSError) as error:  # they stay where they are until the next look
            logger.warning("Orders to the crawl wait: %s", error)
        return not self._stopping

    async def _look(self, scheduler: FrontierScheduler) -> None:
        crawl = scheduler.crawl
        if crawl.run.lost:
            return  # the session is about to be replaced, and looks for orders then
        if limit := crawl.session.limits.reached():
            self._stopping = True
            logger.info(
                "The crawl has had its %s: what is on its way ends, %s URLs stay queued for a start with a higher one.",
                limit,
                f"{max(0, crawl.session.frontier.hosts.waiting_urls):,}",
            )
            self.close_crawl(limit.partition("=")[0])
            return
        if (pauses := crawl.control.changed()) is not None:
            try:
                obey(crawl.session.frontier, crawl.run, pauses)
            except StorageError:
                crawl.control.look_again()
                raise
            scheduler.resume()
        if crawl.run.pauses.stopped_at > self._began:
            self._stopping = True
            logger.warning("The crawl ends: the operator says so. What is on its way ends first.")
            self.close_crawl(STOPPED)
            return
        if self._backups is None:
            self._backups = Backups(crawl.folder)
        if (order := self._backups.due(crawl.session)) is not None:
            async with crawl.committing:
                if crawl.run.closed:
                    return
                await self._backups.obey(order, crawl.session)
        if not crawl.session.frontier.hosts.loading:
            for spooled in crawl.control.added():
                async with crawl.committing:
                    if crawl.run.closed:
                        return
                    await take_in(crawl.session, spooled, crawl.run.now)
                scheduler.wake()


def obey(frontier: Frontier, run: Run, pauses: Pauses) -> None:
    """Pause and resume what changed. StorageError: call again."""
    before, hosts = run.pauses, pauses.hosts.keys()
    frontier.pause_hosts(pauses.hosts, run.now())
    run.pauses = pauses
    if new := hosts - before.hosts.keys():
        logger.warning("Paused by the operator: %s", listed(sorted(new)))
    if over := before.hosts.keys() - hosts:
        logger.warning("The operator lets go on: %s", listed(sorted(over)))
    if pauses.crawl and not before.crawl:
        logger.warning("The crawl pauses: by the operator, %s; what is on its way ends.", pauses.crawl)
    if before.crawl and not pauses.crawl:
        logger.warning("The crawl goes on: the operator says so.")


async def take_in(session: Session, spooled: Path, clock: Callable[[], float]) -> None:
    """Queue the seeds of one list, durably, then remove it. StorageError, OSError: it stays, and none is lost.

    No commit runs meanwhile: the store stays open, and messages to other workers go as with a commit. After a crash in
    between the list is read again: what was queued is known.
    """
    try:
        seeds = seeds_of(spooled.read_text("utf-8", errors="replace").splitlines())
    except BadOption as error:  # written by hand: the command checks what it writes
        logger.error("%s: %s; it is set aside", spooled, error)
        spooled.rename(spooled.with_suffix(".refused"))
        return
    new = _remember(session, seeds)
    found = [seed_found(address) for address in seeds.addresses]
    for first in range(0, len(found), MOST_AT_ONCE):
        some = found[first : first + MOST_AT_ONCE]
        for one in some:
            if (refusal := session.filters.refusal(one, clock())) is not None:
                logger.warning("The added seed %s is refused: %s", one.address.url, refusal)
        session.role.exchange.take(some, session.frontier, clock())
        await asyncio.sleep(0)
    if session.role.keeps_hosts:
        visit_again(session.frontier, new, clock())
    await asyncio.to_thread(session.store.sync)
    spooled.unlink(missing_ok=True)
    logger.info("Added from outside: %s, %d of them new", listed([seed.url for seed in seeds.addresses]), len(new))


def _remember(session: Session, seeds: Seeds) -> list[Address]:
    """Make added seeds the crawl's own, for its scope and for later starts; those that are new."""
    known = KnownSeeds(session.store)
    new = known.unknown(seeds.addresses)
    scope = session.filters.scope
    known.take(seeds.addresses, new, seeds.options, scope.mode)
    session.store.apply(Changes(facts=known.facts()))
    rules = known.rules()
    for rule in rules:
        scope.govern(rule)
    session.frontier.hosts.suspensions.of_hosts = dict(host_limits(rules))
    for address in new:
        if not scope.governs(address.host):
            scope.widen(address.host)
    return new


class Backups:
    """Orders of one process: ``due`` is called twice a second, ``obey`` carries out what it returns."""

    def __init__(self, folder: CrawlDir) -> None:
        self._folder = folder
        self._orders = OrdersHere(folder)
        self._answered: Order | None = None
        self._holds = ""  # number of the backup for which nothing is removed that others have acknowledged

    def due(self, session: Session) -> Order | None:
        """What was ordered and is not done yet; a hold whose backup is over ends."""
        order = self._orders.current()
        if self._holds and (order is None or order.number != self._holds):
            session.role.exchange.keeps_delivered = False
            self._holds = ""
        return None if order == self._answered else order

    async def obey(self, order: Order, session: Session) -> None:
        """Do it and answer. No commit runs meanwhile. The command reports what cannot be done. StorageError."""
        self._orders.answer(await self._done(order, session))
        self._answered = order

    async def _done(self, order: Order, session: Session) -> Answer:
        store = session.role.store
        if order.stage is Stage.HOLD:
            session.role.exchange.keeps_delivered = True
            self._holds = order.number
            return Answer(order.number, order.stage)
        if not session.role.all_hosts and self._holds != order.number:
            return Answer(order.number, order.stage, "it was started while the backup was made")
        try:
            remove_checkpoint(self._folder)
            store.write_out()
            for _ in range(_MOST_LOOKS):
                if not store.is_writing_out():
                    break
                await asyncio.sleep(_LOOK_SECONDS)
            store.checkpoint(self._folder.frontier_checkpoint)
        except StorageError as error:
            remove_checkpoint(self._folder)
            return Answer(order.number, order.stage, str(error))
        logger.info("A checkpoint of the frontier was made for a backup")
        return Answer(order.number, order.stage, closed=tuple(path.name for path in self._folder.closed_warcs()))
