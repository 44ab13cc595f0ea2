"""A commit: the archive's bytes first, then one atomic change of the frontier."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from crawlerproject.crawl.figures import FailureReporter
from crawlerproject.crawl.page_completion import PageCompletion
from crawlerproject.crawl.roles.single_process import SingleProcess
from crawlerproject.crawl.run import Run
from crawlerproject.errors import StorageError
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.learned.models import CrawlModels, Facts
from crawlerproject.stores.archive.archive import Archive
from crawlerproject.stores.protocols import ARCHIVE_FACT, Changes, pack_open


class Commits:
    """Makes the ends of pages durable together: ``prepare``, then the archive's ``warc.sync``, then ``apply``."""

    def __init__(
        self,
        frontier: Frontier,
        archive: Archive,
        pages: PageCompletion,
        models: CrawlModels,
        role: SingleProcess,
        reporter: FailureReporter,
        run: Run,
    ) -> None:
        self._frontier = frontier
        self._archive = archive
        self._pages = pages
        self._models = models
        self._role = role
        self._reporter = reporter
        self._run = run
        self._waiting: list[asyncio.Future[bool]] = []

    def durable(self) -> asyncio.Future[bool]:
        """Until all that was taken in so far is durable; False when it never will be, since other workers have it."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return waiting

    def discard_uncommitted(self) -> None:
        """What is not committed is lost."""
        waiting, self._waiting = self._waiting, []
        self._answer(waiting, durable=False)

    async def commit(self, idle: Callable[[], bool]) -> bool:
        """One commit, its disk and network in threads; whether hosts may have come with it.

        ``idle``: whether this process has nothing to do. Raises StorageError, after which it may be called again.
        """
        frontier, role, run = self._frontier, self._role, self._run
        await role.read_messages(frontier, run.now)
        if run.lost:
            return False
        changes, facts = self.prepare()
        if role.keeps_hosts and not (changes or frontier.state.refused.counts or self._waiting):
            return await role.after_commit(frontier, self._models, run, idle)
        began = run.now()
        if not await self._make_durable(changes, facts):
            return False
        run.tallies.commits.add(run.now() - began)
        if self._archive.warc.full and not await self._roll():
            return False
        return await role.after_commit(frontier, self._models, run, idle)

    async def _roll(self) -> bool:
        """Close the full WARC file, its disk and network in threads; False when others have the hosts meanwhile.

        A file is closed only when all in it is committed, and pages have ended during the commit before. So there is
        another commit, during which ends of pages wait; they are written to the next file.
        """
        self._pages.hold()
        try:
            if not await self._make_durable(*self.prepare()):
                return False
            await asyncio.to_thread(self._archive.warc.roll_if_full)
            if self._pages.unwritten:
                await asyncio.to_thread(self._archive.warc.begin_file)
        finally:
            await self._pages.release()
        return not self._run.lost

    async def _make_durable(self, changes: Changes, facts: Facts) -> bool:
        """Whether it is; not when others have the hosts meanwhile."""
        frontier, role, run = self._frontier, self._role, self._run
        waiting, self._waiting = self._waiting, []
        try:
            try:
                await asyncio.to_thread(self._archive.warc.sync)
            except StorageError:
                frontier.state.take_back(changes)
                raise
            if not run.lost:  # else, meanwhile: some state of a host may be half of what it is to be
                self.apply(changes, facts)
                await asyncio.to_thread(role.store.sync)
        except Exception:
            self._waiting = waiting + self._waiting
            raise
        self._answer(waiting, durable=not run.lost)
        return not run.lost

    def prepare(self) -> tuple[Changes, Facts]:
        """What the next commit holds: all ends up to now, and the archive's length that covers them."""
        self._archive.flush()
        state = self._archive.warc.state()
        facts = [(ARCHIVE_FACT, pack_open(state))] if state else []
        return self._frontier.state.take_changes(), facts + self._models.facts()

    def apply(self, changes: Changes, facts: Facts) -> None:
        """Apply a commit whose archive bytes are durable by now."""
        frontier = self._frontier
        frontier.state.apply(changes, facts)
        self._models.stored(changes, facts)
        self._role.exchange.settle()
        if seeds := frontier.state.refused.take_seeds():
            self._reporter.refused(seeds)
        for reason, count in frontier.state.refused.take().items():
            self._run.stats.inc_value(f"refused/{reason}", count)
        if announced := frontier.state.announced:
            frontier.state.announced = 0
            self._run.stats.inc_value("recrawl/announced", announced)

    def commit_blocking(self) -> None:
        """A whole commit at once, blocking."""
        changes, facts = self.prepare()
        try:
            self._archive.warc.sync()
        except StorageError:
            self._frontier.state.take_back(changes)
            raise
        self.apply(changes, facts)
        self._role.store.sync()
        waiting, self._waiting = self._waiting, []
        self._answer(waiting, durable=True)

    def _answer(self, waiting: list[asyncio.Future[bool]], *, durable: bool) -> None:
        for each in waiting:
            if not each.done():  # who asked may have gone
                each.set_result(durable)
