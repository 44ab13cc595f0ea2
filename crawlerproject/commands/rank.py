"""``scrapy rank``: which pages and hosts matter, by the crawl's own links."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import (
    DUCKDB,
    LOCAL,
    SPARK,
    Bytes,
    OperatorCommand,
    alone,
    engine_options,
    named_crawl,
    option,
    processed_files,
)
from crawlerproject.rules.printable import counted
from crawlerproject.terminal import say

if TYPE_CHECKING:
    from crawlerproject.batch.pagerank import Tables


class Command(OperatorCommand):
    """PageRank of pages, harmonic centrality of hosts."""

    arguments = "[FOLDER] [--engine local|spark] [--memory 4GB]"
    summary = "Rank pages and hosts by the links between them"
    details = (
        "Compute PageRank of the pages and harmonic centrality of the hosts of a crawl folder (default: CRAWL_DIR) "
        "from processed/links into processed/rank/. The next -a mode=recrawl goes by it. What exceeds --memory goes "
        "to disk. Example: scrapy rank crawls/web"
    )

    options = (
        *engine_options(LOCAL, DUCKDB, SPARK),
        option("--memory", default="", help="of this machine, as 4GB (default: 80 %% of it)"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Rank, and say how much."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.pagerank import work_folder, write_ranks
        from crawlerproject.batch.process_warcs import LINKS, PAGES

        folder = named_crawl(args, self.settings)
        links, files = processed_files(folder, LINKS, "There are no links")
        if opts.memory and opts.engine == SPARK:
            raise OperatorError("--memory is for the local engine; leave it out, and configure Spark's own.")
        out = folder.ranks.absolute()
        with (
            alone(out, "rank"),
            Bytes("Reading links", files) as progress,
            work_folder(out) as work,
            _tables(work, opts, progress.advance) as tables,
        ):
            ranked = write_ranks(tables, (folder.processed / PAGES).absolute(), links.absolute(), out)
        say(f"{counted(ranked.pages, 'page')} and {counted(ranked.hosts, 'host')} ranked into {folder.ranks}")


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
