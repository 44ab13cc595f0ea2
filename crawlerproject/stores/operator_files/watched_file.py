"""A small file that the operator may edit while a crawl runs."""

from __future__ import annotations

import logging
import os
from math import inf
from pathlib import Path

logger = logging.getLogger(__name__)


class WatchedFile:
    """The file at ``path``, checked for changes every ``reload_seconds``; without a path it has no lines.

    A file that cannot be read changes nothing and is reported once, under the name ``what``. An ``optional`` file may
    not exist yet.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, reload_seconds: float, what: str, *, optional: bool = False
    ) -> None:
        self.path = Path(path) if path else None
        self._reload_seconds = reload_seconds
        self._what = what
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
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            missing = self._optional and self._stamp is None and isinstance(error, FileNotFoundError)
            if not self._complained and not missing:
                holds = "what was read last holds" if self._stamp else "there is none until it can be"
                logger.warning("%s %s cannot be read (%s); %s", self._what, self.path, error.strerror, holds)
            self._complained = not missing
            return None
        self._complained, self._stamp = False, stamp
        return lines
