"""``scrapy wacz``: a crawl as one file that replays in a browser."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from scrapy.commands import ScrapyCommand

from crawlerproject.commands.base import Bytes, folder_of, one_sentence
from crawlerproject.errors import OperatorError
from crawlerproject.stores.archive.wacz import write_wacz
from crawlerproject.terminal import say


class Command(ScrapyCommand):
    """Copies closed WARC files into a zip, as they are."""

    requires_project = True
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        """What may follow the command's name."""
        return "[FOLDER] [-o FILE.wacz]"

    def short_desc(self) -> str:
        """One line for the list of commands."""
        return "Pack a crawl into one WACZ file"

    def long_desc(self) -> str:
        """What ``scrapy wacz -h`` says."""
        return (
            "Pack the closed WARC files of a crawl folder (default: CRAWL_DIR) with their index and a list of pages "
            "into one WACZ 1.1.1 file, which replayweb.page shows. The crawl is not changed, and may run. Example: "
            "scrapy wacz crawls/web -o web.wacz"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The option of this command."""
        super().add_options(parser)
        parser.add_argument("-o", "--output", metavar="FILE", help="default: the folder's name with .wacz, here")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Pack."""
        assert self.settings is not None
        with one_sentence():
            folder = folder_of(args, self.settings)
            warcs = folder.closed_warcs()
            if not warcs:
                raise OperatorError(f"{folder} has no closed WARC file yet.")
            target = Path(opts.output or f"{folder.resolve().name}.wacz")
            if folder.open_warcs():
                say("The WARC file that is still written is left out.", error=True)
            with Bytes("Packing", sum(warc.stat().st_size for warc in warcs)) as progress:
                pages = write_wacz(target, warcs, folder.index, time.time(), progress.advance)
            say(f"{target}: {len(warcs):,} WARC files, {pages:,} pages, {target.stat().st_size:,} bytes")
