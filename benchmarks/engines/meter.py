"""What a command costs with all that it starts: Spark's JVM loses its parent in the end, but stays in the session."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LOOK_SECONDS = 0.2
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Of /proc/PID/stat behind the name (proc(5)): session, utime (stime follows), rss.
_SESSION, _UTIME, _RSS = 3, 11, 21


class Cost(NamedTuple):
    """Of a command and its children."""

    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int  # resident, summed up over processes that live at the same time: what they share counts twice


def measured(command: list[str], cwd: Path) -> tuple[Cost, str]:
    """Run to the end; its cost, and what it printed. Raises RuntimeError when it fails."""
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    ended, cpu, peak = threading.Event(), dict[int, float](), [0]

    def look() -> None:
        while not ended.wait(_LOOK_SECONDS):
            resident = 0
            for pid, seconds, bytes_now in _of_session(process.pid):
                cpu[pid] = seconds
                resident += bytes_now
            peak[0] = max(peak[0], resident)

    watch = threading.Thread(target=look)
    watch.start()
    printed, _ = process.communicate()
    ended.set()
    watch.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{printed[-3000:]}")
    return Cost(sum(cpu.values()), time.monotonic() - began, peak[0]), printed


def _of_session(leader: int) -> Iterator[tuple[int, float, int]]:
    """Process, CPU seconds, resident bytes."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[_SESSION]) == leader:
            own = sum(map(int, fields[_UTIME : _UTIME + 2]))
            yield int(path.parent.name), own / _TICKS, int(fields[_RSS]) * _PAGE_BYTES
