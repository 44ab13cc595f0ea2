"""``python -m benchmarks.real_pages [--pages all|N] [--peers]``: crawl the real pages, judge it, say what it cost.

Judged by nginx's access log: every page that links reach archived exactly once, both logs in agreement request by
request, no pause shorter than promised, never two requests at once at a host or an address.
"""

from __future__ import annotations

import argparse
import pstats
import sys
import tempfile
from pathlib import Path

from benchmarks.real_pages.peers import stock_scrapy, wget
from benchmarks.real_pages.site import RealSite, build, install, nginx
from benchmarks.real_pages.walker import walk
from tests.web.judge import (
    Verdict,
    judge_captures,
    judge_log,
    judge_pauses,
    read_attempts,
    read_captures,
    read_visits,
    show,
)
from tests.web.running import Spent, crawl_command, many_files, measured

PACE_SECONDS = 0.02  # per host and per address: short enough that the processor, not politeness, is the limit
_PROFILED = 45  # functions shown: they hold about three quarters of the time
_TAIL = 2000  # characters of a crawl's output shown when it failed


def settings() -> dict[str, str]:
    pace = str(PACE_SECONDS)
    quick = {"PACE_MIN_SECONDS": pace, "PACE_START_SECONDS": pace, "PACE_IP_SECONDS": pace}
    return {"PACE_PRESET": "mirror", "RENDER": "never", "LOG_LEVEL": "INFO", **quick}


def crawl(site: RealSite, folder: Path) -> Spent:
    """Our crawl of all hosts, into ``folder``."""
    command = crawl_command(site.folder / "seeds.txt", folder, site.folder / "hosts", settings(), scope="host")
    spent = measured(command, site.folder / "crawl.log")
    if spent.status:
        print((site.folder / "crawl.log").read_text()[-_TAIL:])
        sys.exit(f"the crawl ended with status {spent.status}")
    return spent


def profile(site: RealSite, folder: Path, pages: int) -> None:
    """Crawl once more under Python's profiler and print where the time goes, in microseconds a page."""
    stats = folder.with_suffix(".prof")
    command = crawl_command(site.folder / "seeds.txt", folder, site.folder / "hosts", settings(), scope="host")
    at = command.index("scrapy") - 1  # ["python", "-m", "scrapy", ...]
    measured([*command[:at], "-m", "cProfile", "-o", str(stats), *command[at:]], site.folder / "profile.log")
    rows = pstats.Stats(str(stats)).stats  # type: ignore[attr-defined]
    print(f"\n{'own µs':>8} {'with calls':>10} {'calls':>7}  function (a page, under the profiler)")
    for (path, number, name), (_, calls, own, whole, _) in sorted(rows.items(), key=lambda row: -row[1][2])[:_PROFILED]:
        where = f"{'/'.join(Path(path).parts[-2:])}:{number} " if number else ""
        print(f"{own * 1e6 / pages:8.1f} {whole * 1e6 / pages:10.1f} {calls / pages:7.2f}  {where}{name}")


def judge(site: RealSite, folder: Path) -> Verdict:
    """The crawl in ``folder`` against nginx's log and an independent walk over the files."""
    reached = walk(site)
    visits = read_visits(site.log)
    verdict = judge_pauses(visits, host_seconds=PACE_SECONDS, ip_seconds=PACE_SECONDS)
    verdict.add(judge_log(visits, read_attempts(folder / "log"), site.port))
    captures = read_captures(folder / "warc")
    verdict.add(judge_captures(captures, reached.pages | reached.dead, optional=reached.others))
    verdict.facts.append(f"links reach {len(reached.pages)} pages and {len(reached.dead)} addresses that are not there")
    return verdict


def line(name: str, pages: int, spent: Spent, ours: float | None = None) -> float:
    """Print one crawler's row; its CPU milliseconds a page."""
    cost = spent.cpu_seconds * 1000 / max(pages, 1)
    ratio = f"  {cost / ours:5.2f} x ours" if ours else ""
    rate, peak = pages / spent.wall_seconds, spent.peak_bytes >> 20
    print(f"{name:28} {pages:6} pages {cost:6.2f} ms CPU a page {rate:7.0f} pages/s {peak:5} MiB{ratio}")
    return cost


def peers(site: RealSite, ours: float) -> None:
    """Run the others on the same pages, each counted by what nginx then adds to its log."""
    for name, run in (("stock Scrapy CrawlSpider", stock_scrapy), ("wget --warc-file", wget)):
        before = sum(1 for _ in site.log.open())
        spent = run(site)
        if spent is None:
            print(f"{name}: not installed")
            continue
        line(name, _pages(site, before), spent, ours)


def _pages(site: RealSite, before: int) -> int:
    with site.log.open() as lines:
        return sum('"status":200' in row for row in list(lines)[before:])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_pages", description=__doc__)
    parser.add_argument("--pages", default="all", help="all (default) or about how many")
    parser.add_argument("--peers", action="store_true", help="also a stock Scrapy spider and wget")
    parser.add_argument("--profile", action="store_true", help="also a profile of ours, function by function")
    given = parser.parse_args()
    install()
    many_files()
    with tempfile.TemporaryDirectory(prefix="real-pages-") as scratch:
        site = build(Path(scratch), None if given.pages == "all" else int(given.pages))
        with nginx(site):
            spent = crawl(site, site.folder / "crawl")
            verdict = judge(site, site.folder / "crawl")
            print(f"{len(site.hosts)} hosts, pace {PACE_SECONDS} s")
            pages = _pages(site, 0)
            ours = line("this crawler", pages, spent)
            if given.peers:
                peers(site, ours)
            if given.profile:
                profile(site, site.folder / "profiled", pages)
        sys.exit(show(verdict))


if __name__ == "__main__":
    main()
