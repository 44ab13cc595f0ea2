"""Measures the browser's processes from outside and ends a renderer that uses too much memory.

Linux only, by /proc; elsewhere only Chromium's own limits hold. Processes that do not descend from this one are never
touched.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import NamedTuple

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_SHARED_FIELD, _RESIDENT_FIELD = 2, 1  # /proc/PID/statm


class BrowserProcess(NamedTuple):
    """One process of a browser that this process started."""

    pid: int
    private_bytes: int  # resident memory that is not shared with files or other processes
    renderer: bool


def browser_processes() -> list[BrowserProcess]:
    """All Chromium processes below this one; about 1 ms for 300 processes on the machine."""
    parents = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and (stat := _read(f"/proc/{name}/stat")):
                # The command's name is in parentheses and may hold anything; the parent is the second field after it.
                parents[int(name)] = int(stat.rpartition(b")")[2].split()[1])
    ours, own = [], os.getpid()
    for pid in parents:
        ancestor = pid
        while (ancestor := parents.get(ancestor, 0)) not in (0, own):
            pass
        if ancestor == own and b"--type=" in (command := _read(f"/proc/{pid}/cmdline")):
            ours.append(BrowserProcess(pid, _private_bytes(pid), b"--type=renderer" in command))
    return ours


def end_oversized(processes: list[BrowserProcess], page_bytes: int) -> int:
    """Kill renderers above ``page_bytes``, each of which serves one page; the number killed."""
    ended = 0
    for process in processes:
        if process.renderer and process.private_bytes > page_bytes:
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
                ended += 1
    return ended


def _private_bytes(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split()
    return (int(fields[_RESIDENT_FIELD]) - int(fields[_SHARED_FIELD])) * _PAGE_BYTES if fields else 0


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
