"""The folder of a RocksDB frontier: made when missing, and what to tell the operator when it cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

from crawlerproject.errors import FrontierDamaged, OperatorError
from crawlerproject.stores.atomic_files import SECRET_FOLDER
from crawlerproject.stores.crawl_dir import CrawlDir

# A file that the manifest names, or the manifest itself, is not there any more.
_DAMAGED = ("Corruption", "IO error: No such file or directory")
_LOCKED = ("Resource temporarily unavailable", "No locks available", "lock hold by current process")


def make_folder(folder: str) -> None:
    """Make the folder; OperatorError when it cannot be written."""
    try:
        os.makedirs(folder, SECRET_FOLDER, exist_ok=True)  # the secrets of hubs stand in it
    except OSError as error:
        raise _unwritable(folder, error.strerror or str(error)) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unwritable(folder, "permission denied")


def opening_error(folder: str, detail: str) -> OperatorError:
    """What to say when RocksDB cannot open the folder, by its own words (``detail``)."""
    if any(sign in detail for sign in _LOCKED):
        return OperatorError(
            f"The crawl folder {folder} is in use by a running crawl; stop it, or set CRAWL_DIR to another folder."
        )
    if "Column families not opened" in detail:
        return other_version(folder, newer=True)
    if "Column family not found" in detail:  # only where nothing may be made: stores/rocks/view.py
        return OperatorError(
            f"The crawl folder {folder} was written by an older version of this crawler; start that crawl once more."
        )
    if detail.startswith(_DAMAGED):
        return damaged(folder, detail)
    return _unwritable(folder, detail)


def damaged(folder: str, detail: str) -> FrontierDamaged:
    """What to say of a frontier that cannot be read to its end."""
    crawl, why = whole_crawl(Path(folder).parent), " ".join(detail.split())
    return FrontierDamaged(
        f"The frontier in {folder} is damaged ({why}); scrapy recover {crawl} makes it again from the archive."
    )


def whole_crawl(folder: Path) -> Path:
    """The folder of the crawl that ``folder`` is a worker's of, on one machine; else itself."""
    return folder.parent if CrawlDir(folder.parent).fleet_plan.exists() else folder


def other_version(folder: str, *, newer: bool) -> OperatorError:
    """What to say of a folder whose layout this version does not know."""
    return OperatorError(
        f"The crawl folder {folder} was written by {'a newer' if newer else 'an older'} version of this crawler; "
        "use that version, or set CRAWL_DIR to another folder."
    )


def _unwritable(folder: str, detail: str) -> OperatorError:
    return OperatorError(
        f"The crawl folder {folder} cannot be written ({detail}); make it writable, or set CRAWL_DIR to another folder."
    )
