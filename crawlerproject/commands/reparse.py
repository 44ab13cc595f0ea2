"""``scrapy reparse``: a spider's items from what is archived."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from scrapy import Spider
from scrapy.commands import BaseRunSpiderCommand
from scrapy.settings import Settings
from scrapy.spiderloader import get_spider_loader

from crawlerproject.config.arguments import refuse_other_than_one
from crawlerproject.config.crawl_kind import whole_crawl
from crawlerproject.errors import OperatorError
from crawlerproject.reparse.item_parts import PART_CAPTURES, held, planned
from crawlerproject.reparse.offline import LEFT_OUT, SETTING, UNREADABLE, OfflineCrawler, closed_indexes
from crawlerproject.rules.printable import counted
from crawlerproject.settings import given
from crawlerproject.stores.crawl_dir import CrawlDir, check_there
from crawlerproject.stores.crawl_folders import folders_of
from crawlerproject.terminal import guard_streams, prepare_parser, quiet_scrapy, refusal, say


class Command(BaseRunSpiderCommand):
    """Runs Scrapy's engine on the archive; no request leaves."""

    requires_project = True
    settings: Settings  # Scrapy sets them before it calls a command
    default_settings = given()

    def __init__(self) -> None:
        super().__init__()
        guard_streams()
        self._folders: list[CrawlDir] = []
        self._held = ExitStack()  # until the process ends

    def syntax(self) -> str:
        return "SPIDER [CRAWL_DIR] [--all] [--callback NAME] [-a NAME=VALUE] [-o FILE] [--out FOLDER]"

    def short_desc(self) -> str:
        return "Run a spider over archived pages: items without a new crawl"

    def long_desc(self) -> str:
        return (
            "Give what a crawl has archived (default: CRAWL_DIR) to a spider: the latest good capture of each URL, or"
            " --all, to --callback, extract of a WebSpider, the rules of a CrawlSpider, or parse. Items go through "
            "the project's pipelines and feeds; nothing is fetched. With --out they go into a folder; run again, it "
            "goes on. Exit status 1 when a page could not be read. Example: scrapy reparse titles crawls/titles -O "
            "titles.jsonl"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        prepare_parser(parser)
        parser.add_argument("--all", action="store_true", help="every capture of a URL, not only the latest")
        parser.add_argument("--out", type=Path, metavar="FOLDER", help="items in parts, so that it can be resumed")
        parser.add_argument(
            "--part-captures",
            type=int,
            default=PART_CAPTURES,
            metavar="N",
            help=f"of a part (default: {PART_CAPTURES})",
        )
        parser.add_argument("--callback", default="", metavar="NAME", help="the spider's method that reads the pages")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Read the options, and check what they ask for before anything is started."""
        super().process_options(args, opts)
        try:
            self._check(args, opts)
        except OperatorError as error:
            raise refusal(error) from None
        asked: dict[str, Any] = {"every": opts.all, "callback": opts.callback, "out": str(opts.out or "")}
        asked["folders"] = [str(folder) for folder in self._folders]
        self.settings.set(SETTING, json.dumps(asked), priority="cmdline")
        quiet_scrapy(self.settings)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Read, and say what came of it."""
        assert self.crawler_process is not None
        crawler = OfflineCrawler(self._spider(args[0]), self.settings)
        self.crawler_process.crawl(crawler, **opts.spargs)
        self.crawler_process.start()
        stats = crawler.stats
        if self.crawler_process.bootstrap_failed or stats is None:
            self.exitcode = 1
            return
        found = stats.get_stats()
        pages, items = (int(found.get(key, 0)) for key in ("response_received_count", "item_scraped_count"))
        errors = sum(count for key, count in found.items() if key == "spider_exceptions/count")
        left_out, broken = int(found.get(LEFT_OUT, 0)), int(found.get(UNREADABLE, 0))
        say(
            f"{counted(pages, 'page')} read, {counted(items, 'item')}, {counted(errors, 'error')} of the spider; "
            f"{counted(left_out, 'request')} left out, {counted(broken, 'capture')} could not be read",
            error=True,
        )
        if errors or broken:
            self.exitcode = 1

    def _spider(self, name: str) -> type[Spider]:
        refuse_other_than_one(self.settings, [name])
        return get_spider_loader(self.settings).load(name)

    def _check(self, args: list[str], opts: argparse.Namespace) -> None:
        if not 1 <= len(args) <= 2:
            raise OperatorError("Give a spider and a crawl's folder, for example: scrapy reparse titles crawls/titles")
        spider = self._spider(args[0])
        if opts.callback and not callable(getattr(spider, opts.callback, None)):
            raise OperatorError(f"{spider.__name__} has no method {opts.callback}.")
        crawl = CrawlDir(args[1]) if len(args) > 1 else whole_crawl(self.settings, args[0])
        check_there(crawl)
        self._folders = folders_of(crawl)
        if not any(folder.has_archive() for folder in self._folders):
            raise OperatorError(f"{crawl} holds no crawl: there is no WARC file in {crawl.warc}.")
        if opts.out:
            self._plan(args[0], opts)

    def _plan(self, spider: str, opts: argparse.Namespace) -> None:
        if opts.part_captures < 1:
            raise OperatorError(f"--part-captures is {opts.part_captures}; give 1 or more.")
        asked = {"spider": spider, "arguments": opts.spargs, "every": opts.all, "callback": opts.callback}
        indexes = closed_indexes(self._folders)
        plan = planned(opts.out, asked, indexes, opts.part_captures)
        self._held.enter_context(held(opts.out))
        if later := len(indexes) - len(plan.indexes):
            say(f"{counted(later, 'WARC file')} closed since this run began left out.", error=True)
