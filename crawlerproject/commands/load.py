"""``scrapy load``: processed pages into a full-text index."""

from __future__ import annotations

import argparse
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import (
    Bytes,
    OperatorCommand,
    alone,
    leaving_cores,
    named_crawl,
    option,
    processed_files,
    still,
)
from crawlerproject.rules.printable import counted
from crawlerproject.stores.crawl_dir import check_there
from crawlerproject.terminal import say

if TYPE_CHECKING:
    from crawlerproject.batch.fulltext import Loading


class Command(OperatorCommand):
    """Makes what ``scrapy search`` asks."""

    arguments = "[FOLDER] [--follow]"
    summary = "Load processed pages into a full-text index"
    details = (
        "Put processed/pages of a crawl folder (default: CRAWL_DIR) into the full-text index search/ beside it. Of "
        "several captures of a URL the latest is kept. --follow takes what scrapy process --follow makes, until crawl "
        "and tables have ended. Run again, it goes on. Example: scrapy load crawls/web"
    )

    options = (option("--follow", action="store_true", help="beside scrapy process --follow, until that has ended"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Load, and say how much."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.follow_crawl import TABLES_SECONDS, Going, looks
        from crawlerproject.batch.fulltext import Loading
        from crawlerproject.batch.process_warcs import PAGES

        folder, loaded = named_crawl(args, self.settings), 0
        if opts.follow:
            check_there(folder)
            moments, pages = looks(Going(folder, tables=True), TABLES_SECONDS), folder.processed / PAGES
        else:
            moments, (pages, _) = iter((True,)), processed_files(folder, PAGES, "There is nothing to load")
        with still([folder]), alone(folder.search, "load"), leaving_cores():
            try:
                with closing(Loading(pages, folder.search)) as index:
                    for _ in moments:
                        loaded += _load(index)
            except ValueError as error:  # all that tantivy raises, mostly for lack of room
                raise OperatorError(
                    f"{folder.search} could not take a file of pages ({error}); with room on its disk the same command "
                    "goes on, and what is loaded stays."
                ) from error
        say(f"{counted(loaded, 'page')} loaded into {folder.search}")


def _load(index: Loading) -> int:
    """All that waits; how many pages."""
    loaded, sizes = 0, dict[Path, int]()
    for file in index.waiting():
        with suppress(FileNotFoundError):  # a longer piece has taken its place
            sizes[file] = file.stat().st_size
    with Bytes("Loading", sum(sizes.values())) as progress:
        for file, size in sizes.items():
            with suppress(FileNotFoundError):
                loaded += index.take(file)
            progress.advance(size)
    return loaded
