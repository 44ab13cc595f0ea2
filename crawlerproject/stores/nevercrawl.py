"""Keeps the never-crawl list as its file has it now; the file may change while a crawl runs."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from crawlerproject.rules.exclusion import Exclusion

logger = logging.getLogger(__name__)

# Changed domains named in one log line; the rest is counted.
_NAMED = 20


class NeverCrawlFile:
    """The list in ``path``, looked at again at most every ``reload_seconds``; no path, no list.

    A file that vanishes or cannot be read keeps the last good list, with a warning: doubt excludes.
    """

    def __init__(self, path: str | os.PathLike[str] | None, reload_seconds: float = 60.0) -> None:
        self.path = Path(path) if path else None
        self.reload_seconds = reload_seconds
        self._exclusion = Exclusion()
        self._stamp: tuple[int, int, int] | None = None  # mtime ns, size, inode of what was read
        self._next_look: float | None = None
        self._complained = False

    def current(self, now: float) -> Exclusion:
        """The list; ``now`` in seconds of any steady clock. Costs a comparison between two looks."""
        if self._next_look is None or now >= self._next_look:
            self._next_look = now + self.reload_seconds
            self._look()
        return self._exclusion

    @property
    def read_version(self) -> int | None:
        """Modification time (ns) of the file as it was read last; None when it never was."""
        return self._stamp[0] if self._stamp else None

    def line(self, number: int) -> str:
        """Line ``number`` (from 1) as it stands in the file now; "" when it is gone."""
        if self.path is None:
            return ""
        try:
            return self.path.read_text(encoding="utf-8", errors="replace").splitlines()[number - 1].strip()
        except (OSError, IndexError):
            return ""

    def _look(self) -> None:
        if self.path is None:
            return
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp == self._stamp:
                return
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            self._complain(error)
            return
        self._complained = False
        self._take(lines, first=self._stamp is None)
        self._stamp = stamp

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

    def _complain(self, error: OSError) -> None:
        if self._complained:
            return
        self._complained = True
        logger.warning(
            "Never-crawl list %s cannot be read (%s); the last good list, %d entries, stays in force",
            self.path,
            error.strerror,
            len(self._exclusion),
        )


def _report(what: str, domains: frozenset[str]) -> None:
    """Name the domains that a reload changed."""
    if domains:
        named = sorted(domains)
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        logger.info("Never-crawl list: %s: %s%s", what, ", ".join(named[:_NAMED]), more)
