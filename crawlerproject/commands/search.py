"""``scrapy search``: what the loaded pages say about some words."""

from __future__ import annotations

import argparse

from crawlerproject.config.crawl_kind import whole_crawl
from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import OperatorCommand, option
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.terminal import say, say_json


class Command(OperatorCommand):
    """Asks the full-text index."""

    arguments = "WORDS [--folder FOLDER] [--limit N] [--json]"
    summary = "Search the loaded pages"
    details = (
        'Print the pages that answer a query best, with a snippet. Words, "a phrase", +must, -not and title:word are '
        'understood. Exit status 1 when nothing is found. Example: scrapy search "write ahead log" --limit 5'
    )

    options = (
        option("--folder", type=CrawlDir, help="the crawl's folder (default: CRAWL_DIR)"),
        option("--limit", type=int, default=10, help="answers at most (default: 10)"),
        option("--json", action="store_true", help="a JSON object a line"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Ask and print."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.fulltext import search
        from crawlerproject.stores.operator_files.withdrawn_list import withdrawn_of

        if not args:
            raise OperatorError('Give the words to search for, for example: scrapy search "robots exclusion"')
        if opts.limit < 1:
            raise OperatorError(f"--limit is {opts.limit}; give 1 or more.")
        folder = opts.folder or whole_crawl(self.settings)
        hits = search(folder.search, " ".join(args), opts.limit, withdrawn_of(folder))
        for hit in hits:
            if opts.json:
                say_json([hit._asdict()], lines=True)
            else:
                say(hit.title or hit.url, f"  {hit.url}", f"  {hit.snippet}", "")
        if not hits and not opts.json:
            say("Nothing found.")
        self.exitcode = 0 if hits else 1
