"""Where a crawl's frontier lies, where a new one is made beside it, and how that one comes into its place.

A new frontier is made in ``frontier.recovering``, which is nothing until it is whole; then it is called
``frontier.recovered``, and that name alone says that it is to become the crawl's. So a process may die anywhere: who
opens the folder next puts it in place.
"""

from __future__ import annotations

import time
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.stores.crawl_folder import FRONTIER
from crawlerproject.stores.durable import storage_errors, sync_folder, unused
from crawlerproject.stores.warc_reading import WARC_SUFFIX

BUILDING = "frontier.recovering"
BUILT = "frontier.recovered"
DAMAGED = "frontier.damaged"


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
    if has_frontier(folder) or not any((folder / "warc").glob(f"*{WARC_SUFFIX}*")):
        return
    raise OperatorError(
        f"The frontier in {folder} is gone, and {folder / 'warc'} has what was crawled: scrapy recover {folder} makes "
        "it again from that; or set CRAWL_DIR to another folder."
    )


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
