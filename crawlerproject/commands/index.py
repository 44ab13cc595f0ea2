"""``scrapy index``: the CDXJ and Parquet index of a crawl, made again from nothing but its WARC files."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from crawlerproject.operator_command import WORKERS, Bytes, OperatorCommand, locked, named_archives, workers_of
from crawlerproject.rules.printable import counted
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import Archives
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Reads every closed WARC file once."""

    arguments = "[FOLDER] [--workers N]"
    summary = "Make the CDXJ and Parquet index again from the WARC files"
    details = (
        "Write index/*.cdxj and index/parquet/ again from the closed WARC files of a crawl folder (default: "
        "CRAWL_DIR). Exit status 1 when a file is damaged: its records up to the damage are indexed. Example: scrapy "
        "index crawls/web"
    )

    options = (WORKERS,)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Rebuild, and say what was odd."""
        from crawlerproject.batch.file_workers import each_answer  # Scrapy imports every command at each start

        archives, workers = named_archives(args, self.settings), workers_of(opts)
        messages: list[str] = []
        with locked(archives.to_lock()), Bytes("Indexing", archives.closed_warcs()) as progress:
            tasks = [(w, partial(_rebuilt, folder, w)) for folder in archives.folders for w in folder.closed_warcs()]
            for found in each_answer(tasks, workers, progress.advance):
                messages += found
            messages += messages_on_lost(archives)
        say(*messages, error=True)
        say_indexed(archives)
        self.exitcode = 1 if messages else 0


def messages_on_lost(archives: Archives) -> list[str]:
    """Sentences on files that an index names and that are not there."""
    left = "that part of the index is left as it is"
    return [
        f"The index names {name}, which is missing; {left}"
        for folder in archives.folders
        for name in CdxjFiles(folder.index, parquet_of(folder)).orphans(folder.warc)
    ]


def say_indexed(archives: Archives) -> None:
    """How much, and where."""
    several = len(archives.folders) > 1
    where = f"{len(archives.folders)} folders of {archives.crawl}" if several else archives.folders[0].index
    say(f"{counted(len(archives.closed_warcs()), 'WARC file')} indexed in {where}")


def _rebuilt(folder: CrawlDir, warc: Path, done: Callable[[int], None]) -> list[str]:
    return CdxjFiles(folder.index, parquet_of(folder)).rebuild(warc, done)
