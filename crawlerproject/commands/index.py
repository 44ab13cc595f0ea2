"""``scrapy index``: the CDXJ and Parquet index of a crawl, made again from nothing but its WARC files."""

from __future__ import annotations

import argparse

from crawlerproject.operator_command import Bytes, OperatorCommand, locked, named_archives
from crawlerproject.rules.printable import counted
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.index.cdxj import CdxjFiles
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Reads every closed WARC file once."""

    arguments = "[FOLDER]"
    summary = "Make the CDXJ and Parquet index again from the WARC files"
    details = (
        "Write index/*.cdxj and index/parquet/ again from the closed WARC files of a crawl folder (default: "
        "CRAWL_DIR). Exit status 1 when a file is damaged: its records up to the damage are indexed. Example: scrapy "
        "index crawls/web"
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Rebuild, and say what was odd."""
        archives = named_archives(args, self.settings)
        messages: list[str] = []
        with locked(archives.to_lock()), Bytes("Indexing", archives.closed_warcs()) as progress:
            for folder in archives.folders:
                index = CdxjFiles(folder.index, parquet_of(folder))
                for warc in folder.closed_warcs():
                    messages += index.rebuild(warc, progress.advance)
                lost = index.orphans(folder.warc)
                left = "that part of the index is left as it is"
                messages += [f"The index names {name}, which is missing; {left}" for name in lost]
        say(*messages, error=True)
        several = len(archives.folders) > 1
        where = f"{len(archives.folders)} folders of {archives.crawl}" if several else archives.folders[0].index
        say(f"{counted(len(archives.closed_warcs()), 'WARC file')} indexed in {where}")
        self.exitcode = 1 if messages else 0
