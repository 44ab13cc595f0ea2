"""``python -m benchmarks.local_fleet [--rounds 3] [--workers 4] [--hosts 1500]``: a fleet without a server.

First rounds of trouble: workers crawl the small synthetic web while chance kills workers (kill -9) and their
supervisor, stops either (SIGSTOP) and takes a worker's room on the disk. Every page must be archived once, every pause
kept by the server's own log, every WARC strict, ``scrapy audit`` and ``scrapy verify`` clean over the whole.

Then throughput: a broad crawl by one process and by two workers, in turn, with the server on the same machine. Printed
are pages a second and CPU ms a page, of the crawler and of the server, without what starts cost.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from crawlerproject.reports.warc_check import check_file
from tests.crawls.fleet.local_fleets import LocalFleetRun, local_fleet
from tests.web.judge import Verdict, judge_folder, read_visits, show
from tests.web.running import RunningWeb, crawl_command, many_files, measured, small_settings, synthetic_web

_SMALL_FILE_BYTES = 20_000  # beyond it writes of a worker fail as on a full disk
_SHOWN = 3000  # characters of a log
_PAGES_A_HOST = 8  # of the broad crawl, robots.txt beside
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


# --- trouble ------------------------------------------------------------------------------------


def trouble(fleet: LocalFleetRun, chance: random.Random, events: int, *, longest: float) -> list[str]:
    """What chance does to a fleet until it has done enough, or the crawl is over."""
    done: list[str] = []
    kinds = ("kill worker", "kill supervisor", "stop worker", "stop supervisor", "full disk", "kill all")
    while len(done) < events and fleet.supervisor.poll() is None:
        time.sleep(chance.uniform(1.0, 4.0))
        kind, name = chance.choice(kinds), chance.choice(fleet.names)
        with contextlib.suppress(AssertionError, ProcessLookupError, OSError):  # the crawl was over
            _happen(fleet, kind, name, chance.uniform(0.5, longest))
            done.append(f"{kind} ({name})" if "worker" in kind or "disk" in kind else kind)
    return done


def _happen(fleet: LocalFleetRun, kind: str, name: str, seconds: float) -> None:
    if kind == "kill worker":
        fleet.kill(name)
    elif kind == "stop supervisor":
        fleet.supervisor.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        fleet.supervisor.send_signal(signal.SIGCONT)
    elif kind == "stop worker":
        pid = fleet.pid(name)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
    elif kind == "full disk":
        pid = fleet.pid(name)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (_SMALL_FILE_BYTES, resource.RLIM_INFINITY))
        time.sleep(seconds)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        pids = [fleet.pid(each) for each in fleet.names]
        fleet.kill_supervisor()
        for pid in pids if kind == "kill all" else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        fleet.start()


def judged(web: RunningWeb, fleet: LocalFleetRun) -> Verdict:
    """All that must hold afterwards."""
    folders = [fleet.folder / name for name in fleet.names]
    verdict = judge_folder(web.folder, None, workers=folders, host_seconds=0.25, ip_seconds=0.5, log=False)
    for path in (path for folder in folders for path in (folder / "warc").iterdir()):
        verdict.faults += [f"{path.name}: {flaw}" for flaw in check_file(path).flaws]
    for command in (["audit", str(fleet.folder)], ["verify", str(fleet.folder)]):
        asked = subprocess.run([sys.executable, "-m", "scrapy", *command], capture_output=True, text=True, check=False)
        if asked.returncode:
            verdict.faults.append(f"scrapy {command[0]}: {(asked.stdout + asked.stderr)[-500:]}")
    for said in (fleet.said(), *(fleet.output(name) for name in fleet.names)):
        if "Traceback" in said:
            verdict.faults.append(f"in a log: {said[said.index('Traceback') :][:_SHOWN]}")
        verdict.faults += ["the guard had to refuse a request"] * ("guard_refused" in said)
    return verdict


def one_round(folder: Path, given: argparse.Namespace, chance: random.Random) -> int:
    """One crawl under trouble; how many faults it has."""
    with synthetic_web(folder / "web") as web, local_fleet(web, folder / "crawl", given.workers) as fleet:
        for name in fleet.names:
            fleet.until_archiving(name)
        happened = trouble(fleet, chance, given.events, longest=given.longest)
        status = fleet.wait(600.0)
        verdict = judged(web, fleet)
        if status:
            verdict.faults = [f"{name}: {fleet.output(name)[-_SHOWN:]}" for name in fleet.names] + verdict.faults
    print(f"status {status} after: {', '.join(happened)}")
    show(verdict)
    return len(verdict.faults) + (status != 0)


# --- throughput ---------------------------------------------------------------------------------


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


def throughput(folder: Path, given: argparse.Namespace) -> None:
    """One process and two workers in turn; what their starts cost is measured on a web of a few hosts."""
    starts = {workers: crawled(folder / f"start-{workers}", 4, workers) for workers in (0, 2)}
    rates: dict[int, list[float]] = {0: [], 2: []}
    costs: dict[int, list[float]] = {0: [], 2: []}
    for turn in range(given.turns):
        for workers in (0, 2):
            bill = crawled(folder / f"{turn}-{workers}", given.hosts, workers)
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_fleet", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="crawls under trouble")
    parser.add_argument("--workers", type=int, default=4, help="of each of them")
    parser.add_argument("--events", type=int, default=8, help="of trouble in each of them")
    parser.add_argument("--longest", type=float, default=4.0, help="seconds for which something is stopped at most")
    parser.add_argument("--seed", type=int, default=1, help="of chance")
    parser.add_argument("--turns", type=int, default=2, help="of the throughput; 0: none")
    parser.add_argument("--hosts", type=int, default=1500, help="of the broad crawl")
    given = parser.parse_args()
    chance, faults = random.Random(given.seed), 0
    many_files()
    with tempfile.TemporaryDirectory() as name:
        for number in range(given.rounds):
            folder = Path(name, f"round-{number}")
            folder.mkdir()
            faults += one_round(folder, given, chance)
        if given.turns:
            throughput(Path(name), given)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
