"""``scrapy parse``: what the spider reads on one page, with every polite rule in force."""

from __future__ import annotations

import argparse

from scrapy.commands.parse import Command as ScrapyParse
from scrapy.exceptions import UsageError

from crawlerproject.commands.polite_command import PoliteCommandMixin


class Command(PoliteCommandMixin, ScrapyParse):
    """Opens no crawl's files, so it runs beside a crawl."""

    def long_desc(self) -> str:
        return (
            "Fetch one URL under every polite rule and print what the web spider reads there. Example: scrapy parse "
            "https://example.org/"
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """The project's spider serves every page unless another is named."""
        opts.spider = opts.spider or "web"
        super().process_options(args, opts)

    def set_spidercls(self, url: str, opts: argparse.Namespace) -> None:
        """Raise UsageError for a way of reading that the spider does not have."""
        assert self.crawler_process is not None
        spider = self.crawler_process.spider_loader.load(opts.spider)
        if opts.callback and not callable(getattr(spider, opts.callback, None)):
            raise UsageError(f"{spider.__name__} has no method {opts.callback}.")
        if opts.rules and not getattr(spider, "rules", None):
            raise UsageError(f"{spider.__name__} has no rules; name a method of it with --callback.")
        super().set_spidercls(url, opts)  # which changes the class
