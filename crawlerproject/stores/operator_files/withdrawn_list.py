"""``withdrawn.txt`` in a crawl's folder: what the owners of sites have asked back (``scrapy withdraw`` writes it).

All that shows what a crawl has archived asks this list. The indexes are made without what it covers, so that programs
of others that read them are right as well. What reads WARC files from end to end, or the index of one that is not
closed, leaves it out (``captures_in``, ``shown_members``, ``Captures``). What looks after the files themselves
(``verify``, ``recover``) sees all of it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from math import inf
from pathlib import Path

from crawlerproject.rules.archive.withdrawal import Withdrawal, Withdrawn
from crawlerproject.stores.atomic_files import replace_file, storage_errors
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.operator_files.watched_lists import WatchedFile

_FIRST_LINE = b"# What was asked back; scrapy withdraw writes it (docs/complaints.md).\n"
_LIST_MODE = 0o644  # who was promised what is no secret

logger = logging.getLogger(__name__)


def list_of(folder: Path) -> Path:
    """The list that holds for a folder: of a worker's that of its crawl. At another place it lies with each."""
    crawl = CrawlDir(folder)
    whole = CrawlDir(crawl.parent) if crawl.is_here and is_workers(crawl) else crawl
    return whole.withdrawn


def is_workers(crawl: CrawlDir) -> bool:
    """Whether a folder is one of several workers', in that of their crawl."""
    return crawl.worker.exists() or CrawlDir(crawl.parent).fleet_plan.exists()


def withdrawn_of(folder: Path) -> Withdrawn:
    """What was withdrawn of a crawl, by the folder of the crawl or of one of its workers. Raises OSError."""
    try:
        text = list_of(folder).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return Withdrawn()
    return _parsed(list_of(folder), text.decode("utf-8", "replace").splitlines())


def withdrawn_from(archive: Path) -> Withdrawn:
    """What was withdrawn of the crawl that an archive file, or an index, lies in."""
    return withdrawn_of(archive.parent.parent)


def add(path: Path, line: str) -> None:
    """Append a line or several, entries' or comments. A reader sees all of it or nothing. Raises StorageError."""
    with storage_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _LIST_MODE)
        try:
            size = os.fstat(descriptor).st_size
            begin = _FIRST_LINE if not size else b"" if os.pread(descriptor, 1, size - 1) == b"\n" else b"\n"
            os.write(descriptor, begin + line.encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def change(path: Path, changes: Mapping[Withdrawal, Withdrawal | None], why: str = "") -> None:
    """Put other lines in the place of these; with None one becomes a comment that says ``why``. Raises StorageError."""
    lines = path.read_text("utf-8", "surrogateescape").splitlines()
    for place, line in enumerate(lines):
        for before in Withdrawn.parse([line])[0].entries:
            if before in changes:
                after = changes[before]
                lines[place] = f"# {line}; taken off: {why}" if after is None else after.line()
    replace_file(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"), _LIST_MODE)


class WithdrawnFile(WatchedFile):
    """The list while a crawl runs: what is on it is not asked for again, nor what is archived made to depend on it."""

    def __init__(self, folder: Path | None, reload_seconds: float = inf) -> None:
        super().__init__(list_of(folder) if folder is not None else None, reload_seconds, "List", optional=True)
        self._withdrawn = Withdrawn()

    def current(self, now: float) -> Withdrawn:
        """The list; ``now`` in seconds of any steady clock."""
        if (lines := self.changed(now)) is not None and self.path is not None:
            self._withdrawn = _parsed(self.path, lines)
            logger.info("Withdrawn: %d entries of %s", len(self._withdrawn.entries), self.path)
        return self._withdrawn


def _parsed(path: Path, lines: list[str]) -> Withdrawn:
    found, problems = Withdrawn.parse(lines)
    for problem in problems:
        logger.warning("%s: a line is skipped: %r", path, problem[:100])
    return found
