"""Brings a crawl from any number of workers on one machine to any other, while none of them runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from crawlerproject.errors import FrontierDamaged, OperatorError, StorageError
from crawlerproject.fleet.repartition import fact_rules, journal
from crawlerproject.fleet.repartition.journal import Journal, Phase, PlanChange
from crawlerproject.fleet.repartition.partition_copying import (
    Say,
    close_archive,
    copy_others,
    list_hosts,
    refuse_without_room,
    rows_of,
    tidy_lists,
    with_progress,
)
from crawlerproject.stores.atomic_files import storage_errors, sync_path
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock
from crawlerproject.stores.crawl_folders import (
    ALONE,
    FleetPlan,
    alone,
    read_plan,
    refuse_missing,
    shared_out,
    write_plan,
)
from crawlerproject.stores.operator_files.control import take_back
from crawlerproject.stores.rocks import partition_rows
from crawlerproject.stores.rocks.frontier_folder import moved_aside, put_in_place, refuse_gone, refuse_shared_out
from crawlerproject.stores.rocks.rocks_tables import Tables, open_to_write
from crawlerproject.stores.row_codec import FACTS

DEFAULT_PARTITIONS = 256
"""Of a crawl that has had one process so far; FLEET_PARTITIONS."""
# A frontier whose rows have all moved, until its files are removed.
_EMPTIED = "frontier.moved"


def move(crawl: CrawlDir, workers: Sequence[str], say: Say, partitions: int = DEFAULT_PARTITIONS) -> FleetPlan:
    """Have exactly these workers (or ALONE) hold the crawl's partitions, each its share; the plan that counts then.

    Nothing of the crawl runs: the lock of ``crawl`` is held by the caller, those of the workers' folders are taken
    meanwhile. A move that was begun before is brought to its end first. ``say`` is called with sentences for the
    operator, every few seconds while rows move. A crawl that one process has always had gets so many ``partitions``.

    May be interrupted anywhere: called again, with whatever workers, it goes on. Raises OperatorError, before anything
    is touched where it can be known.
    """
    with _disk_errors():
        return _moved(crawl, workers, say, partitions)


def finish(crawl: CrawlDir, say: Say) -> None:
    """Bring a move that was begun to its end, if there is one; else as ``move``."""
    if journal.under_way(crawl):
        with _disk_errors():
            _finish(crawl, say)


@contextmanager
def _disk_errors() -> Iterator[None]:
    """What the disk refuses is the operator's to mend."""
    try:
        yield
    except FrontierDamaged:
        raise
    except StorageError as error:
        raise OperatorError(
            f"Partitions cannot be moved ({error}); make room and start again: it goes on where it was."
        ) from error


def _moved(crawl: CrawlDir, workers: Sequence[str], say: Say, partitions: int) -> FleetPlan:
    refuse_shared_out(crawl)
    adopt_recovered(crawl)
    refuse_missing(crawl)
    if journal.under_way(crawl):
        say("Partitions were on their way to other workers when the last start ended: that is finished first")
        _finish(crawl, say)
    plan = read_plan(crawl)
    if plan is None and tuple(workers) == (ALONE,):
        return alone(partitions)  # as it has always been: it needs no file
    before = plan or alone(partitions)
    if plan is not None and set(plan.workers) == set(workers):
        return plan
    with ExitStack() as locks:
        _lock(crawl, {*before.workers, *workers}, locks)
        folders = {worker: CrawlDir(crawl / worker) for worker in before.workers}
        for folder in folders.values():
            put_in_place(folder)
            refuse_gone(folder)
        sources = {worker: folder for worker, folder in folders.items() if folder.has_frontier()}
        if not sources:  # nothing was begun yet
            _take_back_seeds(crawl, before.workers)
            made = shared_out(before, workers)
            write_plan(crawl, made)
            return made
        for folder in (CrawlDir(crawl / worker) for worker in set(workers) - set(before.workers)):
            if folder.has_frontier():  # what is in it would be mixed in
                raise OperatorError(
                    f"There is a frontier in {folder.frontier} and {crawl.fleet_plan} does not say whose hosts it "
                    "holds; move it out of the crawl's folder."
                )
        change = _change(crawl, before, workers)
        renamed = dict(change.renamed)
        refuse_without_room(crawl, change, {renamed.get(worker, worker): each for worker, each in sources.items()})
        for folder in sources.values():
            close_archive(folder, say)
        say(f"Partitions move: {_held_by(before.workers)} held them, {_held_by(workers)} will")
        journal.begin(crawl, change).close()
    return _finish(crawl, say)


def _finish(crawl: CrawlDir, say: Say) -> FleetPlan:
    with closing(Journal(crawl)) as written, ExitStack() as locks:
        _lock(crawl, {*written.change.before.workers, *written.change.after.workers}, locks)
        _Move(crawl, written, say).run()
        _take_back_seeds(crawl, [*(old for old, _ in written.change.renamed), *written.change.before.workers])
        written.end()
        say("The partitions have moved")
        return written.change.after


def _take_back_seeds(crawl: CrawlDir, workers: Iterable[str]) -> None:
    """Seeds that were added and wait in the folder of a worker may be of hosts that it has no more."""
    with storage_errors(crawl.control):
        take_back(crawl, [CrawlDir(crawl / worker) for worker in workers if worker != ALONE])


def _change(crawl: CrawlDir, before: FleetPlan, workers: Sequence[str]) -> PlanChange:
    """Workers that come take whole frontiers of workers that go, so that only what is too much of one moves by rows."""
    going = [name for name in before.workers if name not in workers and CrawlDir(crawl / name).has_frontier()]
    disk = crawl.stat().st_dev
    coming = [name for name in workers if name not in before.workers and (crawl / name).stat().st_dev == disk]
    renamed = dict(zip(going, coming, strict=False))
    named = replace(before, workers=tuple(renamed.get(name, name) for name in before.workers))
    return PlanChange(named, shared_out(named, workers), tuple(renamed.items()))


def _lock(crawl: CrawlDir, workers: Iterable[str], locks: ExitStack) -> None:
    for worker in sorted(workers):
        if worker != ALONE:
            locks.callback(os.close, take_lock(crawl / worker))


def _held_by(workers: Sequence[str]) -> str:
    return "one process" if tuple(workers) == (ALONE,) else f"{len(workers)} workers"


class _Frontiers:
    """Those of the workers, open from when they are first needed."""

    def __init__(self, crawl: CrawlDir, change: PlanChange) -> None:
        self._crawl = crawl
        self._shares = len({*change.before.workers, *change.after.workers})
        self._open: dict[str, Tables] = {}

    def folder(self, worker: str) -> CrawlDir:
        """A worker's."""
        return CrawlDir(self._crawl / worker)

    def of(self, worker: str) -> Tables:
        """A worker's, a new one where there is none. Raises OperatorError."""
        found = self._open.get(worker)
        if found is None:
            found = self._open[worker] = open_to_write(self.folder(worker).frontier, self._shares)
        return found

    def remove(self, worker: str) -> None:
        """One that holds nothing any more is none from now on; then its files go."""
        if (known := self._open.pop(worker, None)) is not None:
            known.close()
        folder = self.folder(worker)
        emptied = folder / _EMPTIED
        with storage_errors(emptied):
            shutil.rmtree(emptied, ignore_errors=True)
            if folder.frontier.exists():
                folder.frontier.rename(emptied)
                sync_path(folder)
            shutil.rmtree(emptied, ignore_errors=True)

    def close(self) -> None:
        """Let go of all."""
        while self._open:
            self._open.popitem()[1].close()


class _Move:
    """One that is under way, from where it is to its end."""

    def __init__(self, crawl: CrawlDir, written: Journal, say: Say) -> None:
        self._crawl = crawl
        self._journal = written
        self._say = say
        self._change = written.change
        self._frontiers = _Frontiers(crawl, self._change)

    def run(self) -> None:
        """All phases that are left."""
        steps = {
            Phase.RENAMING: self._rename,
            Phase.GATHERING: self._gather,
            Phase.COPYING: self._copy,
            Phase.SWITCHING: self._switch,
            Phase.CLEARING: self._clear,
        }
        phases = list(steps)
        with closing(self._frontiers):
            for phase in phases[phases.index(self._journal.phase) :]:
                if phase is not self._journal.phase:
                    self._journal.enter(phase)
                steps[phase]()

    def _rename(self) -> None:
        """Give whole frontiers the folders of other workers."""
        for old, new in self._change.renamed:
            source, target = self._frontiers.folder(old), self._frontiers.folder(new)
            if not source.has_frontier():  # done before
                continue
            with storage_errors(target.frontier):
                source.frontier.rename(target.frontier)  # in the place of an empty folder, if there is one
                sync_path(target)
                sync_path(source)

    def _gather(self) -> None:
        """Write down what every worker will know of the crawl, before anything of it is written over."""
        known = {
            worker: partition_rows.facts_of(self._frontiers.of(worker))
            for worker in self._change.before.workers
            if self._frontiers.folder(worker).has_frontier()
        }
        for worker, facts in fact_rules.joined(known, self._change):
            self._journal.put_facts(worker, ((name.encode(), value) for name, value in facts.items()))
        self._list_hosts()

    def _list_hosts(self) -> None:
        for giver, partitions in self._moving().items():
            list_hosts(self._frontiers.of(giver), partitions, self._change.before.partitions)
            self._frontiers.of(giver).sync()

    def _copy(self) -> None:
        """Put every row that goes to another frontier into it; nothing is removed meanwhile."""
        moving = self._moving()
        targets = {worker: self._frontiers.of(worker) for worker in self._change.after.workers}
        holders = {partition: (giver, new) for giver, each in moving.items() for partition, new in each.items()}
        left = [partition for partition in holders if not self._journal.is_copied(partition)]
        for partition in with_progress(left, self._say, "copied"):
            giver, new = holders[partition]
            partition_rows.put(targets[new], rows_of(self._frontiers.of(giver), partition))
            targets[new].sync()
            self._journal.copied(partition)
        for giver in moving:
            copy_others(self._frontiers.of(giver), giver, self._change, targets)
        for worker, target in targets.items():
            target.sync()
            folder = self._frontiers.folder(worker)
            with storage_errors(folder):  # a new one survives a power loss, as its rows do
                sync_path(folder)
                sync_path(self._crawl)

    def _moving(self) -> dict[str, dict[int, str]]:
        """As ``PlanChange.moving``, of workers that have frontiers."""
        moving = self._change.moving()
        return {worker: moving[worker] for worker in moving if self._frontiers.folder(worker).has_frontier()}

    def _switch(self) -> None:
        """What is known of the crawl gets to its places; then the new plan counts."""
        for worker in self._change.after.workers:
            frontier, facts = self._frontiers.of(worker), dict(self._journal.facts_of(worker))
            batch = frontier.batch()
            for name, value in facts.items():
                batch.put(FACTS, name, value)
            for name, _ in frontier.rows(FACTS, prefix=fact_rules.UNREAD_PREFIX.encode()):
                if name not in facts:  # its messages are in others
                    batch.delete(FACTS, name)
            frontier.write(batch)
            frontier.sync()
        write_plan(self._crawl, self._change.after)

    def _clear(self) -> None:
        """Remove what is elsewhere now: whole frontiers of workers that hold nothing, else row by row."""
        staying = self._change.after.workers
        for worker in self._change.before.workers:
            if worker not in staying:
                self._frontiers.remove(worker)
        if self._journal.of_rows:
            self._list_hosts()
        for giver, partitions in self._moving().items():
            for partition in with_progress(partitions, self._say, "removed where they were"):
                partition_rows.clear(self._frontiers.of(giver), partition)
        for worker in staying:
            if worker in fact_rules.workers_that_change(self._change):
                tidy_lists(self._frontiers.of(worker), worker, self._change)
            self._frontiers.of(worker).sync()


def adopt_recovered(crawl: CrawlDir) -> list[Path]:
    """Make a frontier that ``scrapy recover`` has made whole the crawl's; where old ones are kept now.

    Does nothing when there is none. Those of workers are kept in their folders, and a move that was under way is over.
    May be done again after a crash at any point of it. The crawl's lock is held. Raises OperatorError, StorageError.
    """
    if not crawl.frontier_recovered.is_dir():
        return []
    plan = read_plan(crawl)
    holders = [CrawlDir(crawl / worker) for worker in sorted(_workers(crawl) - {ALONE})]
    kept = [old for folder in holders if folder.has_frontier() and (old := moved_aside(folder)) is not None]
    if journal.under_way(crawl):
        with storage_errors(crawl.fleet_moving):
            shutil.rmtree(crawl.fleet_moving)
            sync_path(crawl)
    if plan is not None and not plan.alone:
        write_plan(crawl, alone(plan.partitions))
    if (own := put_in_place(crawl)) is not None:
        kept.append(own)
    return kept


def _workers(crawl: CrawlDir) -> set[str]:
    """Those that may have frontiers: by the plan, and by a move that is under way."""
    plan = read_plan(crawl)
    found = set(plan.workers) if plan is not None else set[str]()
    if journal.under_way(crawl):
        with suppress(OperatorError), closing(journal.Journal(crawl)) as written:
            change = written.change
            found |= {*change.before.workers, *change.after.workers}
    return found
