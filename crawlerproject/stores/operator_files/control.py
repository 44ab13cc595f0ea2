"""What an operator says to a crawl from outside, in ``control/`` of its folder: pauses, and seeds to be added.

Plain files, so that it holds whether the crawl runs or not, and over any restart: ``paused.json`` is what is paused
now; every ``add-….txt`` is a list of seeds that the crawl has not taken in yet. Both are in place whole and durable
before the command that wrote them ends. The folder is the owner's alone: what is said here is done.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.stores.atomic_files import SECRET_FILE, replace_file
from crawlerproject.stores.crawl_dir import CrawlDir

_PAUSED_FILE = "paused.json"
_ADDED = "add-*.txt"
_SECRET_FOLDER = 0o700


@dataclass(slots=True)
class Pauses:
    """What is paused; texts say since when and why."""

    crawl: str = ""  # "" while the crawl as a whole is not
    hosts: dict[str, str] = field(default_factory=dict)  # by host name


class Control:
    """The files of one crawl, as the crawl looks at them: cheap when nothing has changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = CrawlDir(folder).control
        self._stamp: tuple[int, int] | None = None

    @property
    def version(self) -> int:
        """Modification time (ns) of the pauses as they were read last; 0 when there were none."""
        return self._stamp[0] if self._stamp else 0

    def changed(self) -> Pauses | None:
        """The pauses when they are new since the last look, else None. What cannot be read changes nothing."""
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
        """What ``changed`` gave last could not be done."""
        self._stamp = None

    def added(self) -> list[Path]:
        """Lists of seeds to be taken in, the oldest first."""
        return sorted(self.folder.glob(_ADDED)) if self.folder.is_dir() else []


def read_pauses(folder: Path) -> Pauses:
    """What is paused of the crawl in ``folder``; nothing when nothing ever was."""
    try:
        kept = orjson.loads((CrawlDir(folder).control / _PAUSED_FILE).read_bytes())
        return Pauses(str(kept["crawl"]), {str(name): str(said) for name, said in kept["hosts"].items()})
    except FileNotFoundError:
        return Pauses()
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):  # by hand; ours are whole
        return Pauses("paused.json cannot be read; scrapy resume writes it anew")


def change_pauses(folder: Path, change: Callable[[Pauses], object]) -> int:
    """Change what is paused, durably; the new version. Two commands at a time come one after the other."""
    with _locked(folder) as control:
        pauses = read_pauses(folder)
        change(pauses)
        path = control / _PAUSED_FILE
        replace_file(path, orjson.dumps({"crawl": pauses.crawl, "hosts": pauses.hosts}), SECRET_FILE)
        return path.stat().st_mtime_ns


def spool_seeds(folder: Path, lines: list[str]) -> Path:
    """Leave lines of a seeds file for the crawl, durably; the file vanishes once they are queued."""
    with _locked(folder) as control:
        path = control / f"add-{time.time_ns():020d}-{secrets.token_hex(4)}.txt"
        replace_file(path, ("\n".join(lines) + "\n").encode(), SECRET_FILE)
        return path


@contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    """The control folder, made if need be, while no other command changes it."""
    control = CrawlDir(folder).control
    try:
        control.mkdir(mode=_SECRET_FOLDER, exist_ok=True)
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
