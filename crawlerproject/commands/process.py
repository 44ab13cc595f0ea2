"""``scrapy process``: WARC files to Parquet, and WET and WAT on request."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import (
    LOCAL,
    SPARK,
    Bytes,
    OperatorCommand,
    alone,
    engine_options,
    leaving_cores,
    locked,
    named_archives,
    option,
    still,
)
from crawlerproject.terminal import say

if TYPE_CHECKING:
    from crawlerproject.batch.process_warcs import ExtractOptions, Outcome
    from crawlerproject.stores.crawl_folders import Archives


class Command(OperatorCommand):
    """Text, title, language and links of every archived page."""

    arguments = (
        "[FOLDER] [--out DIR] [--workers N] [--wet] [--wat] [--main] [--verify] [--index] [--follow]"
        " [--engine local|spark]"
    )
    summary = "Read text, titles, languages and links out of the WARC files into Parquet"
    details = (
        "Turn the closed WARC files of a crawl folder (default: CRAWL_DIR) into Parquet: processed/pages (url, "
        "time, title, text, language, …) and processed/links. --main adds each page's article. --verify and "
        "--index do what these commands do while the files are read. --follow takes what a running crawl has "
        "committed, until it has ended. Run again, it goes on. Exit status 1 when a WARC was damaged or could not be "
        "processed; the others are. Example: scrapy process crawls/web --workers 2 --wet"
    )

    options = (
        option("--out", type=Path, help="where results go (default: processed/ in the folder)"),
        option("--workers", type=int, help="processes (default: one a core)"),
        option("--wet", action="store_true", help="also WET files: plain text"),
        option("--wat", action="store_true", help="also WAT files: facts as JSON"),
        option("--main", action="store_true", help="also each page's article without its frame"),
        option("--verify", action="store_true", help="also what scrapy verify does"),
        option("--index", action="store_true", help="also what scrapy index does"),
        option("--follow", action="store_true", help="beside the crawl, until it has ended"),
        *engine_options(LOCAL, SPARK),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Process, and say what went wrong."""
        if opts.workers is not None and opts.workers < 1:
            raise OperatorError(f"--workers is {opts.workers}; give 1 or more.")
        if opts.workers is not None and opts.engine == SPARK:
            raise OperatorError(
                "With --engine spark the master has the workers; say --master local[2] instead of --workers."
            )
        archives = named_archives(args, self.settings)
        if not (opts.out or archives.crawl.is_here):
            raise OperatorError(f"What is made of {archives.crawl} goes into a folder here: give --out DIR.")
        beside = opts.verify or opts.index
        if beside and (opts.follow or opts.engine == SPARK):
            raise OperatorError("--verify and --index read closed files here: give no --follow or --engine spark.")
        if opts.follow and (opts.wet or opts.wat or opts.engine == SPARK or not archives.crawl.is_here):
            raise OperatorError(
                "--follow makes Parquet of a crawl here: give no --wet, --wat or --engine spark with it."
            )
        warcs = archives.closed_warcs()
        if not warcs and not opts.follow:
            raise OperatorError(f"{archives.crawl} has no closed WARC file yet; let the crawl end first.")
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.process_warcs import ExtractOptions

        if opts.main and not find_spec("resiliparse"):
            raise OperatorError("--main needs Resiliparse, which is not installed: pip install resiliparse==2.0.1")
        wanted, out = ExtractOptions(opts.wet, opts.wat, opts.main), (opts.out or archives.crawl.processed).absolute()
        self.exitcode = 0
        with ExitStack() as held:
            held.enter_context(still([archives.crawl] if archives.crawl.is_here else []))
            held.enter_context(alone(out, "process"))
            if opts.index:
                held.enter_context(locked(archives.to_lock()))
            if beside:
                from crawlerproject.commands.shared_walks import Walks

                self.exitcode = Walks(archives, out, wanted, opts).run(self.settings)
                return
            for outcome in _outcomes(archives, warcs, out, wanted, opts):
                say(*filter(None, (*outcome.notes, outcome.problem)), error=True)
                self.exitcode = 1 if outcome.problem else self.exitcode


def _outcomes(
    archives: Archives, warcs: list[Path], out: Path, wanted: ExtractOptions, opts: argparse.Namespace
) -> Iterator[Outcome]:
    if opts.follow:
        from crawlerproject.batch.follow_crawl import follow

        with leaving_cores():
            yield from follow(archives.crawl, out, wanted, opts.workers or os.cpu_count() or 1, _behind)
        return
    with Bytes("Processing", warcs) as progress:
        outcomes = _made(warcs, out, wanted, opts, progress.advance)
    yield from outcomes


@contextmanager
def _behind(waiting: int) -> Iterator[Callable[[int], None]]:
    with Bytes("Following", waiting) as progress:
        yield progress.advance


def _made(
    warcs: list[Path], out: Path, wanted: ExtractOptions, opts: argparse.Namespace, done: Callable[[int], None]
) -> list[Outcome]:
    """By the engine that is asked for."""
    if opts.engine == SPARK:
        from crawlerproject.batch.spark import process_on_spark, session

        with session(opts.master) as spark:
            return process_on_spark(spark, [warc.absolute() for warc in warcs], out, wanted, done)
    from crawlerproject.batch.process_warcs import process_all

    return process_all(warcs, out, wanted, opts.workers or os.cpu_count() or 1, done)
