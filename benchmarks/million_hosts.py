"""``python -m benchmarks.million_hosts [--hosts N] [--urls N] [--folder DIR]``: a large frontier, looked at.

A crawl's folder with so many hosts and queued URLs, stored row by row as a crawl stores them, and each command run on
it twice: the first run finds its bytecode made. Seconds of CPU and of the clock, and the peak of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, QueuedPage
from crawlerproject.stores.rocks.rocks_store import RocksStore

COMMANDS = (
    *("status", "status --json", "hosts", "hosts --json --sort queued", "hosts --state resting", "traps"),
    *("why www.site-77.com", "why http://www.site-77.com/0", "requests www.site-77.com", "forecast --recrawl"),
)
_BATCH = 5_000  # hosts stored at once


def fill(folder: Path, hosts: int, urls: int) -> None:
    """Hosts of all states, each with its share of the URLs."""
    store, rng, now = RocksStore(folder / "frontier"), random.Random(1), time.time()
    began, each = time.monotonic(), max(1, urls // hosts)
    for first in range(0, hosts, _BATCH):
        changes = Changes()
        for number in range(first, min(hosts, first + _BATCH)):
            host = Host(f"www.site-{number}.com", delay_seconds=1.0 + rng.random() * 4)
            queued = 0 if number % 10 == 0 else rng.randrange(1, 2 * each + 1)
            host.rows, host.known, host.arrival, host.fetched = queued, queued + 9, queued, rng.randrange(100)
            host.next_free = now + rng.uniform(-60.0, 60.0)
            host.samples = tuple(rng.uniform(0.05, 2.0) for _ in range(rng.randrange(6)))
            if number % 50 == 7:
                host.rest_until, host.failures = now + rng.uniform(60.0, 90_000.0), 3
            changes.hosts.append((host.name, host.pack()))
            for at in range(queued):
                page = parse(f"http://{host.name}/{at}")
                changes.queued.append(QueuedPage(host.name, page.key, page.url, 1, at + 1, 2, "L", ""))
        store.apply(changes)
    store.close()
    (folder / "log").mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps({"started": now}))
    print(f"{hosts:,} hosts and {urls:,} URLs stored in {time.monotonic() - began:.0f} s", flush=True)


def measured(words: list[str], folder: Path) -> tuple[float, float, float, int, int]:
    """(seconds, CPU seconds, peak in MiB, lines, status) of a command's second run."""
    command = [sys.executable, "-m", "crawlerproject", *words, "-s", f"CRAWL_DIR={folder}"]
    for _ in range(2):
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout is not None
        lines = process.stdout.read().count(b"\n")
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, lines, os.waitstatus_to_exitcode(status)


def main() -> None:
    """Fill, then a row a command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million_hosts", description=__doc__)
    parser.add_argument("--hosts", type=int, default=1_000_000)
    parser.add_argument("--urls", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="kept, and taken as it is where it is there")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="million-hosts-") as scratch:
        os.environ["PYTHONPYCACHEPREFIX"] = f"{scratch}/bytecode"
        folder = given.folder or Path(scratch, "crawl")
        if not (folder / "frontier").exists():
            folder.mkdir(parents=True, exist_ok=True)
            fill(folder, given.hosts, given.urls)
        print(f"{'command':<34} {'s':>7} {'CPU s':>7} {'MiB':>6} {'lines':>9}  status")
        for words in COMMANDS:
            seconds, cpu, peak, lines, status = measured(words.split(), folder)
            print(f"{words:<34} {seconds:>7.2f} {cpu:>7.2f} {peak:>6.0f} {lines:>9,}  {status}", flush=True)


if __name__ == "__main__":
    main()
