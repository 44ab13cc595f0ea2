"""``scrapy wacz``: a crawl as one file that replays in a browser, or as several."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject import __version__
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_view import settings_there
from crawlerproject.operator_command import Bytes, OperatorCommand, named_archives, option
from crawlerproject.rules.printable import counted, listed
from crawlerproject.stores.archive.wacz_file import (
    Packing,
    WaczPage,
    WaczSigner,
    is_being_closed,
    parts_of,
    write_parts,
    write_wacz,
)
from crawlerproject.terminal import say

if TYPE_CHECKING:
    from crawlerproject.rules.archive.warc_members import Flaw


class Command(OperatorCommand):
    """Copies closed WARC files into a zip, as they are, and lists their pages."""

    arguments = "[FOLDER] [-o FILE.wacz] [--text] [--title T] [--description D] [--split-bytes N] [--key FILE]"
    summary = "Pack a crawl into a WACZ file"
    details = (
        "Pack the closed WARC files of a crawl folder (default: CRAWL_DIR), their index and a list of pages into a "
        "WACZ 1.1.1 file, which replayweb.page shows. --text makes its pages searchable, --split-bytes makes several "
        "files, --key signs. The crawl may run. Example: scrapy wacz crawls/web -o web.wacz --text"
    )

    options = (
        option("-o", "--output", metavar="FILE", help="default: the folder's name with .wacz, here"),
        option("--title", metavar="TEXT", help="default: CRAWL_TITLE of the crawl, or the file's name"),
        option("--description", metavar="TEXT", help="default: CRAWL_DESCRIPTION of the crawl"),
        option("--text", action="store_true", help="put each page's text into the lists of pages"),
        option(
            "--split-bytes", type=int, metavar="N", help="a new file when its WARC files would have more than N bytes"
        ),
        option("--key", type=Path, metavar="FILE", help="sign with this EC key (PEM, curve secp384r1)"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Pack."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.page_captures import pages_of

        archives = named_archives(args, self.settings)
        closed = archives.closed_warcs()
        warcs = [warc for warc in closed if not is_being_closed(warc)]
        if not warcs:
            raise OperatorError(f"{archives.crawl} has no closed WARC file yet.")
        if opts.split_bytes is not None and opts.split_bytes < 1:
            raise OperatorError(f"--split-bytes is {opts.split_bytes}; give 1 or more.")
        sign = WaczSigner(opts.key, __version__).sign if opts.key else None
        crawl_settings = settings_there(archives.crawl, self.settings)
        heading = (
            str(crawl_settings[name] or "") if given is None else given
            for name, given in (("CRAWL_TITLE", opts.title), ("CRAWL_DESCRIPTION", opts.description))
        )
        target = Path(opts.output or f"{archives.crawl.resolve().name}.wacz")
        if archives.open_warcs() or len(warcs) < len(closed):
            say("The WARC file that is still written is left out.", error=True)
        # Each file is copied, and then read for its pages.
        with Bytes("Packing", [*warcs, *warcs]) as progress:
            flaws: dict[str, Flaw] = {}  # by file

            def pages_of_warc(warc: Path) -> Iterator[WaczPage]:
                flawed = partial(flaws.setdefault, warc.name)
                return pages_of(warc, text=opts.text, progress=progress.advance, flawed=flawed)

            packing = Packing(time.time(), progress.advance, pages_of_warc, opts.text, sign, *heading)
            if opts.split_bytes is None:
                pages = write_wacz(target, warcs, packing)
                packed = f"{counted(len(warcs), 'WARC file')}, {counted(pages, 'page')}"
                say(f"{target}: {packed}, {target.stat().st_size:,} bytes")
            else:
                parts = parts_of(warcs, opts.split_bytes)
                pages = write_parts(target, parts, packing)
                whole = target.with_suffix(".json")
                packed = f"{counted(len(warcs), 'WARC file')}, {counted(pages, 'page')}"
                say(f"{whole} names {counted(len(parts), 'file')}: {packed}")
        if flaws:
            where = listed([f"{name} at byte {flaw.offset} ({flaw.what})" for name, flaw in flaws.items()])
            say(f"{counted(len(flaws), 'WARC file')} damaged, pages behind that not listed: {where}", error=True)
