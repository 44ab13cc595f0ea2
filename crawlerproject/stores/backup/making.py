"""Makes a backup of a crawl on this machine, whether it runs or not; of several workers, of all of them in step.

It is made beside its place, in ``NAME.unfinished``, and gets its name when it is whole. Until then the command holds
the lock in there: a second one that was given the same place is refused, and touches nothing. ``backup.json``, written
last, names every file of it and every file of the archive of then.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from crawlerproject.errors import OperatorError
from crawlerproject.rules.printable import counted
from crawlerproject.stores.atomic_files import (
    SECRET_FILE,
    SECRET_FOLDER,
    replace_file,
    storage_errors,
    sync_path,
)
from crawlerproject.stores.backup.checkpoint_orders import Asking, Stage
from crawlerproject.stores.crawl_dir import (
    CrawlDir,
    check_there,
    holds_database,
    lock_now,
    open_lock,
    refuse_half_restored,
    refuse_links_out,
    take_lock,
)
from crawlerproject.stores.crawl_folders import ALONE, folders_of, read_plan, refuse_missing, refuse_moving
from crawlerproject.stores.protocols import ARCHIVE_FACT, OpenFile, unpack_open
from crawlerproject.stores.rocks.frontier_folder import put_in_place
from crawlerproject.stores.rocks.rocks_tables import open_facts

UNFINISHED_SUFFIX = ".unfinished"
SMALL = ("formats", "crawl_file", "run", "fleet_plan", "poison", "upload_journal", "withdrawn")
"""What else belongs to a crawl's state, by its name in CrawlDir; with it whatever lies in ``control``."""
ORDERS = ("paused.json", "add-*.txt")
"""The operator's, in ``control``."""
_BETWEEN_SECONDS = 0.1
# Files of RocksDB that are written once and never again: another name of one is a copy of it.
_NEVER_CHANGED = ".sst"
_MANIFEST = "backup.json"
_FORMAT = 1


class FolderThen(NamedTuple):
    """A folder of the crawl, its own or a worker's, as it was."""

    name: str  # in the crawl's; "": that folder itself
    has_frontier: bool
    closed: tuple[str, ...]  # WARC files that were not written any more
    open_file: OpenFile | None  # the one that was, and how much of it counts

    @property
    def still_open(self) -> OpenFile | None:
        """``open_file``, unless it was closed since the commit that named it."""
        return None if self.open_file is None or self.open_file.filename in self.closed else self.open_file


class Backup(NamedTuple):
    """One that is whole, in ``folder``, where its files lie as in a crawl's."""

    folder: CrawlDir
    made_at: float  # epoch seconds
    crawl: str  # the folder that it was made of
    folders: tuple[FolderThen, ...]


def back_up(crawl: CrawlDir, target: Path, wait_seconds: float) -> list[FolderThen]:
    """Make a backup of the crawl in ``target``, which is new; what it says of each folder.

    A running crawl may take so long to make its checkpoints. Raises OperatorError, StorageError; then there is no
    ``target``.
    """
    check_there(crawl)
    refuse_moving(crawl)
    refuse_missing(crawl)
    refuse_half_restored(crawl)
    _refuse_place(crawl, target)
    unfinished = CrawlDir(f"{target.absolute()}{UNFINISHED_SUFFIX}")
    lock = _begin(unfinished, target)
    try:
        _refuse_place(crawl, target)  # another command may have finished one there since
        _clear(unfinished)
        # Before the checkpoints: seeds that are queued in between are in both, and known the second time.
        holders = _holders(crawl)
        for folder in dict.fromkeys([crawl, *holders]):
            _keep_small(folder, CrawlDir(unfinished / folder.relative_to(crawl)))
        with ExitStack() as locks:
            closed = _stopped(crawl, holders, unfinished, locks) or _running(crawl, holders, unfinished, wait_seconds)
            if _holders(crawl) != holders:  # a fleet of another number has begun since
                raise OperatorError(f"Other workers have begun to share the crawl in {crawl}; try again.")
            found = [_folder_then(crawl, folder, unfinished, closed) for folder in folders_of(crawl)]
        _finish(crawl, unfinished, target, found)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    finally:
        os.close(lock)
    return found


def _refuse_place(crawl: CrawlDir, target: Path) -> None:
    """Raise OperatorError where no backup can be made."""
    if target.resolve().is_relative_to(crawl.resolve()):
        raise OperatorError(f"{target} is in the crawl's folder, which a backup is to survive; choose one outside.")
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise OperatorError(f"{target} is there already; choose a new folder for each backup.")


def _begin(unfinished: CrawlDir, target: Path) -> int:
    """Make the folder in which it is made; its lock. Raises OperatorError while another command has it."""
    if unfinished.is_symlink():  # what is there of a killed command is removed
        raise OperatorError(f"{unfinished} is a link; remove it, or choose another folder.")
    with storage_errors(unfinished):
        unfinished.mkdir(mode=SECRET_FOLDER, parents=True, exist_ok=True)
        if (lock := _lock(unfinished)) is None:
            raise OperatorError(f"Another backup is being made in {target}; wait for it, or choose another folder.")
    return lock


def _clear(unfinished: CrawlDir) -> None:
    """Remove what a command that was killed has left."""
    with storage_errors(unfinished):
        unfinished.chmod(SECRET_FOLDER)
        for left in unfinished.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
            elif left != unfinished.lock_file:
                left.unlink()


def _lock(unfinished: CrawlDir) -> int | None:
    """The lock of a backup that is being made; None while another command holds it, or has just renamed the folder."""
    try:
        descriptor = open_lock(unfinished.lock_file)
    except FileNotFoundError:
        return None
    try:
        lock_now(descriptor)
        if os.path.samestat(os.fstat(descriptor), os.stat(unfinished.lock_file)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:  # a file system without locks, as some that are mounted over a network: without one, then
        return descriptor
    os.close(descriptor)
    return None


def _holders(crawl: CrawlDir) -> list[CrawlDir]:
    """The folders with frontiers, by the plan. Raises OperatorError."""
    plan = read_plan(crawl)
    return [crawl] if plan is None else plan.folders(crawl)


def _keep_small(source: CrawlDir, into: CrawlDir) -> None:
    with storage_errors(into):
        paths = [getattr(source, name) for name in SMALL]
        paths += [path for pattern in ORDERS for path in sorted(source.control.glob(pattern))]
        for path in paths:
            kept = into / path.relative_to(source)
            kept.parent.mkdir(mode=SECRET_FOLDER, parents=True, exist_ok=True)
            try:
                shutil.copy2(path, kept)
            except FileNotFoundError:  # seeds that the crawl has just queued, or nothing of the kind
                continue


# --- a crawl that does not run --------------------------------------------------------------------


def _stopped(
    crawl: CrawlDir, holders: list[CrawlDir], unfinished: CrawlDir, locks: ExitStack
) -> dict[CrawlDir, tuple[str, ...]]:
    """Copy the frontiers of a crawl that stands still; nothing when it runs. The locks are held until the end."""
    for folder in dict.fromkeys([crawl, *holders]):
        if folder.locked():
            return {}
        locks.callback(os.close, take_lock(folder))
    for folder in holders:
        put_in_place(folder)
        if not holds_database(folder.frontier):
            raise OperatorError(f"There is no frontier in {folder}; name a crawl's folder by CRAWL_DIR.")
        into = CrawlDir(unfinished / folder.relative_to(crawl)).frontier
        with storage_errors(into):
            into.mkdir(mode=SECRET_FOLDER, parents=True)
            for path in sorted(folder.frontier.iterdir()):
                if path.is_file():
                    copy_file(path, into / path.name)
    return {folder: _closed(folder) for folder in holders}


def copy_file(path: Path, copy: Path) -> None:
    """One of a database's files; by a new name where it never changes and the disk is the same. OSError."""
    if path.suffix == _NEVER_CHANGED:
        try:
            os.link(path, copy)
        except OSError:  # another disk, or one without such links
            shutil.copy2(path, copy)
    else:
        shutil.copy2(path, copy)


# --- one that runs --------------------------------------------------------------------------------


def _running(
    crawl: CrawlDir, holders: list[CrawlDir], unfinished: CrawlDir, wait_seconds: float
) -> dict[CrawlDir, tuple[str, ...]]:
    """Have its processes make checkpoints, and take these."""
    closed, until = {}, time.monotonic() + wait_seconds
    with closing(Asking(holders)) as asking:
        for stage in (Stage.TAKE,) if holders == [crawl] else (Stage.HOLD, Stage.TAKE):
            asking.ask(stage)
            while len(answers := asking.answers(stage)) < len(holders):
                waited_for = [folder for folder in holders if folder not in answers]
                if ended := [folder for folder in waited_for if not folder.locked()]:
                    raise OperatorError(f"The crawl in {ended[0]} has ended, or is starting; try again.")
                if time.monotonic() > until:
                    raise OperatorError(
                        f"The running crawl in {waited_for[0]} has made no checkpoint in time: look at its log, and "
                        "try again with a longer --wait."
                    )
                time.sleep(_BETWEEN_SECONDS)
        for folder, answer in answers.items():
            into = CrawlDir(unfinished / folder.relative_to(crawl)).frontier
            with storage_errors(into):
                into.parent.mkdir(mode=SECRET_FOLDER, parents=True, exist_ok=True)
                shutil.move(folder.frontier_checkpoint, into)  # copied where that is another disk
                into.chmod(SECRET_FOLDER)
            closed[folder] = answer.closed
    return closed


# --- of both --------------------------------------------------------------------------------------


def _folder_then(
    crawl: CrawlDir, folder: CrawlDir, unfinished: CrawlDir, closed: dict[CrawlDir, tuple[str, ...]]
) -> FolderThen:
    """A folder that holds no frontier has only files that are closed."""
    name = str(folder.relative_to(crawl)) if folder != crawl else ALONE
    if folder not in closed:
        return FolderThen(name, False, _closed(folder), None)
    with closing(open_facts(os.fspath(CrawlDir(unfinished / name).frontier))) as facts:
        return FolderThen(name, True, closed[folder], unpack_open(facts.get(ARCHIVE_FACT.encode())))


def _closed(folder: CrawlDir) -> tuple[str, ...]:
    return tuple(path.name for path in folder.closed_warcs())


def _finish(crawl: CrawlDir, unfinished: CrawlDir, target: Path, found: list[FolderThen]) -> None:
    """Everything durable, then the list of it, which makes a backup of it, then the name."""
    with storage_errors(unfinished):
        paths = [path for path in sorted(unfinished.rglob("*")) if path != unfinished.lock_file]
        files = [path for path in paths if path.is_file()]
        for path in (*files, *(path for path in paths if path.is_dir()), unfinished):
            sync_path(path)
        facts = {
            "format": _FORMAT,
            "made_at": time.time(),
            "crawl": str(crawl.resolve()),
            "folders": [each._asdict() | {"open_file": each.open_file and tuple(each.open_file)} for each in found],
            "files": {str(path.relative_to(unfinished)): path.stat().st_size for path in files},
        }
        replace_file(unfinished / _MANIFEST, orjson.dumps(facts, option=orjson.OPT_INDENT_2), SECRET_FILE)
        if target.exists():
            target.rmdir()
        unfinished.rename(target)
        CrawlDir(target).lock_file.unlink()
        sync_path(target.absolute().parent)


# --- read again ----------------------------------------------------------------------------------


def read_backup(folder: Path) -> Backup:
    """The backup there. Raises OperatorError for none, for one that is not whole, and for a newer version's."""
    try:
        facts = orjson.loads((folder / _MANIFEST).read_bytes())
        if facts["format"] > _FORMAT:
            raise OperatorError(f"The backup in {folder} was made by a newer version of this crawler; use that.")
        refuse_links_out(folder)
        sizes = ((name, folder / name, size) for name, size in facts["files"].items())
        missing = [name for name, path, size in sizes if not path.is_file() or path.stat().st_size != size]
        made_at, of = float(facts["made_at"]), str(facts["crawl"])
        backup = Backup(CrawlDir(folder), made_at, of, tuple(map(_folder, facts["folders"])))
    except (FileNotFoundError, NotADirectoryError):
        raise OperatorError(
            f"{folder} holds no whole backup: there is no {_MANIFEST}, which is written last; name another."
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OperatorError(f"{folder / _MANIFEST} cannot be read ({error}); name another backup.") from error
    if missing:
        raise OperatorError(
            f"The backup in {folder} is not whole: {counted(len(missing), 'file')} of it, such as {missing[0]}, "
            "are missing or have another size; name another."
        )
    return backup


def _folder(facts: dict[str, Any]) -> FolderThen:
    """Names are those of files and folders of the crawl: a backup may be another's, and must not lead elsewhere."""
    filename, length = facts["open_file"] or ("", 0)
    open_file = OpenFile(filename, int(length)) if filename else None
    then = FolderThen(facts["name"], bool(facts["has_frontier"]), tuple(facts["closed"]), open_file)
    names = [*then.closed, *([open_file.filename] if open_file else []), *([then.name] if then.name else [])]
    for name in names:
        if name in ("", ".", "..") or "/" in name or not name.isprintable():
            raise ValueError(f"{name[:100]!r} is no name of a file or folder in it")
    return then
