"""What the commands about an archive share: the folder they are asked about, and how they say that they get on."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from scrapy.settings import BaseSettings

from crawlerproject.config.crawl_dir import whole_crawl
from crawlerproject.errors import OperatorError
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import Archives, archives_of
from crawlerproject.terminal import console, say

if TYPE_CHECKING:
    from rich.progress import Progress

ORDER_SECONDS = 15.0
"""A running crawl looks for orders twice a second; many seeds, or a busy machine, take longer."""
_LOOK_SECONDS = 0.1
LOCAL, DUCKDB, SPARK = "local", "duckdb", "spark"
"""Engines of steps that need not run on this machine alone."""
# A line this often where there is no terminal to draw a bar on (ours).
_LINE_SECONDS = 10.0


def named_crawl(args: list[str], settings: BaseSettings) -> CrawlDir:
    """The folder of a crawl, with those of its workers in it: the first argument, or CRAWL_DIR; or its ARCHIVE_URL."""
    named = args[0] if args else str(settings["CRAWL_DIR"] or "")
    if "://" in named:
        from crawlerproject.stores.uploads.distant import distant_crawl  # commands on folders do without

        return distant_crawl(named)
    return CrawlDir(args[0]) if args else whole_crawl(settings)


def named_archives(args: list[str], settings: BaseSettings) -> Archives:
    """What the crawl that is named has archived. Raises OperatorError when there is no WARC file."""
    folder = named_crawl(args, settings)
    if folder.is_here and not folder.is_dir():
        raise OperatorError(f"There is no folder {folder}; name a crawl's folder, or set CRAWL_DIR.")
    archives = archives_of(folder)
    if not archives.has_archive():
        raise OperatorError(f"{folder} holds no crawl: there is no WARC file in {folder.warc}.")
    return archives


def add_engine(parser: argparse.ArgumentParser, *engines: str) -> None:
    """``--engine``, the first of them if none is asked for, and where Spark is."""
    parser.add_argument("--engine", choices=engines, default=engines[0], help="who does it (docs/engines.md)")
    parser.add_argument("--master", default="local[*]", help="of Spark: local[N], spark://HOST:PORT, yarn, k8s://...")


def waited_for(done: Callable[[], bool], patience_seconds: float) -> float:
    """Look again and again until it is done, or for so long; the seconds that this took."""
    began = time.monotonic()
    while not done() and time.monotonic() - began < patience_seconds:
        time.sleep(_LOOK_SECONDS)
    return time.monotonic() - began


class Bytes:
    """How much of so many bytes is done: a bar on a terminal, now and then a line elsewhere; always on stderr."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._said = time.monotonic()
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn(what), BarColumn(), DownloadColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=console(error=True), transient=True)
            self._task = self._bar.add_task(what, total=total)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, done: int) -> None:
        """So many bytes more are done."""
        self._done += done
        if self._bar is not None:
            self._bar.advance(self._task, done)
        elif time.monotonic() - self._said >= _LINE_SECONDS:
            self._said = time.monotonic()
            say(f"{self._what}: {self._done:,} of {self._total:,} bytes", error=True)
