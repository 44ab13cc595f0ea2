"""A crawl of the synthetic web by 1, 2, 4, 3 and 1 workers on one machine in turn, judged by the servers' log.

    python -m benchmarks.workers_between_runs [--path 1 2 4 3 1] [--kill] [--rounds 3]

Each number of workers asks for its share of the pages and is stopped; with ``--kill`` all of its processes die instead,
in the middle of what they do. Afterwards every page is archived once, in one folder or another, in whole files, and no
host or address was hurried.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from crawlerproject.reports.warc_check import check_file
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import folders_of
from tests.web.judge import Verdict, judge_folder, show
from tests.web.running import RunningWeb, crawl_command, read_pages, small_settings, start, synthetic_web
from tests.web.waiting import wait_until
from tests.web.zygote import Process

_SECONDS = 300.0
_REQUESTS = 300  # about as many as the crawl makes in all
_PACE = {"PACE_IP_SECONDS": "0.05", "FRONTIER_MAX_REST_SECONDS": "8"}
_IP_SECONDS = 0.05
_HOST_SECONDS = 0.25


def command(web: RunningWeb, crawl: CrawlDir, workers: int) -> list[str]:
    """``scrapy crawl`` or ``scrapy fleet`` on the one folder."""
    made = crawl_command(web.folder / "seeds.txt", crawl, web.folder / "hosts", {**small_settings(web), **_PACE})
    if workers == 1:
        return made
    at = made.index("crawl")
    return [*made[:at], "fleet", *made[at + 2 :], "--workers", str(workers)]


def run(web: RunningWeb, crawl: CrawlDir, path: list[int], *, kill: bool) -> Verdict:
    """All of the path, then the judgement."""
    log, served = crawl.with_suffix(".log"), web.folder / "server.jsonl"
    verdict = Verdict()
    with log.open("wb") as output:
        for place, workers in enumerate(path):
            began = read_pages(served)
            process = start(command(web, crawl, workers), output)
            if place + 1 < len(path):
                _until_asked(served, began + _REQUESTS // len(path), process)
                _end(process, kill=kill)
            elif status := process.wait(_SECONDS):
                verdict.faults.append(f"the last run ended with status {status}: {log.read_text()[-2000:]}")
            print(f"{workers} workers: {read_pages(served) - began} requests", flush=True)
    folders = folders_of(crawl)
    verdict.faults += [f"{file} is still open" for folder in folders for file in folder.open_warcs()]
    for file in (file for folder in folders for file in folder.closed_warcs()):
        verdict.faults += [f"{file.name}: {flaw.what}" for flaw in check_file(file).flaws]
    promised = {"host_seconds": _HOST_SECONDS, "ip_seconds": _IP_SECONDS}
    verdict.add(judge_folder(web.folder, None, workers=folders, log=not kill, **promised))
    return verdict


def _until_asked(served: Path, requests: int, process: Process) -> None:
    wait_until(lambda: read_pages(served) >= requests or process.poll() is not None, seconds=_SECONDS)


def _end(process: Process, *, kill: bool) -> None:
    """Have a process and its children finish what is on its way; or end them at once."""
    if not kill:
        process.terminate()
        process.wait(_SECONDS)
        return
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    for pid in children:
        os.kill(int(pid), signal.SIGKILL)
    process.wait(_SECONDS)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=int, nargs="+", default=[1, 2, 4, 3, 1], help="numbers of workers")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    status = 0
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory(prefix="workers-") as folder, synthetic_web(Path(folder) / "web") as web:
            status |= show(run(web, CrawlDir(Path(folder) / "crawl"), given.path, kill=given.kill))
    sys.exit(status)


if __name__ == "__main__":
    main()
