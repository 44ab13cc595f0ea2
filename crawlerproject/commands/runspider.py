"""``scrapy runspider``: a spider in a file of its own, under every polite rule."""

from __future__ import annotations

import argparse
from pathlib import Path

from scrapy.commands.runspider import Command as ScrapyRunSpider
from scrapy.exceptions import UsageError

from crawlerproject.commands.spider_command import SpiderCommandMixin
from crawlerproject.errors import OperatorError


class Command(SpiderCommandMixin, ScrapyRunSpider):
    """Scrapy's own, with what can be mended in one sentence."""

    def long_desc(self) -> str:
        return "Run the spider in a file under every polite rule. Example: scrapy runspider titles.py -O titles.jsonl"

    def check_start(self, args: list[str], opts: argparse.Namespace) -> None:
        """The file is there, and the settings are good."""
        if len(args) != 1:
            raise OperatorError("Name one file with a spider, for example: scrapy runspider titles.py")
        if not Path(args[0]).is_file():
            raise OperatorError(f"There is no file {args[0]}; name a Python file with a spider in it.")
        super().check_start(args, opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Without a screen of usage above what Scrapy refuses."""
        try:
            super().run(args, opts)
        except UsageError as error:
            raise UsageError(str(error).strip(), print_help=False) from None
