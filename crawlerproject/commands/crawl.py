"""``scrapy crawl``, with everything an operator can mend said in one sentence before the start."""

from __future__ import annotations

import argparse

from scrapy import Spider
from scrapy.commands.crawl import Command as ScrapyCrawl
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError

from crawlerproject.batch.plans import plan_and_depth
from crawlerproject.errors import OperatorError
from crawlerproject.preflight import check, check_known, crawl_folder, mode_and_budget, seeds_and_scope

# A crawl that stopped because of errors, not because it was done (sysexits.h: EX_SOFTWARE).
_EXIT_STOPPED_BY_ERRORS = 70
_ERROR_REASONS = frozenset({"errors_in_a_row", "commit_failed"})


class Command(ScrapyCrawl):
    """Scrapy's own command with a preflight check and an exit status that tells."""

    _ours: Crawler | None = None

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Read the options, and check what they ask for before anything is started."""
        super().process_options(args, opts)
        if args == ["web"]:
            self._check(opts)
        elif args == ["plan"]:
            self._check_plan(opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Crawl, and set the exit status."""
        super().run(args, opts)
        stats = self._ours.stats if self._ours is not None else None
        if stats is not None and stats.get_value("finish_reason") in _ERROR_REASONS:
            self.exitcode = _EXIT_STOPPED_BY_ERRORS

    def _create_crawler(self, spidercls: type[Spider] | str) -> Crawler:
        self._ours = super()._create_crawler(spidercls)
        return self._ours

    def _check_plan(self, opts: argparse.Namespace) -> None:
        assert self.settings is not None
        try:
            plan_and_depth(opts.spargs.get("plan", ""), opts.spargs.get("depth", "0"))
            check(self.settings, crawl_folder(self.settings, "plan"))
        except OperatorError as error:
            raise UsageError(str(error), print_help=False) from None

    def _check(self, opts: argparse.Namespace) -> None:
        assert self.settings is not None
        try:
            seeds = opts.spargs.get("seeds")
            recrawl, _ = mode_and_budget(opts.spargs.get("mode", "crawl"), opts.spargs.get("budget", ""))
            if recrawl:
                check_known(crawl_folder(self.settings, "web"))
            elif seeds is None:
                raise OperatorError("There are no seeds; give a file or URLs separated by commas with -a seeds=….")
            if seeds is not None:
                seeds_and_scope(seeds, opts.spargs.get("scope", "any"))
            check(self.settings, crawl_folder(self.settings, "web"))
        except OperatorError as error:
            raise UsageError(str(error), print_help=False) from None
