"""``scrapy index``: the CDXJ and Parquet index of a crawl, made again from nothing but its WARC files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from crawlerproject.operator_command import Bytes, OperatorCommand, named_archives
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.archive.warc_reader import Progress
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock
from crawlerproject.stores.index.cdxj import CdxjFiles
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Reads every closed WARC file once."""

    arguments = "[FOLDER]"
    summary = "Make the CDXJ and Parquet index again from the WARC files"
    details = (
        "Write index/*.cdxj and index/parquet/ anew from the closed WARC files of a crawl folder (default: "
        "CRAWL_DIR). The WARC files themselves are not changed. Exit status 0, or 1 when a file is damaged: "
        "its records up to the damage are indexed then. Example: scrapy index crawls/web"
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Rebuild, and say what was odd."""
        archives = named_archives(args, self.settings)
        messages: list[str] = []
        with ExitStack() as locks, Bytes("Indexing", _size(archives.closed_warcs())) as progress:
            for folder in archives.to_lock():
                locks.callback(os.close, take_lock(folder))
            for folder in archives.folders:
                messages += _rebuild(CdxjFiles(folder.index, parquet_of(folder)), folder, progress.advance)
        for message in messages:
            say(message, error=True)
        warcs = len(archives.closed_warcs())
        files = "1 WARC file" if warcs == 1 else f"{warcs:,} WARC files"
        several = len(archives.folders) > 1
        where = f"{len(archives.folders)} folders of {archives.crawl}" if several else archives.folders[0].index
        say(f"{files} indexed in {where}")
        self.exitcode = 1 if messages else 0


def _rebuild(index: CdxjFiles, folder: CrawlDir, progress: Progress) -> Iterator[str]:
    """The index of one folder's WARC files; what was odd."""
    for warc in folder.closed_warcs():
        yield from index.rebuild(warc, progress)
    for name in index.orphans(folder.warc):
        yield f"The index names {name}, which is missing; that part of the index is left as it is"


def _size(warcs: list[Path]) -> int:
    return sum(warc.stat().st_size for warc in warcs)
