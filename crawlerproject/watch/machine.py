"""What a crawl takes of its machine, and what is left: memory and disk. Linux; elsewhere what is not known is 0."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STATM = Path("/proc/self/statm")  # proc(5): the second number is the resident set, in pages
_MEMINFO = Path("/proc/meminfo")
_CGROUP_MOST = Path("/sys/fs/cgroup/memory.max")  # cgroup v2, as a container sees its own


def machine_facts(folder: Path, min_free_bytes: int) -> dict[str, int]:
    """Bytes, of this process and of the disk on which ``folder`` is; a few system calls."""
    try:
        total, _, free = shutil.disk_usage(folder)
    except OSError:  # the crawl notices by itself
        total = free = 0
    return {
        "rss_bytes": _rss_bytes(),
        "memory_bytes": _memory_bytes(),
        "disk_bytes": total,
        "disk_free_bytes": free,
        "disk_min_free_bytes": min_free_bytes,
    }


def _rss_bytes() -> int:
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0


def _memory_bytes() -> int:
    """What the process may have: its container's limit, else the machine's memory."""
    try:
        total = int(_MEMINFO.read_bytes().partition(b"MemTotal:")[2].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        return 0
    try:
        return min(total, int(_CGROUP_MOST.read_bytes()))
    except (OSError, ValueError):  # no container, or no limit ("max")
        return total
