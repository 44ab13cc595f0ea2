"""MoveRule through a worker's frontier: puts rows where they go to, and later removes them where they were.

Before partitions change hands: the disk must have room, and the archives that folders were writing are closed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.fleet.repartition.journal import Cursor, Journal, Partitions, PlanChange
from crawlerproject.fleet.repartition.row_partitions import STEPS, MoveRule, PartitionedRow, RowPartitioner, all_rows
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import Counts, count_rows
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.rules.printable import human_bytes
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.archive.archive import close_left, parquet_of
from crawlerproject.stores.archive.recovery import LostPages, recover
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.poison import Poison
from crawlerproject.stores.protocols import ARCHIVE_FACT, DUE_FACT, IN_MEMORY, Changes, unpack_open
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import RESERVE_BYTES, RawBatch, Tables, open_to_write
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


# What a copied row takes until RocksDB has merged the files that it came in (ours): itself, its log, its merged copy.
_COPIES = 3


def refuse_without_room(crawl: CrawlDir, shift: PlanChange, sources: dict[str, CrawlDir]) -> None:
    """Raise OperatorError when less is free than the rows that move will take. ``sources``: folders, by worker."""
    free = shutil.disk_usage(crawl).free
    givers = shift.giving() & sources.keys()
    # Whole frontiers at first: to weigh what moves of them takes a look at every host.
    if free >= _COPIES * sum(_size(sources[worker]) for worker in givers) + RESERVE_BYTES:
        return
    moving = sum(int(_size(sources[worker]) * _share(worker, sources[worker], shift)) for worker in givers)
    if free < (needed := _COPIES * moving + RESERVE_BYTES):
        handed = {new: old for old, new in shift.handed}
        were = ", ".join(handed.get(name, name) or "scrapy crawl alone" for name in shift.before.workers)
        raise OperatorError(
            f"Partitions that change hands need {human_bytes(needed)} ({needed:,} bytes) on the disk of {crawl}, and "
            f"{free:,} bytes are free; make room, or go on with the workers that there were ({were})."
        )


def _share(worker: str, folder: CrawlDir, shift: PlanChange) -> float:
    """How much of a frontier moves, by the URLs that its hosts have."""
    frontier, after = open_to_write(folder.frontier), shift.after
    whole = moving = 0
    try:
        for name, packed in frontier.rows(tables.HOSTS):
            host = name.decode("utf-8", "surrogatepass")
            urls = 1 + Host.unpack(host, packed).known
            whole += urls
            holder = after.workers[after.holders[partition_of(host, after.partitions)]]
            moving += urls if holder != worker else 0
    finally:
        frontier.close()
    return moving / whole if whole else 0.0


def _size(folder: CrawlDir) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(Path(folder.frontier)) if entry.is_file())


def close_archive(folder: CrawlDir, say: Callable[[str], None]) -> None:
    """Cut the open WARC file to what is committed and give it its final name and its index; may be done again.

    Captures that a power loss took wait in the frontier again. Raises OperatorError, StorageError.
    """
    now = time.time()
    with (
        closing(CdxjFiles(folder.index, parquet_of(folder))) as index,
        closing(RocksStore(folder.frontier)) as store,
    ):
        lost = LostPages(store, folder.log, now, count_rows)
        recovery = recover(folder.warc, unpack_open(store.fact(ARCHIVE_FACT)), index, lost.rows_lost)
        messages = recovery.messages
        if (left := recovery.open_file) is not None:
            close_left(folder.warc, left.filename)
            messages += index.finish(folder.warc / left.filename)
        if store.fact(ARCHIVE_FACT):
            store.apply(Changes(facts=[(ARCHIVE_FACT, b"")]))
        store.sync()
    for message in messages:
        say(f"{folder.name}: {message}")
    if folder.reading_mark.exists():  # the page over which a process died is held against it, in every worker
        Poison(folder, now).close()
