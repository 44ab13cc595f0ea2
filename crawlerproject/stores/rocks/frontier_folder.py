"""Where a crawl's frontier lies, where a new one is made beside it, and how that one comes into its place.

A new frontier is made in ``frontier.recovering``, which is nothing until it is whole; then it is called
``frontier.recovered``, and that name alone says that it is to become the crawl's. So a process may die anywhere: who
opens the folder next puts it in place.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from crawlerproject.errors import OperatorError
from crawlerproject.stores.archive.warc_reader import WARC_SUFFIX
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT
from crawlerproject.stores.atomic_files import storage_errors, sync_folder, unused
from crawlerproject.stores.crawl_folder import FRONTIER
from crawlerproject.stores.rocks.folder import damaged
from crawlerproject.stores.rocks.store import RocksStore

BUILDING = "frontier.recovering"
BUILT = "frontier.recovered"
DAMAGED = "frontier.damaged"
CLEAN_FACT = "clean"
"""Whether the last run ended in good order (b"1"); b"0" after a crash. Every start of a crawl writes it."""
IMPORTED_FACT = "imported"
"""Records of other archives were taken in, perhaps before a first start."""
KNOWS_NOTHING = "it knows nothing of the crawl whose archive is beside it"


class Facts(Protocol):
    """What a store or a view of one answers."""

    def fact(self, name: str) -> bytes | None: ...


def put_in_place(folder: Path) -> Path | None:
    """Make a new frontier that is whole the crawl's; where the old one is kept now, if there was any.

    Does nothing when there is no new one. The folder's lock is held. Raises OperatorError when the disk refuses.
    """
    built, frontier = folder / BUILT, folder / FRONTIER
    if not built.is_dir():
        return None
    try:
        kept = _moved_aside(frontier)
        built.rename(frontier)
        sync_folder(folder)
    except OSError as error:
        raise OperatorError(
            f"{built} cannot be put in the place of {frontier} ({error.strerror}); check the permissions of {folder}."
        ) from error
    return kept


def finish(folder: Path) -> None:
    """A frontier in BUILDING is whole and closed: from now on it is the one that counts."""
    with storage_errors(folder / BUILT):
        sync_folder(folder / BUILDING)
        (folder / BUILDING).rename(folder / BUILT)
        sync_folder(folder)


def has_frontier(folder: Path) -> bool:
    """Whether the crawl's frontier is here, be it damaged."""
    return (folder / FRONTIER / "CURRENT").is_file()


def refuse_gone(folder: Path) -> None:
    """Raise OperatorError for a folder with captures and without a frontier: a start would fetch all of it again."""
    if has_frontier(folder) or not has_archive(folder):
        return
    raise OperatorError(
        f"The frontier in {folder} is gone, and {folder / 'warc'} has what was crawled: scrapy recover {folder} makes "
        "it again from that; or set CRAWL_DIR to another folder."
    )


def open_frontier(folder: Path) -> RocksStore:
    """The frontier of the crawl in ``folder``, a new one for a new crawl. Raises OperatorError.

    One that knows of no crawl although there is an archive has lost its tables: RocksDB opens a manifest that was cut
    short as an earlier one. A start on it would begin the crawl anew.
    """
    put_in_place(folder)
    refuse_gone(folder)
    store = RocksStore(folder / FRONTIER)
    if never_begun(store) and has_archive(folder):
        store.close()
        raise damaged(str(folder / FRONTIER), KNOWS_NOTHING)
    return store


def never_begun(store: Facts) -> bool:
    """Whether no crawl has ever opened or committed with a frontier, and nothing was imported into it."""
    return all(store.fact(name) is None for name in (CLEAN_FACT, ARCHIVE_FACT, IMPORTED_FACT))


def has_archive(folder: Path) -> bool:
    """Whether something was ever archived."""
    return any((folder / "warc").glob(f"*{WARC_SUFFIX}*"))


def _moved_aside(frontier: Path) -> Path | None:
    """The old frontier keeps everything under another name; one that is empty goes."""
    if not frontier.exists():
        return None
    if not any(frontier.iterdir()):
        frontier.rmdir()
        return None
    kept = unused(frontier.with_name(f"{DAMAGED}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"))
    frontier.rename(kept)
    sync_folder(frontier.parent)
    return kept
