"""A small file of the operator's that may change while a crawl runs."""

from __future__ import annotations

import logging
import os
from pathlib import Path

logger = logging.getLogger(__name__)


class WatchedFile:
    """The file at ``path``, looked at again at most every ``reload_seconds``; no path, never a line.

    A file that cannot be read changes nothing, with one warning that calls it ``what``; an ``optional`` one may not be
    there yet.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, reload_seconds: float, what: str, *, optional: bool = False
    ) -> None:
        self.path = Path(path) if path else None
        self._reload_seconds = reload_seconds
        self._what = what
        self._optional = optional
        self._stamp: tuple[int, int, int] | None = None  # mtime ns, size, inode of what was read
        self._next_look: float | None = None
        self._complained = False

    @property
    def version(self) -> int | None:
        """Modification time (ns) of the file as it was read last; None when it never was."""
        return self._stamp[0] if self._stamp else None

    def changed(self, now: float) -> list[str] | None:
        """Its lines when they are new, None otherwise; ``now`` in seconds of any steady clock."""
        if self.path is None or (self._next_look is not None and now < self._next_look):
            return None
        self._next_look = now + self._reload_seconds
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp == self._stamp:
                return None
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            missing = self._optional and self._stamp is None and isinstance(error, FileNotFoundError)
            if not self._complained and not missing:
                logger.warning(
                    "%s %s cannot be read (%s); what was read last holds", self._what, self.path, error.strerror
                )
            self._complained = not missing
            return None
        self._complained, self._stamp = False, stamp
        return lines
