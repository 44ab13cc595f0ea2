"""What a crawl takes of its machine, and what is left: memory, disk, and how large its stores have grown.

Linux; elsewhere what is not known is 0.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from crawlerproject.stores.crawl_dir import CrawlDir

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STATM = Path("/proc/self/statm")  # proc(5): the second number is the resident set, in pages
_MEMINFO = Path("/proc/meminfo")
_CGROUPS_OF = Path("/proc/self/cgroup")  # cgroups(7): a line each, hierarchy:controllers:path
# Where the second version is mounted and, where a machine still has it, the first one of memory.
_CGROUP_ROOTS = {
    "": (Path("/sys/fs/cgroup"), "memory.max"),
    "memory": (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
}
_PARTS = ("frontier", "warc", "index", "log")  # of a crawl folder
# A crawl of a month has some thousand files, which take some hundredths of a second.
LOOK_SECONDS = 60.0


def machine_facts(folder: Path, min_free_bytes: int) -> dict[str, int]:
    """Bytes, of this process and of the disk on which ``folder`` is; a few system calls."""
    try:
        total, _, free = shutil.disk_usage(folder)
    except OSError:  # the crawl notices by itself
        total = free = 0
    try:
        rss_bytes = int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        rss_bytes = 0
    return {
        "rss_bytes": rss_bytes,
        "memory_bytes": _memory_bytes(),
        "disk_bytes": total,
        "disk_free_bytes": free,
        "disk_min_free_bytes": min_free_bytes,
    }


def _memory_bytes() -> int:
    """What the process may have: the least that its unit, its container or the machine has."""
    try:
        total = int(_MEMINFO.read_bytes().partition(b"MemTotal:")[2].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        return 0
    return min([total, *_cgroup_limits()])


def _cgroup_limits() -> Iterator[int]:
    """Of the process' control group and of each above it; a container may see its own as the root, and none of these.

    A limit holds for all groups below (cgroup-v2.rst, "memory.max").
    """
    try:
        lines = _CGROUPS_OF.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in _CGROUP_ROOTS:
            continue
        root, name = _CGROUP_ROOTS[controllers]
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):  # seen from within a container, or no limit ("max")
                yield int((folder / name).read_bytes())
            if folder == root:
                break


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
    """Bytes of the files of each store; 0 for one that is not there.

    Without the copies of robots.txt that versions before 1.8 kept: a file a host, hours of looking at millions.
    """
    return {name: _bytes_below(getattr(folder, name), folder.robots_copies) for name in _PARTS}


def _bytes_below(top: Path, without: Path) -> int:
    total = 0
    for folder, folders, names in os.walk(top):
        if folder == str(without):
            folders.clear()
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # renamed or removed meanwhile
                continue
    return total
