"""The paces of single hosts as HOST_PACE_FILE has them now; the file may change while a crawl runs."""

from __future__ import annotations

import logging
import os
from math import inf

from crawlerproject.rules.politeness.host_overrides import HostPaces
from crawlerproject.rules.politeness.pace import PacePreset
from crawlerproject.stores.operator_files.watched_file import WatchedFile

logger = logging.getLogger(__name__)


class HostPaceFile:
    """The file at ``path``, checked for changes every ``reload_seconds``; without a path all hosts keep their pace."""

    def __init__(self, path: str | os.PathLike[str] | None, reload_seconds: float = inf) -> None:
        self._file = WatchedFile(path, reload_seconds, "Host paces")
        self._paces = HostPaces()

    def preset(self, host: str, base: PacePreset, now: float) -> PacePreset:
        """The pace of a host key, ``base`` unless the file says otherwise; ``now`` in seconds of any steady clock."""
        lines = self._file.changed(now)
        if lines is not None:
            self._read(lines)
        return self._paces.preset(host, base)

    def _read(self, lines: list[str]) -> None:
        self._paces, problems = HostPaces.parse(lines)
        for problem in problems:
            logger.warning("%s line %d is skipped: %r %s", self._file.path, problem.line, problem.text, problem.why)
        logger.info("Host paces %s: %d entries", self._file.path, len(self._paces))
