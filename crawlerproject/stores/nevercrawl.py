"""Keeps the never-crawl list as its file has it now; the file may change while a crawl runs."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from crawlerproject.rules.exclusion import Exclusion
from crawlerproject.stores.watched_file import WatchedFile

logger = logging.getLogger(__name__)

# Changed domains named in one log line; the rest is counted.
_NAMED = 20


class NeverCrawlFile:
    """The list in ``path``, looked at again at most every ``reload_seconds``; no path, no list.

    A file that vanishes or cannot be read keeps the last good list, with a warning: doubt excludes.
    """

    def __init__(self, path: str | os.PathLike[str] | None, reload_seconds: float = 60.0) -> None:
        self.reload_seconds = reload_seconds
        self._file = WatchedFile(path, 0.0, "Never-crawl list")
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


def _report(what: str, domains: frozenset[str]) -> None:
    """Name the domains that a reload changed."""
    if domains:
        named = sorted(domains)
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        logger.info("Never-crawl list: %s: %s%s", what, ", ".join(named[:_NAMED]), more)
