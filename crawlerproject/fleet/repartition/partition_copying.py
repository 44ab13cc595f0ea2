"""Partitions go from one worker's frontier to another's: copied whole, then removed where they were.

Before partitions change hands: the disk must have room, and the archives that folders were writing are closed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.fleet.repartition.journal import PlanChange
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import Counts, count_rows
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.rules.printable import human_bytes
from crawlerproject.stores import row_codec
from crawlerproject.stores.archive.archive import close_left, parquet_of
from crawlerproject.stores.archive.recovery import LostPages, recover
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.poison import Poison
from crawlerproject.stores.protocols import ARCHIVE_FACT, DUE_FACT, IN_MEMORY, Changes, unpack_open
from crawlerproject.stores.rocks import partition_rows
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import RESERVE_BYTES, Tables
from crawlerproject.stores.rocks.row_packing import Row

_SAY_SECONDS = 3.0  # between two lines on progress

Say = Callable[[str], None]


def list_hosts(source: Tables, moving: Mapping[int, str], partitions: int) -> None:
    """Write down which hosts the partitions have that move. May be done again. StorageError."""
    rows = partition_rows.list_hosts(source, lambda host: partition_of(host, partitions))
    partition_rows.put(source, (row for partition, row in rows if partition in moving))


def rows_of(source: Tables, partition: int) -> Iterator[Row]:
    """Every row of a partition, as a frontier has them that keeps no list of its partitions' hosts."""
    for row in partition_rows.all_rows(source, partition):
        table, key, value = row
        if table == row_codec.PRINTS:
            yield from ((row_codec.PRINTS, *of_all) for of_all in partition_rows.of_all_hosts(key, value or b""))
        if table != row_codec.MESSAGES or key[0] != row_codec.HOST_ROW:
            yield row


def copy_others(source: Tables, worker: str, change: PlanChange, targets: Mapping[str, Tables]) -> None:
    """Copy what is with a worker's partitions beside their rows: lists of hosts, and payloads that no page has now.

    Messages stay with their sender, who sends them to the new holder; without its sender each goes to the holder. There
    the mark says whether it was read. StorageError.
    """
    before, after = change.before, change.after
    departs = worker not in after.workers
    moving: dict[str, list[Row]] = {}

    def take(target: str, row: Row, most: int = partition_rows.ROWS_AT_A_TIME) -> None:
        rows = moving.setdefault(target, [])
        rows.append(row)
        if len(rows) >= most:
            partition_rows.put(targets[target], moving.pop(target))

    for table in (row_codec.DUE, row_codec.PAYLOADS):
        for key, value in source.rows(table):
            host = row_codec.HOST_OF[table](key, value)
            if before.holder(host) == worker != (target := after.holder(host)):
                take(target, (table, key, value))
    if departs:
        for key, value in source.rows(row_codec.MESSAGES, prefix=bytes((row_codec.MESSAGE_ROW,))):
            take(after.workers[after.holders[row_codec.box_of(key).partition]], (row_codec.MESSAGES, key, value))
    for target, rows in moving.items():
        partition_rows.put(targets[target], rows)


def tidy_lists(frontier: Tables, worker: str, change: PlanChange) -> None:
    """Take hosts of other workers off a frontier's lists, and count those on disk again.

    Whether all with work are listed is left as it was. StorageError.
    """
    packed = frontier.get(row_codec.FACTS, DUE_FACT.encode())
    counts = Counts(whole=Counts.unpack(packed).whole)

    def others() -> Iterator[Row]:
        for key, _ in frontier.rows(row_codec.DUE):
            place = row_codec.due_of(key)
            if change.after.holder(place.host) != worker:
                yield row_codec.DUE, key, None
            elif place.at != IN_MEMORY and (state := frontier.get(row_codec.HOSTS, place.host.encode())) is not None:
                counts.add(Host.unpack(place.host, state))

    partition_rows.put(frontier, others())
    if packed is not None:
        frontier.put([(row_codec.FACTS, DUE_FACT.encode(), counts.pack())])


def with_progress(partitions: Iterable[int], say: Say, what: str) -> Iterator[int]:
    """The same; every few seconds ``say`` has a line on how far they were gone through."""
    each = list(partitions)
    reported_at = time.monotonic()
    for done, partition in enumerate(each):
        if time.monotonic() - reported_at >= _SAY_SECONDS:
            reported_at = time.monotonic()
            say(f"Partitions move: {done:,} of {len(each):,} are {what}")
        yield partition


# What a copied row takes until RocksDB has merged the files that it came in (ours): itself, its log, its merged copy.
_COPIES = 3


def refuse_without_room(crawl: CrawlDir, change: PlanChange, sources: dict[str, CrawlDir]) -> None:
    """Raise OperatorError when less is free than the rows that move will take. ``sources``: folders, by worker."""
    free, bytes_moving = shutil.disk_usage(crawl).free, 0
    for worker, partitions in change.moving().items():
        if worker in sources:
            bytes_moving += _size(sources[worker]) * len(partitions) // len(change.before.held(worker))
    if free < (needed := _COPIES * bytes_moving + RESERVE_BYTES):
        renamed = {new: old for old, new in change.renamed}
        were = ", ".join(renamed.get(name, name) or "scrapy crawl alone" for name in change.before.workers)
        raise OperatorError(
            f"Partitions that change hands need {human_bytes(needed)} ({needed:,} bytes) on the disk of {crawl}, and "
            f"{free:,} bytes are free; make room, or go on with the workers that there were ({were})."
        )


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
