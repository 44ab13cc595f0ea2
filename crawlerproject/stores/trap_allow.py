"""Keeps the operator's word on traps as its file has it now: hosts, or templates of hosts, that are none."""

from __future__ import annotations

import logging
import os
from pathlib import Path

logger = logging.getLogger(__name__)

EVERY_HOST = "*"


class TrapAllowFile:
    """Lines of a host key (``*``: every host), or of one and a template as ``scrapy traps`` prints it.

    A file that cannot be read changes nothing, with one warning; no path, nothing is allowed.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, reload_seconds: float = 60.0) -> None:
        self.path = Path(path) if path else None
        self._reload_seconds = reload_seconds
        self._allowed: frozenset[tuple[str, str]] = frozenset()
        self._stamp: tuple[int, int, int] | None = None  # mtime ns, size, inode of what was read
        self._next_look: float | None = None
        self._complained = False

    def allows(self, host: str, template: str, now: float) -> bool:
        """Whether the operator says that this template of the host ("" or "*": any of it) is no trap."""
        if self.path is None:
            return False
        if self._next_look is None or now >= self._next_look:
            self._next_look = now + self._reload_seconds
            self._look(self.path)
        allowed = self._allowed
        return bool(allowed) and ((host, "") in allowed or (EVERY_HOST, "") in allowed or (host, template) in allowed)

    def _look(self, path: Path) -> None:
        try:
            found = path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp == self._stamp:
                return
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            if not self._complained:
                logger.warning("Trap allow list %s cannot be read (%s); what it said last holds", path, error.strerror)
            self._complained = True
            return
        self._complained, self._stamp = False, stamp
        self._allowed = frozenset(self._read(lines))
        logger.info("Trap allow list %s: %d entries", path, len(self._allowed))

    def _read(self, lines: list[str]) -> list[tuple[str, str]]:
        allowed = []
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) > 2 or (len(words) == 2 and not words[1].startswith("/")):
                logger.warning("%s line %d is skipped: a host, or a host and a template, is wanted", self.path, number)
                continue
            allowed.append((words[0].lower(), words[1] if len(words) == 2 else ""))
        return allowed
