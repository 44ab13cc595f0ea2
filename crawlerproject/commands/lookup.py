"""``scrapy lookup``: the captures of a URL and where they are."""

from __future__ import annotations

import argparse

from crawlerproject.operator_command import OperatorCommand, named_archives, one_argument, option
from crawlerproject.rules.archive import index_rows
from crawlerproject.rules.printable import printable_json
from crawlerproject.stores.archive.capture_index import Captures, IndexedCapture
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Reads the index, also of the file that a running crawl still writes."""

    arguments = "URL [--cdxj]"
    summary = "Print the captures of a URL: time, status, type, digest, file, offset"
    details = (
        "Print the captures of a URL in the order of time, also while the crawl runs. The scheme, a leading www. and "
        "the order of the query do not matter. Exit status 1 when there is none. Example: scrapy lookup "
        "https://example.org/ -s CRAWL_DIR=crawls/web"
    )

    options = (option("--cdxj", action="store_true", help="print the lines of the index as they are"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print, one line a capture."""
        url = one_argument(args, "one URL", "scrapy lookup https://example.org/")
        archives = named_archives([], self.settings)
        captures = Captures(archives.folders, archives.elsewhere)
        found = captures.of_url(url)
        for name in captures.unindexed():
            say(f"{name} has no index and is left out; scrapy index makes it", error=True)
        if not found:
            say(f"There is no capture of {url}.", error=True)
            self.exitcode = 1
        for capture in found:
            line = index_rows.line(capture.row, capture.filename).decode().rstrip("\n")
            say(printable_json(line) if opts.cdxj else _columns(capture))


def _columns(capture: IndexedCapture) -> str:
    row = capture.row
    stamp = row.timestamp
    time = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z"
    return f"{time} {row.status:3} {row.mime:24} {row.digest:32} {capture.filename} {row.offset:>10} {row.url}"
