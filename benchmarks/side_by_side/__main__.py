"""``python -m benchmarks.side_by_side [--rounds 3] [--corpus FILE] [--write]``: others and us on the same pages.

Every crawler in turn, several rounds, from the same nginx on loopback. CPU is user and system time of the whole
process tree divided by the pages that the server counted; start-up is in it. ``--profile`` crawls (a) and (b) once more
and says where our time goes. ``--write`` puts table and plot in docs/.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.real_pages.peers import stock_scrapy, wget
from benchmarks.real_pages.site import install, nginx
from benchmarks.side_by_side.cases import Case, all_cases
from benchmarks.side_by_side.profile import table as profile_table
from crawlerproject import native
from tests.web.running import PROJECT, Spent, crawl_command, many_files, measured

PACE_SECONDS = 0.02  # per host and address: the processor, not politeness, is the limit
OURS = "this crawler"
_PEERS_PYTHON = Path(".venv-bench/bin/python")
_MARK = "<!-- {}: {} -->\n"
_PROFILED = "ab"  # the cases
_TAIL = 2000  # characters of a crawler's output shown when it failed


class Run(NamedTuple):
    """One crawler, one case, one round."""

    case: str
    crawler: str
    pages: int
    cpu_ms: float  # a page
    pages_per_second: float
    peak_mib: int
    written_mib: float


def our_command(case: Case) -> list[str]:
    """Our crawl with everything switched on."""
    pace = str(PACE_SECONDS)
    settings = {"PACE_PRESET": "mirror", "RENDER": "never", "LOG_LEVEL": "INFO"}
    settings |= {"PACE_MIN_SECONDS": pace, "PACE_START_SECONDS": pace, "PACE_IP_SECONDS": pace}
    if case.depth:
        settings["SCOPE_MAX_DEPTH"] = str(case.depth)
    if case.certificate:
        settings["FETCH_CA_FILE"] = str(case.certificate)
    folder = case.site.folder
    return crawl_command(folder / "seeds.txt", folder / "out", folder / "hosts", settings, scope="host")


def ours(case: Case) -> Spent:
    """What it takes."""
    return measured(our_command(case), case.site.folder / "ours.log")


def profile(case: Case, cpu_seconds: float, pages: int) -> str:
    """Where that goes: the same once more, sampled."""
    command, samples = our_command(case), case.site.folder / "samples.json"
    shutil.rmtree(case.site.folder / "out", ignore_errors=True)
    at = command.index("scrapy")  # ["python", "-m", "scrapy", ...]
    sampled = [*command[:at], "benchmarks.side_by_side.sampled", str(samples), *command[at:]]
    measured(sampled, case.site.folder / "sampled.log")
    return profile_table(samples, cpu_seconds, pages)


def crawlee(case: Case) -> Spent | None:
    """Crawlee's ParselCrawler, which keeps each page's title and no WARC."""
    if not _PEERS_PYTHON.exists():
        return None
    script = "benchmarks/side_by_side/crawlee_peer.py"
    command = [str(_PEERS_PYTHON.absolute()), script, str(case.site.folder), str(case.depth)]
    return measured(command, case.site.folder / "crawlee.log")


def crawlers(case: Case) -> list[tuple[str, Callable[[], Spent | None]]]:
    """Who can do this case."""
    found: list[tuple[str, Callable[[], Spent | None]]] = [
        (OURS, lambda: ours(case)),
        ("stock Scrapy", lambda: stock_scrapy(case.site, case.depth)),
        ("Crawlee Parsel", lambda: crawlee(case)),
    ]
    if case.certificate is None:  # wget knows no hosts file, and a proxy cannot stand in for TLS
        found.append(("wget --warc-file", lambda: wget(case.site, case.depth)))
    return found


def one_run(case: Case, name: str, run: Callable[[], Spent | None]) -> Run | None:
    """Run one crawler once; None when it is not there."""
    folder = case.site.folder
    kept = ("out", "wget", "crawlee")
    for output in kept:
        shutil.rmtree(folder / output, ignore_errors=True)
    before = _answers(case)
    spent = run()
    if spent is None:
        return None
    pages = _answers(case) - before
    if spent.status not in (0, 8) or not pages:  # wget says 8 when one answer was an error
        print("".join(log.read_text()[-_TAIL:] for log in folder.glob("*.log")))
        sys.exit(f"{name} ended with status {spent.status} after {pages} pages")
    written = sum(file.stat().st_size for kind in kept for file in (folder / kind).rglob("*") if file.is_file())
    rate = pages / spent.wall_seconds
    return Run(case.letter, name, pages, spent.cpu_seconds * 1e3 / pages, rate, spent.peak_bytes >> 20, written / 2**20)


def _answers(case: Case) -> int:
    log = case.site.log
    return log.read_bytes().count(b'"status":200') if log.exists() else 0


def table(runs: list[Run], cases: dict[str, str]) -> str:
    """The rows of the comparison, medians of all rounds; the ratio with its least and greatest."""
    lines = []
    for letter, what in cases.items():
        names = dict.fromkeys(run.crawler for run in runs if run.case == letter)
        own = [run.cpu_ms for run in runs if run.case == letter and run.crawler == OURS]
        lines += [f"({letter}) {what}", f"{'':18} {'pages':>6} {'CPU ms/page':>11} {'pages/s':>8} {'peak MiB':>8}"]
        lines[-1] += f" {'written MiB':>11}  times ours (least to greatest)"
        for name in names:
            of_it = [run for run in runs if run.case == letter and run.crawler == name]
            ratios = [run.cpu_ms / mine for run, mine in zip(of_it, own, strict=True)]
            middle = [statistics.median(column) for column in zip(*(run[2:] for run in of_it), strict=True)]
            pages, cpu, rate, peak, written = middle
            spread = f"  {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            ratio = "" if name == OURS else spread
            lines.append(f"{name:18} {pages:6.0f} {cpu:11.2f} {rate:8.0f} {peak:8.0f} {written:11.1f}{ratio}")
        lines.append("")
    lines += [f"page reader of {OURS}: {native.choice.sentence}", ""]  # in Python a page costs twice as much
    return "\n".join(lines)


def put(name: str, text: str) -> None:
    """Replace what stands between the marks of this name in docs/performance.md."""
    page = PROJECT / "docs" / "performance.md"
    begin, end = _MARK.format(name, "begin"), _MARK.format(name, "end")
    before, _, rest = page.read_text().partition(begin)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")


def write(text: str, runs: list[Run]) -> None:
    """Table into docs/performance.md, plot beside it."""
    page = PROJECT / "docs" / "performance.md"
    put("side by side", f"```\n{text}```\n\n![CPU a page](performance.svg)\n")
    if _PEERS_PYTHON.exists():
        data = json.dumps([run._asdict() for run in runs])
        plot = ["benchmarks/side_by_side/plot.py", str(page.with_suffix(".svg"))]
        subprocess.run([str(_PEERS_PYTHON), *plot], input=data.encode(), check=True)


def main() -> None:
    """All cases, all rounds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--corpus", type=Path, help="tar archive of web pages for (b); else the Debian handbook")
    parser.add_argument("--cases", default="abc", help="which of them, default abc")
    parser.add_argument("--profile", action="store_true", help="also where our time goes in (a) and (b)")
    parser.add_argument("--write", action="store_true", help="write table and plot into docs/")
    given = parser.parse_args()
    install()
    many_files()
    os.chdir(PROJECT)
    runs: list[Run] = []
    cases: dict[str, str] = {}
    profiles: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="side-by-side-") as scratch:
        for letter, lay in zip("abc", all_cases(Path(scratch), given.corpus), strict=True):
            if letter not in given.cases:
                continue
            case = lay()
            cases[case.letter] = case.what
            with nginx(case.site, certificate=case.certificate):
                for number in range(given.rounds):
                    for name, run in crawlers(case):
                        done = one_run(case, name, run)
                        if done is not None:
                            runs.append(done)
                            print(f"round {number + 1} ({letter}) {name}: {done.cpu_ms:.2f} ms", flush=True)
                if given.profile and letter in _PROFILED:
                    own = [run for run in runs if run.case == letter and run.crawler == OURS]
                    cpu_ms = statistics.median(run.cpu_ms for run in own)
                    profiles[letter] = profile(case, cpu_ms * own[0].pages / 1e3, own[0].pages)
    text = table(runs, cases)
    print(f"\n{text}")
    for letter, lines in profiles.items():
        print(f"({letter}) {cases[letter]}\n{lines}")
    if given.write:
        write(text, runs)


if __name__ == "__main__":
    main()
