"""Keeps the paces of single hosts as their file has them now; the file may change while a crawl runs."""

from __future__ import annotations

import logging
import os

from crawlerproject.rules.politeness.host_overrides import HostPaces
from crawlerproject.rules.politeness.pace import PacePreset
from crawlerproject.stores.operator_files.watched_file import WatchedFile

logger = logging.getLogger(__name__)


class HostPaceFile:
    """The file at ``path``, looked at again at most every ``reload_seconds``; no path, no line."""

    def __init__(self, path: str | os.PathLike[str] | None, reload_seconds: float = 1.0) -> None:
        self._file = WatchedFile(path, reload_seconds, "Host paces")
        self._paces = HostPaces()

    def preset(self, host: str, base: PacePreset, now: float) -> PacePreset:
        """The pace of a host key; ``now`` in seconds of any steady clock."""
        lines = self._file.changed(now)
        if lines is not None:
            self._read(lines)
        return self._paces.preset(host, base)

    def _read(self, lines: list[str]) -> None:
        self._paces, problems = HostPaces.parse(lines)
        for problem in problems:
            logger.warning("%s line %d is skipped: %r %s", self._file.path, problem.line, problem.text, problem.why)
        logger.info("Host paces %s: %d entries", self._file.path, len(self._paces))
