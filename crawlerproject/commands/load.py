"""``scrapy load``: processed pages into a full-text index."""

from __future__ import annotations

import argparse

from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import Bytes, OperatorCommand, alone, named_crawl, processed_files
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Makes what ``scrapy search`` asks."""

    arguments = "[FOLDER]"
    summary = "Load processed pages into a full-text index"
    details = (
        "Put processed/pages of a crawl folder (default: CRAWL_DIR) into the full-text index search/ beside it. Of "
        "several captures of a URL the latest is kept. Run again, it goes on. Example: scrapy load crawls/web"
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Load, and say how much."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.fulltext import load
        from crawlerproject.batch.process_warcs import PAGES

        folder = named_crawl(args, self.settings)
        pages, files = processed_files(folder, PAGES, "There is nothing to load")
        with alone(folder.search, "load"), Bytes("Loading", files) as progress:
            try:
                loaded = load(pages, folder.search, progress.advance)
            except ValueError as error:  # all that tantivy raises, mostly for want of room
                raise OperatorError(
                    f"{folder.search} could not take a file of pages ({error}); with room on its disk the same command "
                    "goes on, and what is loaded stays."
                ) from error
        say(f"{loaded:,} pages loaded into {folder.search}")
