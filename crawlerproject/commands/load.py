"""``scrapy load``: processed pages into a full-text index."""

from __future__ import annotations

import argparse

from scrapy.commands import ScrapyCommand

from crawlerproject.commands.base import Bytes, OnFolder, one_sentence
from crawlerproject.config.crawl_dir import crawl_folder
from crawlerproject.errors import OperatorError
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.terminal import say


class Command(OnFolder, ScrapyCommand):
    """Makes what ``scrapy search`` asks."""

    def short_desc(self) -> str:
        """One line for the list of commands."""
        return "Load processed pages into a full-text index"

    def long_desc(self) -> str:
        """What ``scrapy load -h`` says."""
        return (
            "Put processed/pages of a crawl folder (default: CRAWL_DIR) into the full-text index search/ beside it. "
            "Files that are loaded are not loaded again; stopped at any moment, the same command goes on. Of several "
            "captures of a URL the latest is kept. Example: scrapy load crawls/web"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Load, and say how much."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.fulltext import load
        from crawlerproject.batch.process import PAGES

        assert self.settings is not None
        with one_sentence():
            folder = CrawlDir(args[0]) if args else crawl_folder(self.settings)
            pages = folder.processed / PAGES
            if not any(pages.glob("*.parquet")):
                raise OperatorError(f"There is nothing to load in {pages}; run scrapy process first.")
            with Bytes("Loading", sum(file.stat().st_size for file in pages.glob("*.parquet"))) as progress:
                loaded = load(pages, folder.search, progress.advance)
            say(f"{loaded:,} pages loaded into {folder.search}")
