"""``scrapy lookup``: the captures of a URL and where they are."""

from __future__ import annotations

import argparse

from scrapy.commands import ScrapyCommand

from crawlerproject.commands.base import folder_of, one_sentence, only
from crawlerproject.rules.archive import cdxj
from crawlerproject.rules.printable import printable_json
from crawlerproject.stores.archive.captures import Captures, IndexedCapture
from crawlerproject.terminal import say


class Command(ScrapyCommand):
    """Reads the index, also of the file that a running crawl still writes."""

    requires_project = True
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        """What may follow the command's name."""
        return "URL [--cdxj]"

    def short_desc(self) -> str:
        """One line for the list of commands."""
        return "Print the captures of a URL: time, status, type, digest, file, offset"

    def long_desc(self) -> str:
        """What ``scrapy lookup -h`` says."""
        return (
            "Print the captures of a URL in the order of time, also while the crawl runs. The scheme, a leading www. "
            "and the order of the query do not matter, as in other web archives. Exit status 1 when there is none. "
            "Example: scrapy lookup https://example.org/ -s CRAWL_DIR=crawls/web"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The option of this command."""
        super().add_options(parser)
        parser.add_argument("--cdxj", action="store_true", help="print the lines of the index as they are")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print, one line a capture."""
        assert self.settings is not None
        with one_sentence():
            url = only(args, "URL", "scrapy lookup https://example.org/")
            captures = Captures(folder_of([], self.settings))
            found = captures.of_url(url)
            for name in captures.unindexed():
                say(f"{name} has no index and is left out; scrapy index makes it", error=True)
            if not found:
                say(f"There is no capture of {url}.", error=True)
                self.exitcode = 1
            for capture in found:
                say(printable_json(_cdxj(capture)) if opts.cdxj else _columns(capture))


def _cdxj(capture: IndexedCapture) -> str:
    return cdxj.line(capture.row, capture.filename).decode().rstrip("\n")


def _columns(capture: IndexedCapture) -> str:
    row = capture.row
    stamp = row.timestamp
    time = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z"
    return f"{time} {row.status:3} {row.mime:24} {row.digest:32} {capture.filename} {row.offset:>10} {row.url}"
