"""Hosts, and URL templates of hosts, that the operator has declared to be no traps (TRAP_ALLOW_FILE)."""

from __future__ import annotations

import logging
import os
from math import inf

from crawlerproject.rules.traps.template_yield import LISTS
from crawlerproject.stores.operator_files.watched_file import WatchedFile

logger = logging.getLogger(__name__)

EVERY_HOST = "*"


class TrapAllowFile:
    """Each line is a host key (``*``: every host), or a host key and a template as ``scrapy traps`` prints it.

    A file that cannot be read changes nothing and is reported once. Without a path nothing is allowed.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, reload_seconds: float = inf) -> None:
        self._file = WatchedFile(path, reload_seconds, "Trap allow list")
        self._allowed: frozenset[tuple[str, str]] = frozenset()

    def allows(self, host: str, template: str, now: float) -> bool:
        """Whether the file declares this template of the host to be no trap ("" or "*": any template)."""
        lines = self._file.changed(now)
        if lines is not None:
            self._allowed = frozenset(self._read(lines))
            logger.info("Trap allow list %s: %d entries", self._file.path, len(self._allowed))
        allowed = self._allowed
        return bool(allowed) and ((host, "") in allowed or (EVERY_HOST, "") in allowed or (host, template) in allowed)

    def _read(self, lines: list[str]) -> list[tuple[str, str]]:
        allowed = []
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) > 2 or (len(words) == 2 and words[1] != LISTS and words[1][0] not in "/@"):
                logger.warning(
                    "%s line %d is skipped: a host, or a host and a template, is wanted", self._file.path, number
                )
                continue
            allowed.append((words[0].lower(), words[1] if len(words) == 2 else ""))
        return allowed
