"""How large what a crawl keeps has grown on its own disk, looked at once a minute beside the crawl."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from crawlerproject.stores.crawl_dir import CrawlDir

_PARTS: dict[str, Callable[[CrawlDir], Path]] = {
    "frontier": lambda folder: folder.frontier,
    "warc": lambda folder: folder.warc,
    "index": lambda folder: folder.index,
    "log": lambda folder: folder.log,
}
# A crawl of a month has some thousand files, which take some hundredths of a second.
LOOK_SECONDS = 60.0


class StoreSizes:
    """Of one crawl folder. ``apart(work)`` has the work done where it holds up nothing."""

    def __init__(self, folder: CrawlDir, apart: Callable[[Callable[[], None]], object]) -> None:
        self._folder = folder
        self._apart = apart
        self._next_look = float("-inf")
        self._seen: dict[str, int] = {}

    def now(self, at: float) -> dict[str, int]:
        """Bytes by store as of the last look, empty before the first; ``at`` in seconds of any steady clock."""
        if at >= self._next_look:
            self._next_look = at + LOOK_SECONDS
            self._apart(self._look)
        return self._seen

    def _look(self) -> None:
        self._seen = sizes(self._folder)


def sizes(folder: CrawlDir) -> dict[str, int]:
    """Bytes of the files of each store; 0 for one that is not there, as the frontier of a fleet in Redis."""
    return {name: _bytes_below(part(folder)) for name, part in _PARTS.items()}


def _bytes_below(top: Path) -> int:
    total = 0
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # renamed or removed meanwhile
                continue
    return total
