"""``python -m benchmarks.engines``: steps of the batch by engines of others, and jobs of others on our files.

Needs ``.venv-engines`` (``make bench-engines`` makes it), a Java and the Debian package debian-handbook. Each line
compares what was made with what the local engine makes, and the command fails where one differs. ``--edges`` sizes the
web that is ranked within ``--memory``. CPU is of all processes, Spark's JVM included; ``--write`` puts the table into
docs/engines.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.engines.archive import make, manual
from benchmarks.engines.meter import Cost, measured
from crawlerproject.stores.crawl_dir import CrawlDir

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "engines.md"
# What "the same rank" means, as a share of the rank: the steps end at a change of 1e-9 of all ranks together.
SAME = 1e-8
MASTER = "local[2]"


class Line(NamedTuple):
    """Of the table."""

    what: str
    rows: int
    cost: Cost
    same: str  # how it was compared


def scrapy(*arguments: str) -> list[str]:
    """A command line, by this environment."""
    return [sys.executable, "-m", "scrapy", *arguments]


def processed(crawl: CrawlDir) -> Iterator[Line]:
    """WARC to Parquet, WET and WAT: every file byte for byte."""
    folders = {"local": crawl.processed, "spark": crawl / "by-spark"}
    ours: dict[Path, bytes] = {}
    for engine, out in folders.items():
        how = ["--workers", "2"] if engine == "local" else ["--engine", engine, "--master", MASTER]
        cost, _ = measured(scrapy("process", str(crawl), "--wet", "--wat", "--out", str(out), *how), ROOT)
        rows = sum(pq.read_metadata(path).num_rows for path in out.glob("pages/*.parquet"))
        files = {path.relative_to(out): path.read_bytes() for path in out.rglob("*.*")}
        ours = ours or files
        if files != ours:
            raise SystemExit(f"{out} and {folders['local']} differ")
        yield Line(f"`scrapy process --engine {engine}`", rows, cost, f"{len(files)} files, byte for byte")


def ranked(folder: CrawlDir, what: str, ways: list[list[str]]) -> Iterator[Line]:
    """The same links in each of these ways."""
    ours: dict[str, pa.Table] = {}
    for options in ways:
        cost, _ = measured(scrapy("rank", str(folder), *options), ROOT)
        found = {name: pq.read_table(folder.ranks / f"{name}.parquet") for name in ("pages", "hosts", "linked")}
        ours = ours or found
        apart = furthest(ours, found)
        if apart > SAME:
            raise SystemExit(f"ranks by {options} differ by {apart}")
        asked = " ".join(["`scrapy rank", *(option for option in options if option not in (MASTER, "--master"))])
        yield Line(f"{asked}`, {what}", len(found["linked"]), cost, f"to {apart:.0e} of each rank")


def furthest(ours: dict[str, pa.Table], theirs: dict[str, pa.Table]) -> float:
    """The greatest difference of two ranks, as a share of the rank. Addresses must be the same."""
    apart = 0.0
    for name, key, value in (("pages", "url", "pagerank"), ("hosts", "host", "harmonic")):
        one, other = (tables[name].sort_by(key) for tables in (ours, theirs))
        if not one[key].equals(other[key]):
            raise SystemExit(f"{name} are others")
        ranks, others = one[value].to_numpy(), other[value].to_numpy()
        apart = max(apart, float(np.max(np.abs(ranks - others) / np.maximum(ranks, np.finfo(float).tiny))))
    if not ours["linked"]["id"].equals(theirs["linked"]["id"]):
        raise SystemExit("what is linked is another")
    return apart


def jobs(crawl: CrawlDir) -> Iterator[Line]:
    """Of Common Crawl's shape, and the index in SQL: all in one session."""
    cost, printed = measured([sys.executable, "-m", "benchmarks.engines.spark_tasks", str(crawl), MASTER], ROOT)
    for line in printed.splitlines():
        if line.startswith("{"):
            found = json.loads(line)
            if not found["right"]:
                raise SystemExit(f"{found['asked']} is not what the local engine has")
    yield Line("Spark, seven jobs in one session", 0, cost, "as `scrapy process`, or DuckDB, has it")


def web(folder: CrawlDir, edges: int) -> CrawlDir:
    """Links between a fifth as many pages, in-links by a power law, in files of a million."""
    chance = np.random.default_rng(1)
    pages = max(2, edges // 5)
    for kind in ("links", "pages"):
        (folder.processed / kind).mkdir(parents=True)
    for number, start in enumerate(range(0, edges, 1_000_000)):
        some = min(1_000_000, edges - start)
        source = chance.integers(0, pages, some)
        target = (pages * chance.random(some) ** 3).astype(np.int64)
        columns = {"source": addresses(source), "target": addresses(target), "rel": pa.array([""] * some)}
        pq.write_table(pa.table(columns), folder.processed / "links" / f"{number:05}.parquet", compression="zstd")
    crawled = pa.table({"url": addresses(np.arange(0, pages, 10))})
    pq.write_table(crawled, folder.processed / "pages" / "00000.parquet", compression="zstd")
    return folder


def addresses(pages: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    """A page's, of one of a thousand hosts."""
    return pa.array([f"http://h{page % 1000}.test/{page}" for page in pages.tolist()])


def table(lines: list[Line]) -> str:
    """In Markdown; CPU as times of the first line of the same kind."""
    rows = [
        "| what | rows | CPU s | times local | peak MB | the same as the local engine |",
        "|---|---|---|---|---|---|",
    ]
    base = 0.0
    for line in lines:
        first = "--engine local" in line.what
        base = line.cost.cpu_seconds if first else base
        times = f"{line.cost.cpu_seconds / base:.1f}" if "scrapy" in line.what else ""
        count = f"{line.rows:,}" if line.rows else ""
        peak = f"{line.cost.peak_bytes / 1e6:,.0f}"
        rows.append(
            f"| {line.what} | {count} | {line.cost.cpu_seconds:.1f} | {times} | {peak} | {'' if first else line.same} |"
        )
    return "\n".join(rows)


def put(name: str, text: str) -> None:
    """Replace what stands between the marks of this name in docs/engines.md."""
    begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
    before, _, rest = PAGE.read_text().partition(begin)
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=400, help="of the handbook, all its languages; 0: no Spark")
    parser.add_argument("--edges", type=int, default=10_000_000, help="of the web that is ranked; 0: none")
    parser.add_argument("--memory", default="200MB", help="that it may have the second time")
    parser.add_argument("--write", action="store_true", help="into docs/engines.md")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="engines-") as name:
        parts: dict[str, Iterator[Line]] = {}
        if given.pages:
            crawl = make(CrawlDir(name, "fleet"), manual(given.pages), warc_bytes=1_000_000)
            by = [["--engine", "local"], ["--engine", "spark", "--master", MASTER]]
            parts["engines"] = chain(processed(crawl), ranked(crawl, "the handbook", by), jobs(crawl))
        if given.edges:
            large = web(CrawlDir(name, "web"), given.edges)
            by = [["--engine", "local"], ["--memory", given.memory]]
            parts["links"] = ranked(large, f"{given.edges:,} links", by)
        for part, made in parts.items():
            lines = []
            for line in made:
                lines.append(line)
                print(f"{line.what}: {line.rows:,} rows, {line.cost}, {line.same}", flush=True)
            print(text := table(lines))
            if given.write:
                put(part, text)


if __name__ == "__main__":
    main()
