"""``scrapy rank``: which pages and hosts matter, by the crawl's own links."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import DUCKDB, LOCAL, SPARK, Bytes, OperatorCommand, add_engine, named_crawl
from crawlerproject.terminal import say

if TYPE_CHECKING:
    from crawlerproject.batch.engines.ranks import Tables


class Command(OperatorCommand):
    """PageRank of pages, harmonic centrality of hosts."""

    arguments = "[FOLDER] [--engine local|duckdb|spark]"
    summary = "Rank pages and hosts by the links between them"
    details = (
        "Compute PageRank of the pages and harmonic centrality of the hosts of a crawl folder (default: "
        "CRAWL_DIR) from processed/links, into processed/rank/. The next -a mode=recrawl goes by it. "
        "--engine duckdb, or spark, is for links that do not fit into memory: the same ranks, by way of the disk. "
        "Example: scrapy rank crawls/web"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_engine(parser, LOCAL, DUCKDB, SPARK)
        parser.add_argument("--memory", default="", help="of duckdb, as 4GB (default: 80 %% of the machine's)")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Rank, and say how much."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.process import LINKS, PAGES

        folder = named_crawl(args, self.settings)
        pages, links = ((folder.processed / name).absolute() for name in (PAGES, LINKS))
        files = list(links.glob("*.parquet"))
        if not files:
            raise OperatorError(f"There are no links in {links}; run scrapy process first.")
        if opts.memory and opts.engine != DUCKDB:
            raise OperatorError("--memory is for --engine duckdb; leave it out, or ask for that engine.")
        with Bytes("Reading links", sum(file.stat().st_size for file in files)) as progress:
            counts = _ranked(pages, links, folder.ranks.absolute(), opts, progress.advance)
        say(f"{counts[0]:,} pages and {counts[1]:,} hosts ranked into {folder.ranks}")


def _ranked(
    pages: Path, links: Path, out: Path, opts: argparse.Namespace, done: Callable[[int], None]
) -> tuple[int, int]:
    """By the engine that is asked for; how many pages and hosts."""
    if opts.engine == LOCAL:
        from crawlerproject.batch.rank import write_ranks

        return write_ranks(pages, links, out, done)
    from crawlerproject.batch.engines.ranks import rank_with, work_folder

    with work_folder(out) as work, _tables(work, opts, done) as tables:
        ranked = rank_with(tables, pages, links, out)
    return ranked.pages, ranked.hosts


@contextmanager
def _tables(work: Path, opts: argparse.Namespace, done: Callable[[int], None]) -> Iterator[Tables]:
    if opts.engine == DUCKDB:
        from crawlerproject.batch.engines.duckdb_tables import duck_tables

        with duck_tables(work, opts.memory, done) as ours:
            yield ours
        return
    from crawlerproject.batch.engines.spark import session
    from crawlerproject.batch.engines.spark_tables import SparkTables

    with session(opts.master) as spark:
        yield SparkTables(spark, work)
