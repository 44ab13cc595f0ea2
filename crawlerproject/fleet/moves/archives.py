"""The archive of a worker's folder is closed before its frontier is touched: what a start and an end would do to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from crawlerproject.frontier.hosts.on_disk import count_rows
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.archive.lost_captures import LostPages
from crawlerproject.stores.archive.recovery import recover
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT, close_left, unpack_open
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.index.cdxj import CdxjFiles
from crawlerproject.stores.poison import Poison
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.rocks.store import RocksStore


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
