"""Puts a backup back: its frontiers in the place of those that are there, and the archive in step with them.

What the archive gained since is kept aside in ``torn/``, and its pages are fetched again. Nothing of it may be done
half: ``restoring.json`` keeps every start away until all is done, and the same call does the rest.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import orjson

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.upload_rules import Stage
from crawlerproject.rules.printable import counted, moment
from crawlerproject.stores.archive.archive import has_our_name, parquet_of
from crawlerproject.stores.archive.recovery import move_aside, recover
from crawlerproject.stores.atomic_files import (
    SECRET_FILE,
    SECRET_FOLDER,
    replace_file,
    storage_errors,
    sync_path,
)
from crawlerproject.stores.backup.making import ORDERS, SMALL, Backup, FolderThen, copy_file
from crawlerproject.stores.crawl_dir import OPEN_SUFFIX, CrawlDir, take_lock
from crawlerproject.stores.crawl_folders import folders_of
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.protocols import Changes, OpenFile
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT, finish, moved_aside, put_in_place
from crawlerproject.stores.rocks.rocks_store import RocksStore

Say = Callable[[str], None]
# What a later moment knows better than the backup does.
_THE_LATER_ONE = frozenset({"poison", "upload_journal", "withdrawn"})
# What is removed when the backup does not have it: which formats the frontier was in, and which workers shared it.
_AS_IT_WAS = frozenset({"formats", "fleet_plan"})


def restore(backup: Backup, crawl: CrawlDir, say: Say) -> None:
    """Put a backup back into the crawl's folder, a new one or that of a crawl that does not run.

    May be interrupted anywhere: called again it does the rest. ``say`` hears what was done. Raises OperatorError before
    anything is touched where it can be known, StorageError.
    """
    with ExitStack() as locks:
        locks.callback(os.close, take_lock(crawl, restores=True))
        folders = _folders(backup, crawl)
        for folder in folders:
            if folder != crawl:
                locks.callback(os.close, take_lock(folder, restores=True))
        for folder, then in folders.items():
            refuse_unfit(folder, then)
        with storage_errors(crawl.restoring):
            replace_file(crawl.restoring, orjson.dumps({"from": str(backup.folder.absolute())}), SECRET_FILE)
            shutil.rmtree(crawl.texts, ignore_errors=True)  # made again from the frontiers
            shutil.rmtree(crawl.fleet_moving, ignore_errors=True)
        for folder, then in folders.items():
            cut_back(folder, then, say)
            source = CrawlDir(backup.folder / then.name)
            _put_small(source, folder)
            if (kept := _put_frontier(source, folder, then)) is not None:
                say(f"The frontier that was there is kept in {kept}")
        with storage_errors(crawl.restoring):
            crawl.restoring.unlink()
            sync_path(crawl)
    say(f"{crawl} is as it was at {moment(backup.made_at)}; the same command as ever goes on from there")


def _folders(backup: Backup, crawl: CrawlDir) -> dict[CrawlDir, FolderThen]:
    """All folders of the crawl, then or now, and how they were; those that came later had nothing."""
    found = {CrawlDir(crawl / then.name): then for then in backup.folders}
    for folder in [crawl, *folders_of(crawl)]:
        name = str(folder.relative_to(crawl)) if folder != crawl else ""
        found.setdefault(folder, FolderThen(name, False, (), None))
    return found


def refuse_unfit(folder: CrawlDir, then: FolderThen) -> None:
    """Raise OperatorError where the archive cannot be brought into step with a frontier as it was."""
    if (wanted := then.still_open) is not None and _length(folder, wanted) < wanted.length:
        raise OperatorError(
            f"{wanted.filename} is not in {folder.warc} with its first {wanted.length:,} bytes, which the backup "
            f"counts; copy the archive there first, or have scrapy recover make the frontier from the archive there is."
        )
    if then.closed and len(missing := _missing(folder, then)) == len(then.closed):
        raise OperatorError(
            f"None of the {counted(len(missing), 'WARC file')} that the backup counts, such as {missing[0]}, is in "
            f"{folder.warc}; copy the archive there first."
        )
    if sent := sorted(_sent(folder) - {*then.closed}):
        raise OperatorError(
            f"{counted(len(sent), 'WARC file')} of {folder}, such as {sent[0]}, went to another place since the backup "
            "was made: their pages would be archived twice; scrapy recover makes the frontier from all there is."
        )


def cut_back(folder: CrawlDir, then: FolderThen, say: Say) -> None:
    """Have a folder's archive hold what it held, and keep the rest aside; again without harm. StorageError."""
    if not folder.warc.is_dir():
        return
    wanted, later = then.still_open, []
    with closing(CdxjFiles(folder.index, parquet_of(folder))) as index, storage_errors(folder.warc):
        for path in folder.closed_warcs():
            if path.name in then.closed or not has_our_name(path):
                continue
            index.drop(path.name)
            if wanted is not None and path.name == wanted.filename:
                path.rename(path.with_name(f"{path.name}{OPEN_SUFFIX}"))
                sync_path(folder.warc)
            else:
                later.append(move_aside(path))
        recovery = recover(folder.warc, wanted, index)
    if later:
        say(f"{counted(len(later), 'WARC file')} begun after the backup are kept in {folder.torn}")
    for message in recovery.messages:
        say(message)
    if missing := _missing(folder, then):
        say(
            f"{counted(len(missing), 'WARC file')} that the backup knows are not in {folder.warc}, such as {missing[0]}"
        )


def _length(folder: CrawlDir, wanted: OpenFile) -> int:
    """How much there is of a file, be it open or closed by now; -1 without one."""
    paths = (folder.warc / f"{wanted.filename}{suffix}" for suffix in (OPEN_SUFFIX, ""))
    return max((path.stat().st_size for path in paths if path.exists()), default=-1)


def _missing(folder: CrawlDir, then: FolderThen) -> list[str]:
    """The files of then that are neither here nor at another place."""
    missing = [name for name in then.closed if not (folder.warc / name).exists()]
    sent = _sent(folder) if missing else set()
    return [name for name in missing if name not in sent]


def _sent(folder: CrawlDir) -> set[str]:
    """The WARC files that are, or may be, at another place."""
    if not folder.upload_journal.exists():
        return set()
    from crawlerproject.stores.uploads.upload_journal import Journal  # no other crawl's folder needs it

    place = f"{folder.warc.name}/"
    sent = (name for name, known in Journal(folder) if known.stage is not Stage.LOCAL)
    return {name.removeprefix(place) for name in sent if name.startswith(place)}


def _put_small(source: CrawlDir, folder: CrawlDir) -> None:
    """Put what is small in its place; a ``crawl.toml`` that differs is kept beside it. StorageError."""
    for part in SMALL:
        there, kept = getattr(folder, part), getattr(source, part)
        if there.exists() and (part in _THE_LATER_ONE or not kept.exists()):
            if part in _AS_IT_WAS:
                there.unlink()
            continue
        if not kept.exists():
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        if part == "crawl_file" and there.exists() and there.read_bytes() != kept.read_bytes():
            replace_file(there.with_name(f"{there.name}.replaced"), there.read_bytes(), SECRET_FILE)
        replace_file(there, kept.read_bytes(), SECRET_FILE)
    for path in (path for pattern in ORDERS for path in source.control.glob(pattern)):
        folder.control.mkdir(mode=SECRET_FOLDER, exist_ok=True)
        if not (there := folder.control / path.name).exists():  # what was paused since stays paused
            replace_file(there, path.read_bytes(), SECRET_FILE)


def _put_frontier(source: CrawlDir, folder: CrawlDir, then: FolderThen) -> Path | None:
    """Put a frontier in the place of what is there; where that is kept. Its start waits as after a crash."""
    with storage_errors(folder.frontier_unfinished):
        for begun in (folder.frontier_unfinished, folder.frontier_recovered):
            shutil.rmtree(begun, ignore_errors=True)
        if not then.has_frontier:
            return moved_aside(folder) if folder.has_frontier() else None
        folder.frontier_unfinished.mkdir(mode=SECRET_FOLDER)
        for path in source.frontier.iterdir():
            copy_file(path, copy := folder.frontier_unfinished / path.name)
            sync_path(copy)
    with closing(RocksStore(folder.frontier_unfinished)) as store:
        # Requests since are not known: every host waits its pause first.
        store.apply(Changes(facts=[(CLEAN_FACT, b"0")]))
        store.sync()
    finish(folder)
    return put_in_place(folder)
