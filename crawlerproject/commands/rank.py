"""``scrapy rank``: which pages and hosts matter, by the crawl's own links."""

from __future__ import annotations

import argparse

from scrapy.commands import ScrapyCommand

from crawlerproject.commands.base import Bytes, OnFolder, one_sentence
from crawlerproject.config.crawl_dir import crawl_folder
from crawlerproject.errors import OperatorError
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.terminal import say


class Command(OnFolder, ScrapyCommand):
    """PageRank of pages, harmonic centrality of hosts."""

    def short_desc(self) -> str:
        """One line for the list of commands."""
        return "Rank pages and hosts by the links between them"

    def long_desc(self) -> str:
        """What ``scrapy rank -h`` says."""
        return (
            "Compute PageRank of the pages and harmonic centrality of the hosts of a crawl folder (default: "
            "CRAWL_DIR) from processed/links, into processed/rank/. The next -a mode=recrawl goes by it. Example: "
            "scrapy rank crawls/web"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Rank, and say how much."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.process import LINKS, PAGES
        from crawlerproject.batch.rank import write_ranks

        assert self.settings is not None
        with one_sentence():
            folder = CrawlDir(args[0]) if args else crawl_folder(self.settings)
            processed = folder.processed
            files = list((processed / LINKS).glob("*.parquet"))
            if not files:
                raise OperatorError(f"There are no links in {processed / LINKS}; run scrapy process first.")
            with Bytes("Reading links", sum(file.stat().st_size for file in files)) as progress:
                pages, hosts = write_ranks(processed / PAGES, processed / LINKS, folder.ranks, progress.advance)
            say(f"{pages:,} pages and {hosts:,} hosts ranked into {folder.ranks}")
