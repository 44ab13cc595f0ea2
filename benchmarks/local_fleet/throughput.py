"""A broad crawl by one process and by two workers, in turn."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

from tests.web.judge import read_visits
from tests.web.running import crawl_command, measured, small_settings, synthetic_web

_PAGES_A_HOST = 8  # of the broad crawl, robots.txt beside
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Bill(NamedTuple):
    """What a crawl took."""

    pages: int
    seconds: float  # from the first request to the last answer
    crawler_cpu: float  # seconds
    server_cpu: float


def cpu_seconds(pid: int) -> float:
    """Of a process that runs."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS


def crawled(folder: Path, hosts: int, workers: int) -> Bill:
    """A broad crawl by one process (0 workers), or by so many workers."""
    arguments = ("--profile", "broad", "--hosts", str(hosts), "--response-seconds", "0.001")
    with synthetic_web(folder / "web", *arguments) as web:
        settings = {**small_settings(web), "SCOPE_MAX_URLS_PER_HOST": str(_PAGES_A_HOST), "COMMIT_SECONDS": "1"}
        command = crawl_command(web.folder / "seeds.txt", folder / "crawl", web.folder / "hosts", settings)
        if workers:
            at = command.index("crawl")
            command = [*command[:at], "fleet", *command[at + 2 :], "--workers", str(workers)]
        before = cpu_seconds(web.pid)
        spent = measured(command, folder / "log")
        server = cpu_seconds(web.pid) - before
        if spent.status:
            sys.exit((folder / "log").read_text()[-3000:])
        visits = read_visits(web.folder / "server.jsonl")
    seconds = max(visit.end for visit in visits) - visits[0].start
    return Bill(len(visits), seconds, spent.cpu_seconds, server)


def throughput(folder: Path, hosts: int, turns: int) -> None:
    """One process and two workers in turn; what their starts cost is measured on a web of a few hosts."""
    starts = {workers: crawled(folder / f"start-{workers}", 4, workers) for workers in (0, 2)}
    rates: dict[int, list[float]] = {0: [], 2: []}
    costs: dict[int, list[float]] = {0: [], 2: []}
    for turn in range(turns):
        for workers in (0, 2):
            bill = crawled(folder / f"{turn}-{workers}", hosts, workers)
            pages = bill.pages - starts[workers].pages
            cost = (bill.crawler_cpu - starts[workers].crawler_cpu) / pages * 1000
            served = (bill.server_cpu - starts[workers].server_cpu) / pages * 1000
            rates[workers].append(bill.pages / bill.seconds)
            costs[workers].append(cost)
            who = f"{workers} workers" if workers else "one process"
            print(
                f"{who:<12} {bill.pages:,} requests, {rates[workers][-1]:.0f} a second; CPU a request: crawler "
                f"{cost:.2f} ms, server {served:.2f} ms",
                flush=True,
            )
    rate, cost = (
        max(both[2]) / max(both[0]) if both is rates else min(both[2]) / min(both[0]) for both in (rates, costs)
    )
    print(f"two workers against one process: {rate:.2f} times the rate, {cost:.2f} times the CPU a request")
