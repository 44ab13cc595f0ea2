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
    from crawlerproject.batch.pagerank import Tables


class Command(OperatorCommand):
    """PageRank of pages, harmonic centrality of hosts."""

    arguments = "[FOLDER] [--engine local|spark] [--memory 4GB]"
    summary = "Rank pages and hosts by the links between them"
    details = (
        "Compute PageRank of the pages and harmonic centrality of the hosts of a crawl folder (default: "
        "CRAWL_DIR) from processed/links, into processed/rank/. The next -a mode=recrawl goes by it. "
        "What does not fit into --memory goes to disk; --engine spark is for many machines. "
        "Example: scrapy rank crawls/web"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_engine(parser, LOCAL, DUCKDB, SPARK)  # duckdb: an older name, the local engine works with it
        parser.add_argument("--memory", default="", help="of this machine, as 4GB (default: 80 %% of it)")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Rank, and say how much."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.pagerank import work_folder, write_ranks
        from crawlerproject.batch.process_warcs import LINKS, PAGES

        folder = named_crawl(args, self.settings)
        pages, links = ((folder.processed / name).absolute() for name in (PAGES, LINKS))
        files = list(links.glob("*.parquet"))
        if not files:
            raise OperatorError(f"There are no links in {links}; run scrapy process first.")
        if opts.memory and opts.engine == SPARK:
            raise OperatorError("--memory is for the local engine; leave it out, and configure Spark's own.")
        out = folder.ranks.absolute()
        with (
            Bytes("Reading links", sum(file.stat().st_size for file in files)) as progress,
            work_folder(out) as work,
            _tables(work, opts, progress.advance) as tables,
        ):
            ranked = write_ranks(tables, pages, links, out)
        say(f"{ranked.pages:,} pages and {ranked.hosts:,} hosts ranked into {folder.ranks}")


@contextmanager
def _tables(work: Path, opts: argparse.Namespace, done: Callable[[int], None]) -> Iterator[Tables]:
    if opts.engine != SPARK:
        from crawlerproject.batch.pagerank import duck_tables

        with duck_tables(work, opts.memory, done) as ours:
            yield ours
        return
    from crawlerproject.batch.spark import SparkTables, session

    with session(opts.master) as spark:
        yield SparkTables(spark, work)
