"""``scrapy wacz``: a crawl as one file that replays in a browser."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from crawlerproject.commands.base import Bytes, named_archives
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.operator_command import OperatorCommand
from crawlerproject.stores.archive.wacz import write_wacz
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Copies closed WARC files into a zip, as they are."""

    arguments = "[FOLDER] [-o FILE.wacz]"
    summary = "Pack a crawl into one WACZ file"
    details = (
        "Pack the closed WARC files of a crawl folder (default: CRAWL_DIR) with their index and a list of pages "
        "into one WACZ 1.1.1 file, which replayweb.page shows. The crawl is not changed, and may run. Example: "
        "scrapy wacz crawls/web -o web.wacz"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("-o", "--output", metavar="FILE", help="default: the folder's name with .wacz, here")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Pack."""
        archives = named_archives(args, self.settings)
        warcs = archives.closed_warcs()
        if not warcs:
            raise OperatorError(f"{archives.crawl} has no closed WARC file yet.")
        target = Path(opts.output or f"{archives.crawl.resolve().name}.wacz")
        if archives.open_warcs():
            say("The WARC file that is still written is left out.", error=True)
        with Bytes("Packing", sum(warc.stat().st_size for warc in warcs)) as progress:
            pages = write_wacz(target, warcs, time.time(), progress.advance)
        say(f"{target}: {len(warcs):,} WARC files, {pages:,} pages, {target.stat().st_size:,} bytes")
