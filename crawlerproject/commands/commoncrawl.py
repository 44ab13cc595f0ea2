"""``scrapy commoncrawl``: start from what others have crawled, so that a crawl fetches what is new."""

from __future__ import annotations

import argparse
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from itertools import islice

from crawlerproject.config.crawl_file import apply_of_folder
from crawlerproject.config.crawl_kind import whole_crawl
from crawlerproject.config.values import identity
from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import OperatorCommand, locked, option
from crawlerproject.rules.printable import counted
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import read_plan, refuse_missing, refuse_moving
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.rocks.frontier_folder import IMPORTED_FACT, HeldStores, open_frontier
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Imports an index, and on request the records that it names."""

    arguments = "INDEX ... [--domain D] [--prefix URL] [--fetch-records --base PLACE]"
    summary = "Make a crawl know the pages of Common Crawl's index"
    details = (
        "Read Common Crawl's columnar index or CDXJ (files, folders, HTTP addresses, lists of paths) and make its "
        "pages known to the crawl: it then fetches other pages only, and -a mode=recrawl asks whether they changed. "
        "--fetch-records also takes the records into warc/. Run again, it goes on. Exit status 1 when records were "
        "refused. Example: scrapy commoncrawl cc-index.paths.gz --base https://data.commoncrawl.org/ --domain "
        "example.org"
    )

    options = (
        option("--base", default="", help="folder or HTTP address that relative names are below"),
        option("--domain", action="append", default=[], help="only pages of this domain or host"),
        option("--prefix", action="append", default=[], help="only URLs that begin so"),
        option("--language", action="append", default=[], help="only pages in it (ISO 639-3, such as eng)"),
        option("--status", type=int, default=200, help="only this HTTP status (default: 200)"),
        option("--since", help="only captures from this day on (YYYY-MM-DD)"),
        option("--until", help="only captures before this day"),
        option("--limit", type=int, help="at most so many captures"),
        option("--fetch-records", action="store_true", help="take the records into our archive as well"),
        option("--pause", type=float, default=1.0, help="seconds between two HTTP requests (default: 1)"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Import, and say how much."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.commoncrawl_import import Records, import_captures
        from crawlerproject.batch.commoncrawl_index import Distant, Filter, read_captures

        if not args:
            raise OperatorError("Give an index to read, for example: scrapy commoncrawl index.cdxj --domain a.org")
        wanted = Filter(
            frozenset(opts.domain),
            tuple(opts.prefix),
            frozenset(opts.language),
            opts.status,
            _day(opts.since),
            _day(opts.until),
        )
        apply_of_folder(self.settings)
        distant = Distant(opts.base, identity(self.settings).user_agent, opts.pause)
        folder = whole_crawl(self.settings)
        with ExitStack() as held:
            held.enter_context(locked([folder]))
            folder.warc.mkdir(parents=True, exist_ok=True)
            store = _opened(folder, held)
            store.apply(Changes(facts=[(IMPORTED_FACT, b"1")]))
            records = None
            if opts.fetch_records:
                records = Records(distant, folder.warc, CdxjFiles(folder.index, parquet_of(folder)).rebuild)
            captures = (capture for source in args for capture in read_captures(source, distant, wanted))
            done = import_captures(islice(captures, opts.limit), store, records)
        for problem in done.refused:
            say(f"Refused: {problem}", error=True)
        new = counted(done.pages, "page is", "pages are")
        before = counted(done.known, "was", "were")
        say(f"{new} newly known, {before} known before, {counted(done.records, 'record')} taken")
        self.exitcode = 1 if done.refused else 0


def _opened(folder: CrawlDir, held: ExitStack) -> RocksStore | HeldStores:
    """The crawl's frontier, or those of its workers, whose folders are locked as well."""
    refuse_moving(folder)
    refuse_missing(folder)
    plan = read_plan(folder)
    if plan is None or plan.alone:
        return held.enter_context(closing(open_frontier(folder)))
    held.enter_context(locked(plan.folders(folder)))
    return held.enter_context(closing(HeldStores(folder, plan)))


def _day(text: str | None) -> float | None:
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise OperatorError(f"{text!r} is no day; write it as YYYY-MM-DD.") from None
