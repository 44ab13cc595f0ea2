"""What a running soak is measured by, every few seconds: rate, memory, descriptors, store, commits, archive."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from tests.crawls.fleet.local_fleets import LocalFleetRun, children_of, command_line

_PAGE_BYTES = os.sysconf("SC_PAGESIZE")


def worker_pids(fleet: LocalFleetRun) -> dict[str, int]:
    """Name to process of the workers that run at this moment."""
    found = {}
    for pid in children_of(fleet.supervisor.pid):
        for part in command_line(pid):
            if part.startswith("FLEET_WORKER="):
                found[part.partition("=")[2]] = pid
    return found


class Sampler:
    """Looks at the processes of a fleet and at its files."""

    def __init__(self, folder: Path, log: Path) -> None:
        """``folder``: the crawl's; ``log``: the server's."""
        self._folder = folder
        self._log = log
        self._read_until = 0
        self.requests = 0

    def sample(self, fleet: LocalFleetRun) -> dict[str, Any]:
        """All figures of this moment."""
        self.count()
        workers = worker_pids(fleet)
        processes = {"supervisor": fleet.supervisor.pid, **workers}
        for name, pid in workers.items():
            processes |= {f"{name}/{number}": child for number, child in enumerate(children_of(pid))}
        now = time.time()
        return {
            "time": now,
            "requests": self.requests,
            "processes": {name: found for name, pid in processes.items() if (found := _process(pid))},
            "workers": {name: self._worker(self._folder / name, now) for name in fleet.names},
        }

    def count(self) -> int:
        """How many requests the server has logged so far."""
        with contextlib.suppress(FileNotFoundError), self._log.open("rb") as log:
            log.seek(self._read_until)
            while chunk := log.read(1 << 22):
                self.requests += chunk.count(b"\n")
                self._read_until += len(chunk)
        return self.requests

    def _worker(self, folder: Path, now: float) -> dict[str, Any]:
        crawl = CrawlDir(folder)
        status = read_facts(crawl.status)
        return {
            "frontier_bytes": _bytes_below(folder / "frontier"),
            "archive_bytes": _bytes_below(folder / "warc"),
            "warc_files": len(_names(folder / "warc")),
            "index_bytes": _bytes_below(folder / "index"),
            "log_bytes": _bytes_below(folder / "log"),
            "commit_age_seconds": round(now - _last_write(folder / "frontier"), 3),
            "pages_per_second": status.get("pages_per_second"),
            "paused": status.get("progress", {}).get("paused"),
            "queued": status.get("progress", {}).get("queued_urls"),
            "loop_lag_seconds": status.get("lag_seconds"),
            "status": {name: status[name] for name in status if "commit" in name},
        }


def _process(pid: int) -> dict[str, int] | None:
    """Memory and descriptors; None of one that is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return {"pid": pid, "memory_bytes": pages * _PAGE_BYTES, "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}
    except (OSError, IndexError):
        return None


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _bytes_below(folder: Path) -> int:
    """Of all files in a folder and the folders in it; those that vanish meanwhile are none."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(f"{path}/{name}").st_size
    return total


def _last_write(frontier: Path) -> float:
    """When the frontier was written to last, by its write-ahead log: a commit is one write to it. Epoch seconds."""
    latest = 0.0
    for name in _names(frontier):
        if name.endswith(".log"):
            with contextlib.suppress(OSError):
                latest = max(latest, os.stat(frontier / name).st_mtime)
    return latest or time.time()
