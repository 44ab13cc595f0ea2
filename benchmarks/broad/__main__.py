"""``python -m benchmarks.broad [--hosts 20000] [--links 27] [--pages 100000] [--workers 2]``: new links, many hosts.

The shape of a crawl of the whole web: each host at its own address, asked once every few seconds, pages that differ,
most links new (``benchmarks/broad/server.py``). Everything is on. Printed are pages a second, CPU a page of the crawler
with all its processes, memory, bytes on the disk a page and a known URL, the shortest pause by the server's clock, and
what ``scrapy audit`` and ``scrapy verify`` say. ``--beside HOSTS,LINKS`` crawls such a web as well, in turn: its CPU a
page is the ratio's other side.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import folders_of
from crawlerproject.watch.machine import sizes
from tests.web.judge import judge_pauses, read_visits
from tests.web.running import PROJECT, crawl_command, many_files, measured, start, wait_for

_FREE_BYTES = 20_000  # a page takes on the disk, archive and frontier (measured: 12,000)
_FOREIGN = 3  # links of a page to other hosts


class Bill(NamedTuple):
    """What a crawl took."""

    pages: int
    seconds: float  # from the first request to the last answer
    cpu_ms: float  # a page, robots.txt among them
    faults: int


@contextlib.contextmanager
def web(folder: Path, hosts: int, links: int, new: float) -> Iterator[None]:
    """Served until it is left; its log is written then."""
    folder.mkdir(parents=True)
    shape = [str(each) for each in (hosts, links, min(_FOREIGN, links), new)]
    server = start([sys.executable, "-m", "benchmarks.broad.server", str(folder), *shape], None, PROJECT)
    try:
        wait_for(folder / "ready", server)
        yield
    finally:
        server.terminate()
        server.wait()


def said(command: str, folder: Path) -> dict[str, Any] | str:
    """What a command finds in the crawl's folder."""
    asked = [sys.executable, "-m", "scrapy", command, str(folder)]
    done = subprocess.run(asked, cwd=PROJECT, capture_output=True, text=True, check=False)
    return "clean" if done.returncode == 0 else done.stdout[-2000:]


def crawled(folder: Path, hosts: int, links: int, given: argparse.Namespace) -> Bill:
    """One crawl and its judgement, printed."""
    delay = f"{given.delay:g}"
    exact = {f"PACE_{each}_SECONDS": delay for each in ("MIN", "MAX", "START", "IP")}
    settings = {"PACE_PRESET": "fixed5", **exact, "LOG_LEVEL": "INFO"}
    with web(folder / "web", hosts, links, given.new):
        command = crawl_command(folder / "web" / "seeds.txt", folder / "crawl", folder / "web" / "hosts", settings)
        command += ["-a", f"max_pages={given.pages}"]
        if given.workers > 1:
            at = command.index("crawl")
            command = [*command[:at], "fleet", *command[at + 2 :], "--workers", str(given.workers)]
        spent = measured(command, folder / "log")
    if spent.status:
        sys.exit((folder / "log").read_text()[-3000:])
    visits = read_visits(folder / "web" / "server.jsonl")
    verdict = judge_pauses(visits, host_seconds=given.delay, ip_seconds=given.delay)
    seconds = max(visit.end for visit in visits) - visits[0].start
    bill = Bill(len(visits), seconds, spent.cpu_seconds / len(visits) * 1000, len(verdict.faults))
    stored = sum((Counter(sizes(each)) for each in folders_of(CrawlDir(folder / "crawl"))), Counter[str]())
    print(
        f"{hosts:,} hosts, {links} links a page: {bill.pages:,} requests in {seconds:.0f} s, "
        f"{bill.pages / seconds:.0f} a second, CPU {bill.cpu_ms:.2f} ms each, memory {spent.peak_bytes >> 20} MiB\n"
        f"  {', '.join(verdict.facts)}; {bill.faults} pauses too short\n"
        f"  on the disk, bytes a request: {json.dumps({each: size // bill.pages for each, size in stored.items()})}\n"
        f"  audit: {said('audit', folder / 'crawl')}; verify: {said('verify', folder / 'crawl')}",
        flush=True,
    )
    return bill


def main() -> int:
    """Crawl, and compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.broad", description=__doc__)
    parser.add_argument("--hosts", type=int, default=20_000)
    parser.add_argument("--links", type=int, default=27, help="of a page")
    parser.add_argument("--new", type=float, default=0.9, help="share of its own host's links that no other page has")
    parser.add_argument("--pages", type=int, default=100_000, help="after which the crawl ends")
    parser.add_argument("--delay", type=float, default=5.0, help="seconds between two requests to a host")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--beside", action="append", default=[], metavar="HOSTS,LINKS", help="and this web as well")
    parser.add_argument("--keep", type=Path, help="a new folder to work in and leave behind")
    given = parser.parse_args()
    many_files()
    with tempfile.TemporaryDirectory(prefix="broad-") as scratch:
        folder = given.keep or Path(scratch)
        needed = given.pages * _FREE_BYTES * (1 + len(given.beside))
        if (free := shutil.disk_usage(folder.parent if given.keep else folder).free) < needed:
            sys.exit(f"{folder} has {free >> 20:,} MiB free; this needs {needed >> 20:,} (fewer --pages, or --keep).")
        first = crawled(folder / "first", given.hosts, given.links, given)
        faults = first.faults
        for number, pair in enumerate(given.beside):
            hosts, links = map(int, pair.split(","))
            beside = crawled(folder / f"beside-{number}", hosts, links, given)
            faults += beside.faults
            print(f"CPU a request: {first.cpu_ms / beside.cpu_ms:.2f} times that of {hosts:,} hosts, {links} links")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
