"""Where everything lies in a crawl's folder, who may write into it, and what other users of the machine may do there.

Secret are the frontier (hubs sign with secrets that are stored in it), ``run.json`` and ``status.json`` (settings, and
the requests of this moment), ``crawl.toml`` (a proxy may have its password there), ``worker.json``, and ``control``
(orders in it are carried out); so is the lock. What is archived is as open as the umask makes it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PosixPath
from typing import Any

import orjson

from crawlerproject.errors import OperatorError
from crawlerproject.stores.atomic_files import SECRET_FILE, SECRET_FOLDER, opened, replace_file, write_whole

WARC_SUFFIX = ".warc.gz"
_OTHERS_SUFFIXES = (".warc", ".arc.gz", ".arc")
ARCHIVE_SUFFIXES = (WARC_SUFFIX, *_OTHERS_SUFFIXES)
"""Of archive files that may lie in a crawl's folder; those we write end with the first."""
OPEN_SUFFIX = ".open"
"""Behind WARC_SUFFIX while a file is being written."""
FORMATS = {"frontier": 2, "index": 1, "log": 1, "layout": 2}
"""Of the parts that ``format.json`` records, the versions that are written now. A part gets another number when an
earlier version would misread what is written, or a migration leads there. ``tests/stores/format_history.py`` has every
format, and what becomes of what earlier releases wrote."""
# RocksDB's own: names the manifest that counts. A folder without it is no database.
_CURRENT = "CURRENT"
_OTHERS = 0o077
# A reader holds the lock for an instant, a process that writes for as long as it lives.
_LOCK_TRIES, _BETWEEN_TRIES_SECONDS = 5, 0.05


def stem_of(filename: str) -> str:
    """What all is named by that is made of an archive file."""
    return filename.removesuffix(WARC_SUFFIX)


def archive_of_stem(stem: str) -> str:
    """The name of the archive file."""
    return stem if stem.endswith(_OTHERS_SUFFIXES) else f"{stem}{WARC_SUFFIX}"


def closed_archives(folder: Path) -> list[Path]:
    """The archive files in a folder that are not written any more, in the order of writing."""
    return sorted(path for path in folder.glob("*") if path.name.endswith(ARCHIVE_SUFFIXES))


class _Part:
    """A file or folder of a crawl, as an attribute of its CrawlDir."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __get__(self, folder: CrawlDir, owner: type) -> Path:
        return folder.part(*self.names)


class CrawlDir(PosixPath):
    """The folder of one crawl, or of one of a crawl's workers, and the names of all that is in it."""

    __slots__ = ()
    is_here = True
    """Whether it is on this machine, and not one at another place that is only read (stores/uploads/distant.py)."""

    frontier = _Part("frontier")  # RocksDB; each of several workers has one
    frontier_unfinished = _Part("frontier.recovering")  # being made again; counts for nothing
    frontier_recovered = _Part("frontier.recovered")  # whole: the next start puts it in place
    frontier_damaged = _Part("frontier.damaged")  # with the moment behind it: what was replaced
    frontier_checkpoint = _Part("control", "frontier")  # made for a backup, until it is taken
    restoring = _Part("restoring.json")  # a backup is being put back; nothing counts until that is done
    warc = _Part("warc")
    torn = _Part("torn")  # what was cut out of WARC files
    index = _Part("index")  # CDXJ
    parquet = _Part("index", "parquet")
    log = _Part("log")  # a file a day, and what is beside them:
    robots_copies = _Part("log", "robots")
    errors_log = _Part("log", "errors.log")
    formats = _Part("format.json")  # of its parts, and which version wrote here last
    run = _Part("run.json")  # seeds and settings of the last start
    status = _Part("status.json")  # written by the running process, about once a second
    last_hour = _Part("last-hour.json")
    crawl_file = _Part("crawl.toml")
    crawl_file_lock = _Part("crawl.toml.lock")  # held by the one that reads, compares and writes it
    fleet_plan = _Part("fleet.json")  # of several workers on this machine: which of them holds what
    texts = _Part("texts")  # RocksDB, of several workers on this machine: what all of them know of archived texts
    supervisor_socket = _Part("supervisor.sock")  # of several workers on this machine: where they ask their supervisor
    fleet_moving = _Part("fleet.moving")  # partitions are on their way from worker to worker; how far they are
    moved = _Part("moved")  # where the frontier was copied to, and the crawl goes on
    worker = _Part("worker.json")  # in a worker's folder: its name, its crawl, its incarnations
    control = _Part("control")  # pauses and seeds, from outside
    poison = _Part("poison.json")
    reading_mark = _Part("reading")  # a mapped file: which page is being read just now
    lock_file = _Part("lock")  # flock, as long as a process lives that may change the folder; its content means nothing
    upload = _Part("upload")  # of an archive that goes to another place:
    upload_journal = _Part("upload", "journal.jsonl")  # how far each file has come
    upload_state = _Part("upload", "state.json")  # the last report of the process that uploads
    upload_lock = _Part("upload", "lock")
    upload_staged = _Part("upload", "staged")  # files that are made to be sent
    processed = _Part("processed")  # by scrapy process
    exports = _Part("processed", "export")  # for the search engines of others
    ranks = _Part("processed", "rank")
    ranked_pages = _Part("processed", "rank", "pages.parquet")
    ranked_linked = _Part("processed", "rank", "linked.parquet")
    search = _Part("search")  # the full-text index
    withdrawn = _Part("withdrawn.txt")  # what was asked back, one line each

    def __new__(cls, *args: Any) -> CrawlDir:
        """Of a path at another place the crawl's folder is there."""
        as_crawl = getattr(args[0], "as_crawl", None) if args and cls is CrawlDir else None
        made: CrawlDir = super().__new__(cls, *args) if as_crawl is None else as_crawl()
        return made

    def part(self, *names: str) -> Path:
        """A file or folder in it."""
        return Path(self, *names)

    def make(self, within: Path | None = None) -> None:
        """Make the folders that a crawl writes into; ``within`` as in ``refuse_links_out``. Raises OperatorError."""
        parts = (self.frontier, self.warc, self.index, self.log)
        try:
            self.mkdir(parents=True, exist_ok=True)
            refuse_links_out(self, within)
            for part in parts:
                part.mkdir(exist_ok=True)
        except OSError as error:
            raise OperatorError(
                f"The crawl folder {self} cannot be made ({error.strerror}); set CRAWL_DIR to a writable one."
            ) from error
        for path in (self, *parts):
            if not os.access(path, os.W_OK | os.X_OK):
                raise OperatorError(
                    f"The crawl folder {path} cannot be written; check its owner or set CRAWL_DIR to another."
                )

    def has_frontier(self) -> bool:
        """Whether the crawl's frontier is here, be it damaged."""
        return holds_database(self.frontier)

    def is_begun(self) -> bool:
        """Whether a crawl was ever started here."""
        return self.has_frontier() or self.run.exists() or self.has_archive()

    def has_archive(self) -> bool:
        """Whether something was ever archived; it may be at another place alone."""
        return bool(self.closed_warcs() or self.open_warcs()) or self.has_removed()

    def has_removed(self) -> bool:
        """Whether files that another place has were removed here (stores/uploads/upload_journal.py writes so)."""
        try:
            return b'"stage":"removed"' in self.upload_journal.read_bytes()
        except FileNotFoundError:
            return False

    def closed_warcs(self) -> list[Path]:
        """The archive files that are not written any more, in the order of writing."""
        return closed_archives(self.warc)

    def open_warcs(self) -> list[Path]:
        """Those that are being written, or that a process left open when it died."""
        return sorted(self.warc.glob(f"*{WARC_SUFFIX}{OPEN_SUFFIX}"))

    def started_below(self) -> list[CrawlDir]:
        """Folders in this one in which a crawl, or a worker of this crawl, was started; by name."""
        return [CrawlDir(path.parent) for path in sorted(self.glob(f"*/{self.run.name}"))]

    def locked(self) -> bool:
        """Whether a process holds the lock."""
        return is_locked(self.lock_file)

    def running(self, status: dict[str, Any]) -> bool:
        """Whether the process that wrote this status still crawls here: its lock is held, until it dies."""
        if status.get("ended") or not self.locked():
            return False
        try:
            os.kill(int(status["pid"]), 0)
        except (KeyError, ProcessLookupError):
            return False
        except PermissionError:  # another user's: it lives
            return True
        return True


def check_there(folder: Path) -> None:
    """Raise OperatorError where a crawl's folder should be and is not."""
    if not folder.is_dir():
        raise OperatorError(f"There is no folder {folder}; name a crawl's folder, or set CRAWL_DIR.")


def is_locked(path: Path) -> bool:
    """Whether a process holds a lock file. A shared lock, taken for an instant, disturbs no other who asks."""
    with suppress(OSError), opened(path, os.O_RDONLY) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:  # held; or a file system without locks: the process itself is asked for
            return True
    return False


def holds_database(folder: Path) -> bool:
    """Whether RocksDB has ever made a database in ``folder``."""
    return (folder / _CURRENT).is_file()


def take_lock(folder: Path, *, restores: bool = False) -> int:
    """The crawl folder's lock, held until the descriptor is closed (a dead process holds none). Raises OperatorError.

    All that writes into the folder begins here: links that lead out of it are refused, what is secret is closed, and
    one whose backup is but half put back is for that alone (``restores``).
    """
    crawl, descriptor = CrawlDir(folder), -1
    try:
        crawl.mkdir(parents=True, exist_ok=True)
        refuse_links_out(crawl)
        descriptor = open_lock(crawl.lock_file)
        lock_now(descriptor)
    except BlockingIOError:
        os.close(descriptor)
        raise OperatorError(
            f"The crawl folder {folder} is in use by a running crawl; stop that one first or set CRAWL_DIR to another."
        ) from None
    except OSError as error:
        raise OperatorError(
            f"The crawl folder {folder} cannot be locked ({error.strerror}); set CRAWL_DIR to another."
        ) from error
    try:
        close_to_others(crawl)
        if not restores:
            refuse_half_restored(crawl)
        refuse_newer(crawl)
    except OperatorError:
        os.close(descriptor)
        raise
    return descriptor


def open_lock(path: Path) -> int:
    """A descriptor of a lock file, made if necessary. OSError.

    No other user may open it, not even to read: ``flock`` asks for no more, and who holds it keeps the crawl out. One
    that an earlier version left open is closed to others.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, SECRET_FILE)
    if os.fstat(descriptor).st_mode & _OTHERS:
        os.fchmod(descriptor, SECRET_FILE)
    return descriptor


def refuse_newer(crawl: CrawlDir) -> None:
    """Raise OperatorError for a folder of which a part has a newer format than this version knows."""
    written = read_facts(crawl.formats)
    if newer := [name for name, known in FORMATS.items() if isinstance(n := written.get(name), int) and n > known]:
        raise OperatorError(
            f"The {newer[0]} in {crawl} has a newer format than this version knows: version "
            f"{written.get('version', 'unknown')} of this crawler wrote it; use that one or a newer, or set CRAWL_DIR "
            "to another folder."
        )


def stamp_formats(crawl: CrawlDir, version: str) -> str:
    """Record that this version writes here; returns the one before, "" when it is the same or the folder is new.

    Versions before 1.5.0 recorded nothing. StorageError.
    """
    before = read_facts(crawl.formats)
    now = {"version": version, **FORMATS}
    if before == now:
        return ""
    is_old = crawl.has_archive() or crawl.run.exists()
    replace_file(crawl.formats, orjson.dumps(now))
    earlier = str(before.get("version", "1.4.0 or earlier" if is_old else ""))
    return "" if earlier == version else earlier


def refuse_half_restored(crawl: CrawlDir) -> None:
    """Raise OperatorError where a backup was being put back when that ended: frontier and archive disagree."""
    if crawl.restoring.exists():
        source = read_facts(crawl.restoring).get("from", "DIR")
        raise OperatorError(
            f"A backup was being put back into {crawl} and is not yet whole: scrapy state restore {source} "
            f"-s CRAWL_DIR={crawl} does the rest."
        )


def lock_now(descriptor: int) -> None:
    """Lock an open file. Raises BlockingIOError when another process holds it for more than an instant."""
    for left in reversed(range(_LOCK_TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not left:
                raise
        time.sleep(_BETWEEN_TRIES_SECONDS)


def lock_or_refuse(descriptor: int, refusal: str) -> None:
    """Lock an open file. Raises OperatorError with this sentence when another process holds it."""
    try:
        lock_now(descriptor)
    except BlockingIOError:
        raise OperatorError(refusal) from None


def write_facts(path: Path, facts: dict[str, Any]) -> None:
    """Put ``run.json`` or the like in place, whole; not made durable, since it is about this moment only.

    For its owner's eyes: it shows how the crawl is set, and which hosts it asks.
    """
    write_whole(path, orjson.dumps(facts), SECRET_FILE)


def read_facts(path: Path) -> dict[str, Any]:
    """What was written last; empty when nothing was."""
    try:
        return facts_in(path.read_bytes())
    except OSError:
        return {}


def facts_in(text: bytes) -> dict[str, Any]:
    """The fields of a JSON object; none where the text is no such thing, such as a line that a crash tore."""
    try:
        facts = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return facts if isinstance(facts, dict) else {}


def refuse_links_out(folder: Path, within: Path | None = None) -> None:
    """Raise OperatorError for a link in ``folder`` that leads out of it: what we write would land elsewhere.

    ``folder`` itself may be a link, unless it must stay ``within`` another.
    """
    if within is not None and folder.is_symlink() and not folder.resolve().is_relative_to(within.resolve()):
        raise _leads_out(folder)
    home = os.path.realpath(folder)
    for link in _links(home):
        target = os.path.realpath(link)
        if target != home and not target.startswith(home + os.sep):
            raise _leads_out(folder / os.path.relpath(link, home))


def close_to_others(folder: Path) -> None:
    """Take from others what is secret in ``folder``, also where an earlier version made it."""
    crawl = CrawlDir(folder)
    folders = ((path, SECRET_FOLDER) for path in (crawl.frontier, crawl.control))
    files = ((path, SECRET_FILE) for path in (crawl.run, crawl.status, crawl.worker, crawl.crawl_file))
    for path, mode in (*folders, *files):
        try:
            if path.stat().st_mode & _OTHERS:
                path.chmod(mode)
        except FileNotFoundError:
            continue
        except PermissionError as error:
            raise OperatorError(
                f"{path} belongs to another user and can be read by others; run as its owner, or change that."
            ) from error


def _links(folder: str) -> Iterator[str]:
    """Every symbolic link below a folder; an entry costs about a microsecond, a folder ten.

    Copies of robots.txt, of versions before 1.8, are left out: they may be millions of folders; nothing writes there.
    """
    waiting, left_out = [folder], str(CrawlDir(folder).robots_copies)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        yield entry.path
                    elif entry.is_dir(follow_symlinks=False) and entry.path != left_out:
                        waiting.append(entry.path)
        except (FileNotFoundError, PermissionError):  # missing, or reported where it is needed
            continue


def _leads_out(link: Path) -> OperatorError:
    return OperatorError(
        f"{link} is a link that leads out of the crawl's folder, to {os.path.realpath(link)}; move what it names into "
        "the folder (or mount it there), or set CRAWL_DIR to a folder without such links."
    )
