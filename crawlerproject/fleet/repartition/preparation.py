"""Before partitions change hands: the disk must have room, and the archives that folders were writing are closed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.fleet.repartition.journal import PlanChange
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import count_rows
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.rules.printable import human_bytes
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.archive.recovery import LostPages, recover
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT, close_left, unpack_open
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.poison import Poison
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import RESERVE_BYTES, open_to_write

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
