"""A worker of a fleet over Redis."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from crawlerproject.crawl.roles.single_process import Membership, SingleProcess
from crawlerproject.fleet.questions import ContentAhead, asked
from crawlerproject.frontier.known_seeds import HUBS_FACT, widened_by
from crawlerproject.frontier.learned.subscriptions import WEBSUB_FACT
from crawlerproject.frontier.other_workers import (
    HubMessage,
    ScopeWidened,
    pack_message,
    unpack_message,
)
from crawlerproject.rules.printable import counted, human_seconds
from crawlerproject.runtime.clock import since_boot
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.journals import LISTENER
from crawlerproject.stores.redis.texts import MOST_TEXTS

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.crawl.run import Run
    from crawlerproject.fleet.redis.fleet_worker import Fleet
    from crawlerproject.fleet.redis.revisit_round import RevisitRound
    from crawlerproject.fleet.text_questions import TextQuestions
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.models import CrawlModels


logger = logging.getLogger(__name__)

# Messages about hubs that are read before one commit.
_HUB_MESSAGES = 50


class RedisWorker(SingleProcess):
    """A worker of a fleet: a ``Fleet`` leases the partitions about whose hosts it decides."""

    keeps_hosts = all_hosts = False

    def __init__(self, fleet: Fleet, settings: BaseSettings, revisits: RevisitRound | None = None) -> None:
        """``fleet.begin`` has been called. ``revisits``: known pages are visited again."""
        paced = settings.getbool("PACE_PER_IP")
        super().__init__(fleet.store, fleet.held, fleet.exchange, fleet.coordinator, paced=paced)
        self._settings = settings
        self._fleet = fleet
        self._revisits = revisits
        self._is_listener = False  # hubs reach this worker
        self._unacknowledged = 0  # messages to the one that they reach, whose effects may not be committed yet
        self._scope_messages = 0  # messages to all workers about seeds, those that are known here
        self._in_order = since_boot()  # when leases and report were last as they should be
        self._scope_announced = False  # the others know what had widened the scope here before this start

    async def read_messages(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """What other workers wrote about hosts of this one, and about hubs to the one that these reach."""
        fleet, listens = self._fleet.fleet, self._is_listener and not self._unacknowledged
        ways = asked(fleet.moved, self._scope_messages), asked(fleet.to_listener, _HUB_MESSAGES if listens else 0)
        moved, heard, _ = await asyncio.gather(*ways, self._fleet.exchange.ask())
        await self._widen_scope(moved, frontier, clock())
        await self._fleet.exchange.read(frontier, clock)
        if listens:
            for message in heard:
                frontier.read(unpack_message(message), clock())
            self._unacknowledged = len(heard)

    async def _widen_scope(self, said: Sequence[bytes], frontier: Frontier, now: float) -> None:
        """Widen the scope as others have; tell them what has widened it here, also before a crash. StorageError."""
        fleet, hosts, moves = self._fleet.fleet, set[str](), set[tuple[str, str]]()
        for message in map(unpack_message, said):
            frontier.read(message, now)
            if isinstance(message, ScopeWidened):
                hosts.update(message.hosts)
                moves.update(message.moves)
        self._scope_messages += len(said)
        own = frontier.state.moved
        if not self._scope_announced and (kept := await asyncio.to_thread(widened_by, self.store)) is not None:
            own = [
                *own,
                ScopeWidened(sorted({*kept.hosts} - hosts), [move for move in kept.moves if move not in moves]),
            ]
        if packed := [pack_message(each) for each in own if any(each)]:
            await asyncio.to_thread(fleet.announce_scope, packed)
        self._scope_announced = True
        frontier.state.moved = []

    def hubs(self) -> Callable[[HubMessage], None] | None:
        """They reach the listener that the workers have chosen, which takes over what the one before it had."""
        fleet = self._fleet.fleet
        listener, before = fleet.listener()
        self._is_listener = listener == fleet.worker
        if not self._is_listener:
            logger.info("Hubs push to the worker %s, which does what they say for all workers.", listener)
            return partial(self._fleet.held.send_to, LISTENER)
        if before and before != fleet.worker:
            self.store.apply(Changes(facts=fleet.facts_of(before, [WEBSUB_FACT, HUBS_FACT])))
        return None

    async def after_commit(self, frontier: Frontier, models: CrawlModels, run: Run, idle: Callable[[], bool]) -> bool:
        """Renew the leases of partitions, report, give and take partitions. Raises LeaseLost."""
        fleet, done = self._fleet, run.tallies
        choosing = self._revisits is not None and await self._choose(self._revisits, frontier, run)
        counts = {"pages": done.pages, "bytes": done.bytes, "errors": done.errors}
        idles = idle() and not choosing
        await fleet.turn(frontier, models, idle=idles, counts=counts, paused=run.halted)
        self._in_order = since_boot()
        if self._sums is not None:
            await self._sums.turn(idle=idle() and not choosing)
        if self._unacknowledged:
            await asyncio.to_thread(fleet.fleet.listener_read, self._unacknowledged)
            self._unacknowledged = 0
        return True

    async def _choose(self, revisits: RevisitRound, frontier: Frontier, run: Run) -> bool:
        """Queue known pages that are visited again; whether there may be more of them."""
        choosing, queued = revisits.busy, revisits.queued
        await revisits.turn(frontier, run.now)
        run.stats.inc_value("recrawl/queued", revisits.queued - queued)
        if choosing and not revisits.busy:
            logger.info("%s visited again", counted(revisits.queued, "known page is", "known pages are"))
        return choosing

    def membership(self, run: Run) -> Membership:
        """Its leases are renewed, and Redis answers."""
        held, crawl = self._fleet.held.all(), self._fleet.fleet.crawl
        silent_seconds = since_boot() - self._in_order
        absent = run.lost or run.paused
        if not absent and silent_seconds > self._fleet.fleet.lease_ms / 1000:
            absent = f"its leases were not renewed for {human_seconds(silent_seconds)}"
        return Membership(absent, crawl, len(held), self._fleet.leases.partitions)

    def check_store(self) -> None:
        self._fleet.reach()

    def close(self) -> None:
        self._fleet.close()

    def finished(self, idle: Callable[[], bool]) -> bool:
        """All workers have agreed on it."""
        return self._fleet.done

    def content_ahead(self) -> ContentAhead:
        """Redis has what other workers know."""
        return ContentAhead(self._fleet.store.fetch_originals)

    def texts(self, run: Run) -> TextQuestions | None:
        """Redis has the texts of all, unless NEAR_DUPLICATE_MAX_PAGES is 0."""
        return super().texts(run) if self._settings.getint("NEAR_DUPLICATE_MAX_PAGES", MOST_TEXTS) else None
