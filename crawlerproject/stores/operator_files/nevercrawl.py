"""Keeps the never-crawl lists as their files have them now; a file may change, or come, while a crawl runs."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from crawlerproject.rules.url.exclusion import Exclusion
from crawlerproject.stores.operator_files.watched_file import WatchedFile

logger = logging.getLogger(__name__)

# Changed domains named in one log line; the rest is counted.
_NAMED = 20


RELOAD_SECONDS = 1.0
"""A stat a second costs nothing, and who asks to be left alone is owed no second more."""


class Listing(NamedTuple):
    """Where a list excludes a host: the line of a file, from 1, and its text there now."""

    path: Path
    line: int
    text: str


class NeverCrawlFile:
    """The list in ``path``, looked at again at most every ``reload_seconds``; no path, no list.

    A file that vanishes or cannot be read keeps the last good list, with a warning: doubt excludes. An ``optional``
    one may not be there yet.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, reload_seconds: float = RELOAD_SECONDS, *, optional: bool = False
    ) -> None:
        self.reload_seconds = reload_seconds
        self._file = WatchedFile(path, 0.0, "Never-crawl list", optional=optional)
        self._exclusion = Exclusion()
        self._next_look = float("-inf")

    def current(self, now: float) -> Exclusion:
        """The list; ``now`` in seconds of any steady clock. Costs a comparison between two looks."""
        if now >= self._next_look:
            self._next_look = now + self.reload_seconds
            first = self._file.version is None
            if (lines := self._file.changed(now)) is not None:
                self._take(lines, first=first)
        return self._exclusion

    @property
    def path(self) -> Path | None:
        """Where the list is."""
        return self._file.path

    @property
    def read_version(self) -> int | None:
        """Modification time (ns) of the file as it was read last; None when it never was."""
        return self._file.version

    def listing(self, host_name: str, now: float) -> Listing | None:
        """The line that excludes ``host_name``; None when none does."""
        number = self.current(now).line_of(host_name)
        if number is None or self.path is None:
            return None
        return Listing(self.path, number, self.line(number))

    def listings(self, now: float) -> list[tuple[str, Listing]]:
        """Every listed domain with its line, in the order of the file."""
        path, entries = self.path, self.current(now).entries
        if path is None or not entries:
            return []
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        found = sorted((number, domain) for domain, number in entries.items() if number <= len(lines))
        return [(domain, Listing(path, number, lines[number - 1].strip())) for number, domain in found]

    def line(self, number: int) -> str:
        """Line ``number`` (from 1) as it stands in the file now; "" when it is gone."""
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
    """All lists that a crawl honours; every one but the first may not be there yet."""

    def __init__(self, paths: Sequence[str | os.PathLike[str] | None], reload_seconds: float = RELOAD_SECONDS) -> None:
        self.reload_seconds = reload_seconds
        self.files = [NeverCrawlFile(path, 0.0, optional=place > 0) for place, path in enumerate(paths) if path]
        self._found: list[Exclusion] = []
        self._all = Exclusion()
        self._next_look = float("-inf")

    def current(self, now: float) -> Exclusion:
        """What any of them excludes; ``now`` in seconds of any steady clock. Costs a comparison between two looks."""
        if now >= self._next_look:
            self._next_look = now + self.reload_seconds
            found = [file.current(now) for file in self.files]
            if len(found) != len(self._found) or any(map(_differ, found, self._found)):
                self._found, self._all = found, Exclusion()
                for one in found:
                    self._all |= one
        return self._all

    @property
    def versions(self) -> dict[str, int | None]:
        """Modification time (ns) of each file, by absolute path, as it was read last; None: it was not there."""
        return {str(file.path.absolute()): file.read_version for file in self.files if file.path is not None}

    def listing(self, host_name: str, now: float) -> Listing | None:
        """The first line that excludes ``host_name``; None when none does."""
        self.current(now)
        return next((found for file in self.files if (found := file.listing(host_name, now)) is not None), None)


def _differ(one: Exclusion, other: Exclusion) -> bool:
    return one is not other  # a list that is read again is a new one


def _report(what: str, domains: frozenset[str]) -> None:
    """Name the domains that a reload changed."""
    if domains:
        named = sorted(domains)
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        logger.info("Never-crawl list: %s: %s%s", what, ", ".join(named[:_NAMED]), more)
