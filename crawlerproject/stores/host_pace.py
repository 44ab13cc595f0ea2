"""Keeps the paces of single hosts as their file has them now; the file may change while a crawl runs."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from crawlerproject.rules.host_pace import HostPaces
from crawlerproject.rules.pace import PacePreset

logger = logging.getLogger(__name__)


class HostPaceFile:
    """The file at ``path``, looked at again at most every ``reload_seconds``; no path, no line."""

    def __init__(self, path: str | os.PathLike[str] | None, reload_seconds: float = 60.0) -> None:
        self.path = Path(path) if path else None
        self._reload_seconds = reload_seconds
        self._paces = HostPaces()
        self._stamp: tuple[int, int, int] | None = None  # mtime ns, size, inode of what was read
        self._next_look: float | None = None
        self._complained = False

    def preset(self, host: str, base: PacePreset, now: float) -> PacePreset:
        """The pace of a host key; ``now`` in seconds of any steady clock."""
        if self.path is None:
            return base
        if self._next_look is None or now >= self._next_look:
            self._next_look = now + self._reload_seconds
            self._look(self.path)
        return self._paces.preset(host, base)

    def _look(self, path: Path) -> None:
        try:
            found = path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp == self._stamp:
                return
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            if not self._complained:
                logger.warning("Host paces %s cannot be read (%s); what they said last holds", path, error.strerror)
            self._complained = True
            return
        self._complained, self._stamp = False, stamp
        self._paces, problems = HostPaces.parse(lines)
        for problem in problems:
            logger.warning("%s line %d is skipped: %r %s", path, problem.line, problem.text, problem.why)
        logger.info("Host paces %s: %d entries", path, len(self._paces))
