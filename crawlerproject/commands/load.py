"""``scrapy load``: processed pages into a full-text index."""

from __future__ import annotations

import argparse

from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import Bytes, OperatorCommand, named_crawl
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Makes what ``scrapy search`` asks."""

    arguments = "[FOLDER]"
    summary = "Load processed pages into a full-text index"
    details = (
        "Put processed/pages of a crawl folder (default: CRAWL_DIR) into the full-text index search/ beside it. "
        "Files that are loaded are not loaded again; stopped at any moment, the same command goes on. Of several "
        "captures of a URL the latest is kept. Example: scrapy load crawls/web"
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Load, and say how much."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.fulltext import load
        from crawlerproject.batch.process_warcs import PAGES

        folder = named_crawl(args, self.settings)
        pages = folder.processed / PAGES
        if not any(pages.glob("*.parquet")):
            raise OperatorError(f"There is nothing to load in {pages}; run scrapy process first.")
        with Bytes("Loading", sum(file.stat().st_size for file in pages.glob("*.parquet"))) as progress:
            loaded = load(pages, folder.search, progress.advance)
        say(f"{loaded:,} pages loaded into {folder.search}")
