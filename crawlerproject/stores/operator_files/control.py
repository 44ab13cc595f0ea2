"""The operator's orders to a crawl, as files in ``control/`` of its folder: pauses, stops, and seeds to add.

Files hold whether the crawl runs or not, and over any restart. ``paused.json`` lists what is paused, and when the crawl
was last asked to stop, which is for the processes of that moment alone; each ``add-….txt`` holds seeds that the crawl
has not queued yet, ``added.txt`` all that were ever added. A command ends once its file is complete and durable. The
folder is accessible to its owner alone, since the crawl does whatever it says.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.stores.atomic_files import SECRET_FILE, SECRET_FOLDER, opened, replace_file, storage_errors
from crawlerproject.stores.crawl_dir import CrawlDir

_PAUSED_FILE = "paused.json"
_ADDED = "add-*.txt"
_EVER_ADDED = "added.txt"
SUPERVISED_SINCE = "CRAWLERPROJECT_SUPERVISED_SINCE"
"""Environment variable of a fleet's workers: epoch seconds. A stop ordered since is for them, too."""
_APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW


@dataclass(slots=True)
class Pauses:
    """What is paused, with a text on since when and why."""

    crawl: str = ""  # "" while the crawl as a whole is not
    hosts: dict[str, str] = field(default_factory=dict)  # by host name
    stopped_at: float = 0.0  # epoch seconds: processes that began before it end


class Control:
    """The running crawl's view of the folder; one ``stat`` when nothing has changed."""

    def __init__(self, folder: Path, added_in: Path | None = None) -> None:
        """``added_in``: where its seeds come, when that is not ``folder`` (``hand_on``)."""
        self.folder = CrawlDir(folder).control
        self._added_in = CrawlDir(added_in or folder).control
        self._stamp: tuple[int, int] | None = None

    @property
    def version(self) -> int:
        """Modification time (ns) of the pauses when they were last read; 0 before that."""
        return self._stamp[0] if self._stamp else 0

    def changed(self) -> Pauses | None:
        """The pauses if they have changed since the last call, else None. An unreadable file changes nothing."""
        try:
            found = (self.folder / _PAUSED_FILE).stat()
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp == self._stamp:
                return None
            pauses = read_pauses(self.folder.parent)
        except OSError:
            return None
        self._stamp = stamp
        return pauses

    def look_again(self) -> None:
        """Have ``changed`` return the pauses once more: applying them failed."""
        self._stamp = None

    def added(self) -> list[Path]:
        """Lists of seeds that are not queued yet, oldest first."""
        return sorted(self._added_in.glob(_ADDED)) if self._added_in.is_dir() else []


class StopOrders:
    """Whether a stop was ordered since a process began: by default since this was made."""

    def __init__(self, folder: Path, began: float | None = None) -> None:
        self._control = Control(folder)
        self.began = time.time() if began is None else began  # epoch seconds

    def __call__(self) -> bool:
        """One ``stat`` when nothing has changed."""
        pauses = self._control.changed()
        return pauses is not None and pauses.stopped_at > self.began


def read_pauses(folder: Path) -> Pauses:
    """The pauses of the crawl in ``folder``; none before the first one."""
    try:
        kept = orjson.loads((CrawlDir(folder).control / _PAUSED_FILE).read_bytes())
        hosts = {str(name): str(why) for name, why in kept["hosts"].items()}
        return Pauses(str(kept["crawl"]), hosts, float(kept.get("stopped_at", 0.0)))
    except FileNotFoundError:
        return Pauses()
    except (ValueError, KeyError, TypeError, AttributeError):  # edited by hand: ours are always complete
        return Pauses("paused.json cannot be read; scrapy resume writes it again")


def change_pauses(folder: Path, change: Callable[[Pauses], object]) -> int:
    """Change the pauses, durably, one command at a time; returns the new version. Raises OperatorError."""
    with _locked(folder) as control:
        pauses = read_pauses(folder)
        change(pauses)
        path = control / _PAUSED_FILE
        replace_file(path, orjson.dumps(asdict(pauses)), SECRET_FILE)
        return path.stat().st_mtime_ns


def spool_seeds(folder: Path, lines: list[str]) -> Path:
    """Write lines of a seeds file for the crawl, durably; it removes the file once they are queued. OperatorError."""
    with _locked(folder) as control:
        path = control / f"add-{time.time_ns():020d}-{secrets.token_hex(4)}.txt"
        text = ("\n".join(lines) + "\n").encode()
        replace_file(path, text, SECRET_FILE)
        with storage_errors(control / _EVER_ADDED), opened(control / _EVER_ADDED, _APPENDING, SECRET_FILE) as record:
            os.write(record, text)
        return path


def hand_on(folder: CrawlDir, workers: Sequence[CrawlDir]) -> None:
    """Give seeds that were added to the crawl in ``folder`` to each of its workers, durably. OSError, StorageError.

    A list leaves the crawl's folder once every worker has it; after a crash in between a worker may have it twice.
    """
    for path in Control(folder).added():
        lines = path.read_bytes()
        for worker in workers:
            worker.control.mkdir(mode=SECRET_FOLDER, parents=True, exist_ok=True)
            replace_file(worker.control / path.name, lines, SECRET_FILE)
        path.unlink()


def take_back(folder: CrawlDir, workers: Iterable[CrawlDir]) -> None:
    """Bring seeds that workers have not queued back to the crawl in ``folder``, durably: others may have their hosts.

    Called again after a crash in between it does the rest. OSError, StorageError.
    """
    lists = [path for worker in workers for path in Control(worker).added()]
    for path in lists:
        folder.control.mkdir(mode=SECRET_FOLDER, exist_ok=True)
        replace_file(folder.control / path.name, path.read_bytes(), SECRET_FILE)
        path.unlink()


def ever_added(folder: Path) -> list[str]:
    """Lines of seeds that were ever added to the crawl in ``folder``, whatever became of them, the first ones first."""
    try:
        return (CrawlDir(folder).control / _EVER_ADDED).read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:  # none, or by an earlier version
        return []


@contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    """The control folder, created if necessary and locked against other commands."""
    control = CrawlDir(folder).control
    try:
        control.mkdir(mode=SECRET_FOLDER, exist_ok=True)
        descriptor = os.open(control, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise OperatorError(
            f"{control} cannot be made or opened ({error.strerror}); run as the crawl's owner."
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield control
    except StorageError as error:
        raise OperatorError(f"{error}; nothing was changed.") from error
    finally:
        os.close(descriptor)
