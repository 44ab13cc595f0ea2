"""The never-crawl lists as their files are now; a file may change, or be created, while a crawl runs."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

from crawlerproject.rules.url.exclusion import Exclusion
from crawlerproject.stores.operator_files.watched_file import WatchedFile

logger = logging.getLogger(__name__)

# Changed domains named in one log line; the rest is counted.
_NAMED = 20


class Listing(NamedTuple):
    """The line that excludes a host: its file, its number, from 1, and its current text."""

    path: Path
    line: int
    text: str


class NeverCrawlFile:
    """The list in ``path``, checked for changes every ``reload_seconds``; without a path it is empty.

    When the file vanishes or cannot be read, the last good list stays in force, with a warning: doubt excludes. An
    ``optional`` file may not exist yet.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, reload_seconds: float = inf, *, optional: bool = False
    ) -> None:
        self._file = WatchedFile(path, reload_seconds, "Never-crawl list", optional=optional)
        self._exclusion = Exclusion()

    def current(self, now: float) -> Exclusion:
        """The list; ``now`` in seconds of any steady clock."""
        first = self._file.version is None
        if (lines := self._file.changed(now)) is not None:
            self._take(lines, first=first)
        return self._exclusion

    @property
    def path(self) -> Path | None:
        """The list's file; None when the setting is empty."""
        return self._file.path

    @property
    def read_version(self) -> int | None:
        """Modification time (ns) of the file when it was last read; None before that."""
        return self._file.version

    def listing(self, host_name: str, now: float) -> Listing | None:
        """The line of this file that excludes ``host_name``; None when none does."""
        number = self.current(now).line_of(host_name)
        if number is None or self.path is None:
            return None
        return Listing(self.path, number, self.line(number))

    def listings(self, now: float) -> list[tuple[str, Listing]]:
        """Every listed domain and its line, in file order."""
        path, entries = self.path, self.current(now).entries
        if path is None or not entries:
            return []
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        found = sorted((number, domain) for domain, number in entries.items() if number <= len(lines))
        return [(domain, Listing(path, number, lines[number - 1].strip())) for number, domain in found]

    def line(self, number: int) -> str:
        """The current text of line ``number`` (from 1); "" when the file has no such line any more."""
        if self.path is None:
            return ""
        try:
            return self.path.read_text(encoding="utf-8", errors="replace").splitlines()[number - 1].strip()
        except (OSError, IndexError):
            return ""

    def _take(self, lines: list[str], *, first: bool) -> None:
        exclusion, problems = Exclusion.parse(lines)
        for problem in problems:
            logger.warning("%s line %d is skipped: %r %s", self.path, problem.line, problem.text, problem.why)
        if first:
            logger.info("Never-crawl list %s: %d entries", self.path, len(exclusion))
        else:
            _report("excluded from now on", exclusion.domains - self._exclusion.domains)
            _report("excluded no more", self._exclusion.domains - exclusion.domains)
        self._exclusion = exclusion


class NeverCrawlLists:
    """All lists that a crawl honours; only the first must exist."""

    def __init__(self, paths: Sequence[str | os.PathLike[str] | None], reload_seconds: float = inf) -> None:
        self.reload_seconds = reload_seconds
        self.files = [NeverCrawlFile(path, 0.0, optional=place > 0) for place, path in enumerate(paths) if path]
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
            if len(found) != len(self._found) or any(map(_differ, found, self._found)):
                self._found, self._all = found, Exclusion()
                for one in found:
                    self._all |= one
        return self._all

    @property
    def versions(self) -> dict[str, int | None]:
        """Modification time (ns) of each file, by absolute path, when it was last read; None for a missing file."""
        return {str(file.path.absolute()): file.read_version for file in self.files if file.path is not None}

    def listing(self, host_name: str, now: float) -> Listing | None:
        """The first line that excludes ``host_name``; None when none does."""
        self.current(now)
        return next((found for file in self.files if (found := file.listing(host_name, now)) is not None), None)


def _differ(one: Exclusion, other: Exclusion) -> bool:
    return one is not other  # reading a file again makes a new object


def _report(what: str, domains: frozenset[str]) -> None:
    """Name the domains that a reload changed."""
    if domains:
        named = sorted(domains)
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        logger.info("Never-crawl list: %s: %s%s", what, ", ".join(named[:_NAMED]), more)
