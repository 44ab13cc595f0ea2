"""Where a crawl's frontier lies, where a new one is made beside it, and how that one comes into its place.

A new frontier is made in ``frontier.recovering``, which is nothing until it is whole; then it is called
``frontier.recovered``, and that name alone says that it is to become the crawl's. So a process may die anywhere: who
opens the folder next puts it in place.
"""

from __future__ import annotations

import time
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT
from crawlerproject.stores.atomic_files import storage_errors, sync_path, unused
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import refuse_moved
from crawlerproject.stores.protocols import FactReader
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import damaged, whole_crawl

CLEAN_FACT = "clean"
"""Whether the last run ended in good order (b"1"); b"0" after a crash. Every start of a crawl writes it."""
IMPORTED_FACT = "imported"
"""Records of other archives were taken in, perhaps before a first start."""
KNOWS_NOTHING = "it knows nothing of the crawl whose archive is beside it"


def put_in_place(folder: CrawlDir) -> Path | None:
    """Make a new frontier that is whole the crawl's; where the old one is kept now, if there was any.

    Does nothing when there is no new one. The folder's lock is held. Raises OperatorError when the disk refuses.
    """
    built, frontier = folder.frontier_recovered, folder.frontier
    if not built.is_dir():
        return None
    try:
        kept = moved_aside(folder)
        built.rename(frontier)
        sync_path(folder)
    except OSError as error:
        raise OperatorError(
            f"{built} cannot be put in the place of {frontier} ({error.strerror}); check the permissions of {folder}."
        ) from error
    return kept


def finish(folder: CrawlDir) -> None:
    """A frontier that was made beside the old one is whole and closed: from now on it is the one that counts."""
    with storage_errors(folder.frontier_recovered):
        sync_path(folder.frontier_unfinished)
        folder.frontier_unfinished.rename(folder.frontier_recovered)
        sync_path(folder)


def refuse_gone(folder: CrawlDir) -> None:
    """Raise OperatorError for a folder with captures and without a frontier: a start would fetch all of it again."""
    if folder.has_frontier() or not folder.has_archive():
        return
    whole = whole_crawl(folder)
    raise OperatorError(
        f"The frontier in {folder} is gone, and {folder.warc} has what was crawled: scrapy recover {whole} makes "
        "it again from that; or set CRAWL_DIR to another folder."
    )


def open_frontier(folder: CrawlDir) -> RocksStore:
    """The frontier of the crawl in ``folder``, a new one for a new crawl. Raises OperatorError.

    One that knows of no crawl although there is an archive has lost its tables: RocksDB opens a manifest that was cut
    short as an earlier one. A start on it would begin the crawl again.
    """
    put_in_place(folder)
    refuse_gone(folder)
    refuse_moved(folder)
    store = RocksStore(folder.frontier)
    if never_begun(store) and folder.has_archive():
        store.close()
        raise damaged(str(folder.frontier), KNOWS_NOTHING)
    return store


def never_begun(store: FactReader) -> bool:
    """Whether no crawl has ever opened or committed with a frontier, and nothing was imported into it."""
    return all(store.fact(name) is None for name in (CLEAN_FACT, ARCHIVE_FACT, IMPORTED_FACT))


def moved_aside(folder: CrawlDir) -> Path | None:
    """The old frontier keeps everything under another name, which is given back; one that is empty goes. OSError."""
    frontier = folder.frontier
    if not frontier.exists():
        return None
    if not any(frontier.iterdir()):
        frontier.rmdir()
        return None
    kept = unused(Path(f"{folder.frontier_damaged}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"))
    frontier.rename(kept)
    sync_path(frontier.parent)
    return kept
