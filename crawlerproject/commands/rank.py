"""``scrapy rank``: which pages and hosts matter, by the crawl's own links."""

from __future__ import annotations

import argparse

from crawlerproject.commands.base import Bytes, named_crawl
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.operator_command import OperatorCommand
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """PageRank of pages, harmonic centrality of hosts."""

    arguments = "[FOLDER]"
    summary = "Rank pages and hosts by the links between them"
    details = (
        "Compute PageRank of the pages and harmonic centrality of the hosts of a crawl folder (default: "
        "CRAWL_DIR) from processed/links, into processed/rank/. The next -a mode=recrawl goes by it. Example: "
        "scrapy rank crawls/web"
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Rank, and say how much."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.process import LINKS, PAGES
        from crawlerproject.batch.rank import write_ranks

        folder = named_crawl(args, self.settings)
        processed = folder.processed
        files = list((processed / LINKS).glob("*.parquet"))
        if not files:
            raise OperatorError(f"There are no links in {processed / LINKS}; run scrapy process first.")
        with Bytes("Reading links", sum(file.stat().st_size for file in files)) as progress:
            pages, hosts = write_ranks(processed / PAGES, processed / LINKS, folder.ranks, progress.advance)
        say(f"{pages:,} pages and {hosts:,} hosts ranked into {folder.ranks}")
