"""Files that the operator may edit while a crawl runs: never-crawl lists, paces of hosts, hosts that are no traps.

``withdrawn.txt`` in a crawl's folder: what the owners of sites have asked back (``scrapy withdraw`` writes it).

All that shows what a crawl has archived asks this list. The indexes are made without what it covers, so that programs
of others that read them are right as well. What reads WARC files from end to end, or the index of one that is not
closed, leaves it out (``captures_in``, ``shown_members``, ``Captures``). What looks after the files themselves
(``verify``, ``recover``) sees all of it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from errno import EINVAL
from math import inf
from operator import is_not
from pathlib import Path
from typing import ClassVar, NamedTuple

from crawlerproject.rules.archive.http_messages import PACKED
from crawlerproject.rules.archive.withdrawal import Withdrawal, Withdrawn
from crawlerproject.rules.politeness.pauses import HostPaces, PacePreset
from crawlerproject.rules.printable import counted
from crawlerproject.rules.traps.template_yield import LISTS
from crawlerproject.rules.url.refused_urls import Exclusion, UnusableLine
from crawlerproject.rules.web_encodings import text_of
from crawlerproject.stores.atomic_files import append_lines, replace_file, storage_errors
from crawlerproject.stores.crawl_dir import CrawlDir

logger = logging.getLogger(__name__)

RELOAD_SECONDS = 1.0
"""Between two looks at a file (NEVERCRAWL_RELOAD_SECONDS). A look takes some microseconds, and what a site's owner has
asked for holds within two seconds (ours)."""

# Changed domains named in one log line; the rest is counted.
_NAMED = 20

EVERY_HOST = "*"


def lines_of(path: Path) -> list[str]:
    """The lines of a file of the operator's, in UTF-8 or UTF-16 (some of Windows' editors), packed with gzip or not.

    Raises OSError.
    """
    octets = path.read_bytes()
    if octets.startswith(PACKED[0]):
        import gzip  # few are
        import zlib

        try:
            octets = gzip.decompress(octets)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise OSError(EINVAL, f"damaged gzip: {error}") from error
    return text_of(octets, None).splitlines()


class WatchedFile:
    """The file at ``path``, checked for changes every ``reload_seconds``; without a path it has no lines.

    A file that cannot be read changes nothing and is reported once, under its name. An ``optional`` file may not exist
    yet.
    """

    name: ClassVar[str]

    def __init__(
        self, path: str | os.PathLike[str] | None = None, reload_seconds: float = inf, *, optional: bool = False
    ) -> None:
        self.path = Path(path) if path else None
        self._reload_seconds = reload_seconds
        self._optional = optional
        self._stamp: tuple[int, int, int] | None = None  # mtime (ns), size and inode when it was last read
        self._looked_at = self._next_look = inf
        self._complained = False

    @property
    def version(self) -> int | None:
        """Modification time (ns) when the file was last read; None before that."""
        return self._stamp[0] if self._stamp else None

    def changed(self, now: float) -> list[str] | None:
        """The file's lines if it has changed since the last call, else None; ``now`` in seconds of any steady clock."""
        if self.path is None or self._looked_at <= now < self._next_look:
            return None
        self._looked_at, self._next_look = now, now + self._reload_seconds
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp == self._stamp:
                return None
            lines = lines_of(self.path)
        except OSError as error:
            missing = self._optional and self._stamp is None and isinstance(error, FileNotFoundError)
            if not self._complained and not missing:
                holds = "what was read last holds" if self._stamp else "there is none until it can be"
                logger.warning("%s %s cannot be read (%s); %s", self.name, self.path, error.strerror, holds)
            self._complained = not missing
            return None
        self._complained, self._stamp = False, stamp
        return lines

    def _say_skipped(self, problems: Sequence[UnusableLine]) -> None:
        for problem in problems:
            logger.warning("%s line %d is skipped: %r %s", self.path, problem.line, problem.text, problem.why)


class Listing(NamedTuple):
    """The line that excludes a host: its file, its number, from 1, and its current text."""

    path: Path
    line: int
    text: str


class NeverCrawlFile(WatchedFile):
    """A list of excluded domains; without a path it is empty.

    When the file vanishes or cannot be read, the last good list stays in force, with a warning: doubt excludes.
    """

    name = "Never-crawl list"
    _exclusion = Exclusion()

    def current(self, now: float) -> Exclusion:
        """The list; ``now`` in seconds of any steady clock."""
        before, first = self._exclusion, self.version is None
        if (lines := self.changed(now)) is not None:
            self._exclusion, problems = Exclusion.parse(lines)
            self._say_skipped(problems)
            if first:
                logger.info("Never-crawl list %s: %s", self.path, counted(len(self._exclusion), "entry", "entries"))
            else:
                _report("excluded from now on", self._exclusion.domains - before.domains)
                _report("excluded no more", before.domains - self._exclusion.domains)
        return self._exclusion

    def listing(self, host_name: str, now: float) -> Listing | None:
        """The line of this file that excludes ``host_name``; None when none does.

        Its text is "" when the file has no such line any more.
        """
        number = self.current(now).line_of(host_name)
        if number is None or self.path is None:
            return None
        try:
            text = lines_of(self.path)[number - 1].strip()
        except (OSError, IndexError):
            text = ""
        return Listing(self.path, number, text)

    def listings(self, now: float) -> list[tuple[str, Listing]]:
        """Every listed domain and its line, in file order."""
        path, entries = self.path, self.current(now).entries
        if path is None or not entries:
            return []
        lines = lines_of(path)
        found = sorted((number, domain) for domain, number in entries.items() if number <= len(lines))
        return [(domain, Listing(path, number, lines[number - 1].strip())) for number, domain in found]


class NeverCrawlLists:
    """All lists that a crawl honours; only the first must exist, unless it is ``by_default``."""

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str] | None],
        reload_seconds: float = inf,
        *,
        by_default: bool = False,
    ) -> None:
        self.reload_seconds = reload_seconds
        self.files = [
            NeverCrawlFile(path, 0.0, optional=by_default or place > 0) for place, path in enumerate(paths) if path
        ]
        self._found: list[Exclusion] = []
        self._all = Exclusion()
        self._looked_at = self._next_look = inf

    def current(self, now: float) -> Exclusion:
        """The union of the lists; ``now`` in seconds. Two comparisons unless a check is due.

        Clocks that differ (the guard's, and that of the frontier in a fleet) only make checks more frequent.
        """
        if not self._looked_at <= now < self._next_look:
            self._looked_at, self._next_look = now, now + self.reload_seconds
            found = [file.current(now) for file in self.files]
            if len(found) != len(self._found) or any(map(is_not, found, self._found)):
                self._found, self._all = found, Exclusion()
                for one in found:
                    self._all |= one
        return self._all

    @property
    def versions(self) -> dict[str, int | None]:
        """Modification time (ns) of each file, by absolute path, when it was last read; None for a missing file."""
        return {str(file.path.absolute()): file.version for file in self.files if file.path is not None}

    def listing(self, host_name: str, now: float) -> Listing | None:
        """The first line that excludes ``host_name``; None when none does."""
        self.current(now)
        return next((found for file in self.files if (found := file.listing(host_name, now)) is not None), None)


def _report(what: str, domains: frozenset[str]) -> None:
    """Name the domains that a reload changed."""
    if domains:
        named = sorted(domains)
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        logger.info("Never-crawl list: %s: %s%s", what, ", ".join(named[:_NAMED]), more)


class HostPaceFile(WatchedFile):
    """The paces of single hosts; without a path all hosts keep their pace."""

    name = "Host paces"
    _paces = HostPaces()

    def preset(self, host: str, base: PacePreset, now: float) -> PacePreset:
        """The pace of a host key, ``base`` unless the file says otherwise; ``now`` in seconds of any steady clock."""
        if (lines := self.changed(now)) is not None:
            self._paces, problems = HostPaces.parse(lines)
            self._say_skipped(problems)
            logger.info("Host paces %s: %s", self.path, counted(len(self._paces), "entry", "entries"))
        return self._paces.preset(host, base)


class TrapAllowFile(WatchedFile):
    """Each line is a host key (``*``: every host), or a host key and a template as ``scrapy traps`` prints it.

    Without a path nothing is allowed.
    """

    name = "Trap allow list"
    _allowed: frozenset[tuple[str, str]] = frozenset()

    def allows(self, host: str, template: str, now: float) -> bool:
        """Whether the file declares this template of the host to be no trap ("" or "*": any template)."""
        if (lines := self.changed(now)) is not None:
            self._allowed = frozenset(self._read(lines))
            logger.info("Trap allow list %s: %s", self.path, counted(len(self._allowed), "entry", "entries"))
        allowed = self._allowed
        return bool(allowed) and ((host, "") in allowed or (EVERY_HOST, "") in allowed or (host, template) in allowed)

    def _read(self, lines: list[str]) -> list[tuple[str, str]]:
        allowed = []
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) > 2 or (len(words) == 2 and words[1] != LISTS and words[1][0] not in "/@"):
                logger.warning("%s line %d is skipped: a host, or a host and a template, is wanted", self.path, number)
                continue
            allowed.append((words[0].lower(), words[1] if len(words) == 2 else ""))
        return allowed


_FIRST_LINE = b"# What was asked back; scrapy withdraw writes it (docs/complaints.md).\n"
_LIST_MODE = 0o644  # who was promised what is no secret


def withdrawn_path(folder: Path) -> Path:
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
        text = withdrawn_path(folder).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return Withdrawn()
    return _parsed(withdrawn_path(folder), text.decode("utf-8", "replace").splitlines())


def withdrawn_from(archive: Path) -> Withdrawn:
    """What was withdrawn of the crawl that an archive file, or an index, lies in."""
    return withdrawn_of(archive.parent.parent)


def add_lines(path: Path, line: str) -> None:
    """Append a line or several, entries' or comments. Raises StorageError."""
    with storage_errors(path):
        append_lines(path, line.encode(), _LIST_MODE, os.O_NOFOLLOW, first=_FIRST_LINE)


def change_lines(path: Path, changes: Mapping[Withdrawal, Withdrawal | None], why: str = "") -> None:
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

    name = "List"
    _withdrawn = Withdrawn()

    def __init__(self, folder: Path | None, reload_seconds: float = inf) -> None:
        super().__init__(withdrawn_path(folder) if folder is not None else None, reload_seconds, optional=True)

    def current(self, now: float) -> Withdrawn:
        """The list; ``now`` in seconds of any steady clock."""
        if self._looked_at <= now < self._next_look:  # as for nearly every page
            return self._withdrawn
        if (lines := self.changed(now)) is not None and self.path is not None:
            self._withdrawn = _parsed(self.path, lines)
            logger.info("Withdrawn: %s of %s", counted(len(self._withdrawn.entries), "entry", "entries"), self.path)
        return self._withdrawn


def _parsed(path: Path, lines: list[str]) -> Withdrawn:
    found, problems = Withdrawn.parse(lines)
    for problem in problems:
        logger.warning("%s: a line is skipped: %r", path, problem[:100])
    return found
