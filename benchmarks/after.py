"""``python -m benchmarks.after [--crawl FOLDER] [--pages 40000]``: what comes after a crawl, each beside its peer.

The commands run on a copy of the crawl that is named, or of one of ``benchmarks/broad``, one after the other, and each
peer on the same WARC files right behind ours. Printed are CPU a page (``processed/pages`` says how many, or without it
the index), the start of the program among it, memory, and ratios: both sides of one are measured minutes apart on one
machine, so that other work on it weighs on both. ``--tools`` has warcio, cdxj-indexer and py-wacz
(requirements-tools.txt), ``--peers`` Resiliparse and FastWARC (requirements-bench.txt); a peer that is not installed is
left out.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import folders_of
from tests.web.running import PROJECT, Spent, measured

_TEXTS = """
import sys
from fastwarc.warc import ArchiveIterator, WarcRecordType
from resiliparse.extract.html2text import extract_plain_text
for path in sys.argv[1:]:
    for record in ArchiveIterator(open(path, "rb"), record_types=WarcRecordType.response):
        if (record.http_content_type or "").startswith("text/html"):
            extract_plain_text(record.reader.read().decode("utf-8", "replace"))
"""


class Step(NamedTuple):
    """One command of ours, and what is beside it."""

    command: list[str]  # of polite-crawler; FOLDER and OUT stand for the copy and an empty folder
    most_ms: float = 0.0  # of CPU a page that it may take; 0: nothing is said
    peer: str = ""
    program: tuple[str, ...] = ()  # the peer's arguments; WARCS and OUT stand for the files and an empty folder
    factor: float = 0.0  # so many times its speed is wanted


# In the order in which one needs what another has made; bounds are of 78,000 pages, of which a start is little.
STEPS = {
    "verify": Step(["verify", "FOLDER"], peer="warcio check", program=("warcio", "check", "WARCS"), factor=4),
    "index": Step(
        ["index", "FOLDER"], peer="cdxj-indexer", program=("cdxj-indexer", "-o", "OUT/peer.cdxj", "WARCS"), factor=5
    ),
    "wacz": Step(
        ["wacz", "FOLDER", "-o", "OUT/ours.wacz"],
        0.35, "py-wacz", ("wacz", "create", "-d", "-o", "OUT/peer.wacz", "WARCS"), 1,
    ),
    "process": Step(["process", "FOLDER", "--workers", "1"], 1.3, "Resiliparse", ("python", "-c", _TEXTS, "WARCS")),
    "rank": Step(["rank", "FOLDER"], 0.2),
    "load": Step(["load", "FOLDER"], 0.35),
    "export": Step(["export", "FOLDER"], 0.25),
}  # fmt: skip

PROCESSED = frozenset({"rank", "load", "export"})
"""Those that read what ``process`` has made."""


def crawl_of(pages: int, scratch: Path) -> Path:
    """A crawl of so many pages of a web without an end, by two workers."""
    made = [sys.executable, "-m", "benchmarks.broad", "--hosts", str(max(500, pages // 4)), "--pages", str(pages)]
    subprocess.run([*made, "--workers", "2", "--keep", str(scratch / "broad")], cwd=PROJECT, check=True)
    return scratch / "broad" / "first" / "crawl"


def filled(command: list[str], folder: Path, warcs: list[Path], out: Path) -> list[str]:
    """With what the words in capitals stand for."""
    words: list[str] = []
    for word in command:
        named = word.replace("FOLDER", str(folder)).replace("OUT", str(out))
        words += map(str, warcs) if word == "WARCS" else [named]
    return words


def run(command: list[str], log: Path) -> Spent:
    """Ends the program where a command fails."""
    spent = measured(command, log)
    if spent.status:
        sys.exit(f"{' '.join(command)[:200]}\n{log.read_text(errors='replace')[-2000:]}")
    return spent


def peer_run(step: Step, given: argparse.Namespace, warcs: list[Path], out: Path, log: Path) -> Spent | None:
    """What the program beside ours took, if it is installed."""
    if not step.program:
        return None
    name, *arguments = step.program
    program = (given.peers if name == "python" else given.tools) / name
    return run([str(program), *filled(arguments, out, warcs, out)], log) if program.exists() else None


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.after", description=__doc__.partition("\n")[0])
    parser.add_argument("--crawl", type=Path, help="a crawl's folder, which is copied (default: one is made)")
    parser.add_argument("--pages", type=int, default=40_000, help="of the crawl that is made")
    parser.add_argument("--tools", type=Path, default=Path(".venv-tools/bin"))
    parser.add_argument("--peers", type=Path, default=Path(".venv-bench/bin"))
    parser.add_argument("--only", default=",".join(STEPS), help="some of them, as verify,index")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="after-") as scratch:
        folder, out, log = Path(scratch, "crawl"), Path(scratch, "out"), Path(scratch, "log")
        shutil.copytree(given.crawl or crawl_of(given.pages, Path(scratch)), folder)
        out.mkdir()
        warcs = [warc for each in folders_of(CrawlDir(folder)) for warc in each.closed_warcs()]
        program = [sys.executable, "-m", "crawlerproject"]
        names = given.only.split(",")
        if not (folder / "processed" / "pages").exists() and "process" not in names and PROCESSED & set(names):
            run([*program, "process", str(folder)], log)
        start = measured([*program, "index", str(out)], log).cpu_seconds  # which refuses a folder without a crawl
        table = []
        for name in names:
            ours = run(filled([*program, *STEPS[name].command], folder, warcs, out), log)
            table.append((name, ours, peer_run(STEPS[name], given, warcs, out, log)))
        processed = list((folder / "processed" / "pages").glob("*.parquet"))
        counted = processed or folder.rglob("subset=warc/*.parquet")
        pages = sum(pq.read_metadata(file).num_rows for file in counted)
    print(f"{pages:,} pages in {len(warcs)} WARC files; a start takes {start:.2f} s of CPU, which is among the figures")
    for name, spent, peer in table:
        step, ours = STEPS[name], 1000 * spent.cpu_seconds / pages
        line = f"{name:8} {ours:6.2f} ms a page, {spent.peak_bytes >> 20:4} MiB, {spent.wall_seconds:4.0f} s"
        line += f"; at most {step.most_ms:g} ms asked" if step.most_ms else ""
        if peer is not None:
            theirs = 1000 * peer.cpu_seconds / pages
            line += f"; {step.peer} {theirs:.2f} ms, {peer.peak_bytes >> 20} MiB: {theirs / ours:.1f} times ours"
            line += f" (asked: {step.factor:g})" if step.factor else ""
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
