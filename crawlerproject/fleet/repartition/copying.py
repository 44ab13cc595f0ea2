"""MoveRule through a worker's frontier: puts rows where they go to, and later removes them where they were."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from crawlerproject.fleet.repartition.journal import Cursor, Journal, Partitions, PlanChange
from crawlerproject.fleet.repartition.row_partitions import STEPS, MoveRule, PartitionedRow, RowPartitioner, all_rows
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import Counts
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.protocols import DUE_FACT, IN_MEMORY
from crawlerproject.stores.rocks.rocks_tables import RawBatch, Tables
from crawlerproject.stores.row_codec import FACTS, due_of

# Rows of one change: some hundreds of KB.
_ROWS_AT_A_TIME = 2000
# Rows between two looks at the clock, and seconds between two words of how far it is.
_ROWS_BETWEEN_LOOKS = 2000
_SAY_SECONDS = 3.0
# Between two notes of how far it is, for each of which every frontier is synced: what a crash makes to be done again.
_NOTE_SECONDS = 10.0

Say = Callable[[str], None]


@dataclass(slots=True)
class Progress:
    """Says every few seconds how many rows were gone through."""

    say: Say
    what: str  # becomes of them
    total: int
    done: int = 0
    said_at: float = field(default_factory=time.monotonic)

    def advance(self, rows: int) -> None:
        """So many more."""
        self.done += rows
        if time.monotonic() - self.said_at >= _SAY_SECONDS:
            self.said_at = time.monotonic()
            self.say(f"Partitions move: {self.done:,} of about {max(self.done, self.total):,} rows {self.what}")


def targets_of(shift: PlanChange, worker: str, goes: MoveRule) -> Callable[[Partitions], tuple[str, ...]]:
    """The workers into whose frontiers a row of one worker's frontier is put, by its partitions."""
    before, after = shift.before, shift.after
    departs = worker not in after.workers

    @cache
    def targets(partitions: Partitions) -> tuple[str, ...]:
        if goes is MoveRule.WITH_SENDER and not departs:
            return ()
        if goes is MoveRule.TRUE_ANYWHERE and not partitions and departs:
            return after.workers
        went = (
            after.workers[after.holders[each]]
            for each in partitions
            if goes is not MoveRule.WITH_HOST or before.workers[before.holders[each]] == worker
        )
        return tuple(sorted({target for target in went if target != worker}))

    return targets


class Copying:
    """Puts the rows of frontiers into those of their new holders."""

    def __init__(self, journal: Journal, targets: dict[str, Tables], progress: Progress) -> None:
        self._journal = journal
        self._targets = targets
        self._progress = progress
        self._batches: dict[str, RawBatch] = {}
        self._noted_at = time.monotonic()

    def copy(self, worker: str, source: Tables, begun: Cursor | None) -> None:
        """All of one worker's, from where it stopped. StorageError."""
        shift = self._journal.shift
        placing = RowPartitioner(source, self._journal, shift.before.partitions)
        for number in range(begun.step if begun is not None else 0, len(STEPS)):
            step = STEPS[number]
            targets = targets_of(shift, worker, step.goes)
            behind = begun.behind if begun is not None and begun.step == number else b""
            read = 0
            for row in step.find(placing, behind):
                for target in targets(row.partitions):
                    self._put(target, step.table, row)
                read += 1
                if read == _ROWS_BETWEEN_LOOKS:
                    self._progress.advance(read)
                    read = 0
                    if time.monotonic() - self._noted_at >= _NOTE_SECONDS:
                        self._note(placing, Cursor(worker, number, row.key))
            self._progress.advance(read)
            placing.write_places()
        self._write()

    def _put(self, target: str, table: str, row: PartitionedRow) -> None:
        batch = self._batches.get(target)
        if batch is None:
            batch = self._batches[target] = self._targets[target].batch()
        for key, value in all_rows(table, row):
            batch.put(table, key, value)
        if batch.rows >= _ROWS_AT_A_TIME:
            self._targets[target].write(self._batches.pop(target))

    def _write(self) -> None:
        for target, batch in self._batches.items():
            self._targets[target].write(batch)
        self._batches = {}

    def _note(self, placing: RowPartitioner, cursor: Cursor) -> None:
        placing.write_places()
        self._write()
        for target in self._targets.values():
            target.sync()
        self._journal.reached(cursor)
        self._noted_at = time.monotonic()


def clear(worker: str, frontier: Tables, journal: Journal, progress: Progress) -> None:
    """Remove from a worker's frontier what belongs to others now, and count its hosts on disk again. StorageError."""
    own = journal.shift.after.held(worker)
    placing = RowPartitioner(frontier, journal, journal.shift.before.partitions)
    for step in STEPS:
        batch, read = frontier.batch(), 0
        for row in step.find(placing, b""):
            # What is of no known host stays.
            if row.partitions and step.goes is not MoveRule.WITH_SENDER and own.isdisjoint(row.partitions):
                for key, _ in all_rows(step.table, row):
                    batch.delete(step.table, key)
            read += 1
            if read == _ROWS_BETWEEN_LOOKS:
                frontier.write(batch)
                progress.advance(read)
                batch, read = frontier.batch(), 0
        frontier.write(batch)
        progress.advance(read)


def count_due(frontier: Tables, progress: Progress) -> None:
    """Count again which hosts of a frontier are on disk; whether all with work are listed is left as it was."""
    packed = frontier.get(FACTS, DUE_FACT.encode())
    if packed is None:
        return
    counts = Counts(whole=Counts.unpack(packed).whole)
    for read, (key, _) in enumerate(frontier.rows(tables.DUE), 1):
        if not read % _ROWS_BETWEEN_LOOKS:
            progress.advance(_ROWS_BETWEEN_LOOKS)
        place = due_of(key)
        if place.at != IN_MEMORY and (state := frontier.get(tables.HOSTS, place.host.encode())) is not None:
            counts.add(Host.unpack(place.host, state))
    frontier.put([(FACTS, DUE_FACT.encode(), counts.pack())])
