"""``scrapy crawl``, with everything an operator can mend named in one sentence before the start."""

from __future__ import annotations

import argparse

from scrapy.commands.crawl import Command as ScrapyCrawl
from scrapy.spiderloader import get_spider_loader

from crawlerproject.batch.plans import plan_and_depth
from crawlerproject.commands.spider_command import SpiderCommandMixin
from crawlerproject.config.arguments import arguments_of, refuse_other_than_one, refuse_unknown_arguments
from crawlerproject.config.crawl_file import apply, apply_of_folder, crawl_file_of, differences, refuse_differences
from crawlerproject.config.crawl_kind import crawl_folder, whole_crawl
from crawlerproject.crawl.start.preflight import (
    check,
    check_known,
    check_supervised,
    has_begun,
    has_no_page,
    mode_and_budget,
    seeds_with_options,
)
from crawlerproject.crawl.start.setting_limits import check_scrapys
from crawlerproject.errors import OperatorError, sentence_of
from crawlerproject.hooks.hook_events import tell_refused
from crawlerproject.json_log import take_process
from crawlerproject.terminal import quiet_scrapy


class Command(SpiderCommandMixin, ScrapyCrawl):
    """Scrapy's own command with a preflight check."""

    starts_workers = False  # else the spider is of this process, and says itself what it skips

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Our panel and our summary say what Scrapy's first and last lines say."""
        super().process_options(args, opts)
        if args[:1] and self._is_ours(args[0]):
            quiet_scrapy(self.settings)

    def check_start(self, args: list[str], opts: argparse.Namespace) -> None:
        """Raise UsageError or OperatorError for what can be mended."""
        settings = self.settings
        refuse_other_than_one(settings, args)
        if args == ["web"]:
            check_supervised(settings)
            self._check(opts)
        elif args == ["plan"]:
            plan_and_depth(opts.spargs.get("plan", ""), opts.spargs.get("depth", "0"))
            refuse_unknown_arguments(opts.spargs, "plan", ("plan", "depth"))
            apply_of_folder(settings, "plan")
            take_process(settings)
            check(settings, crawl_folder(settings, "plan"))
        else:
            super().check_start(args, opts)

    def _is_ours(self, name: str) -> bool:
        """Whether a spider's crawl has our panel and our summary."""
        if name in ("web", "plan"):
            return True
        try:
            return hasattr(get_spider_loader(self.settings).load(name), "answered")
        except Exception:  # a spider that is unknown or cannot be imported: Scrapy reports that in a moment
            return False

    def _check(self, opts: argparse.Namespace) -> None:
        try:
            check_scrapys(self.settings)
            folder = crawl_folder(self.settings, "web")
            file, arguments = crawl_file_of(self.settings), arguments_of(dict(opts.spargs))
            refuse_unknown_arguments(opts.spargs, "web")
            apply(file, self.settings)
            take_process(self.settings)
            if file is not None and "mode" not in opts.spargs:
                opts.spargs.setdefault("seeds", file.seeds)
            seeds = opts.spargs.get("seeds")
            recrawl, _ = mode_and_budget(opts.spargs.get("mode", "crawl"), opts.spargs.get("budget", ""))
            if recrawl:
                check_known(self.settings)
            elif seeds is None:
                raise OperatorError("There are no seeds; give a file or URLs separated by commas with -a seeds=….")
            if seeds is not None:
                seeds_with_options(seeds, opts.spargs.get("scope", "any"), warn=self.starts_workers)
            begun = has_begun(whole_crawl(self.settings))  # the check makes a frontier
            check(self.settings, folder)
            if file is not None and begun:
                found = differences(file, opts.spargs.get("scope"), self.settings, arguments)
                if found and has_no_page(self.settings):  # a mistake of the first start's binds nothing yet
                    opts.spargs["accept"] = ",".join([opts.spargs.get("accept", ""), *(one.name for one in found)])
                refuse_differences(whole_crawl(self.settings), found, opts.spargs.get("accept", ""))
        except (OperatorError, OSError) as error:
            tell_refused(self.settings, crawl_folder(self.settings, "web"), sentence_of(error))
            raise
