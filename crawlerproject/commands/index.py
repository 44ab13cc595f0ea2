"""``scrapy index``: the CDXJ and Parquet index of a crawl, made again from nothing but its WARC files."""

from __future__ import annotations

import argparse
import os

from crawlerproject.commands.base import Bytes, folder_of
from crawlerproject.inspection.operator_command import OperatorCommand
from crawlerproject.stores.archive.archive import parquet_of
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
        folder = folder_of(args, self.settings)
        lock = take_lock(folder)
        try:
            self._rebuild(CdxjFiles(folder.index, parquet_of(folder)), folder)
        finally:
            os.close(lock)

    def _rebuild(self, index: CdxjFiles, folder: CrawlDir) -> None:
        warcs = folder.closed_warcs()
        messages = []
        with Bytes("Indexing", sum(warc.stat().st_size for warc in warcs)) as progress:
            for warc in warcs:
                messages += index.rebuild(warc, progress.advance)
        for name in index.orphans(folder.warc):
            messages.append(f"The index names {name}, which is missing; that part of the index is left as it is")
        for message in messages:
            say(message, error=True)
        files = "1 WARC file" if len(warcs) == 1 else f"{len(warcs):,} WARC files"
        say(f"{files} indexed in {folder.index}")
        self.exitcode = 1 if messages else 0
