"""``scrapy parse``: what the spider reads on one page, with every polite rule in force."""

from __future__ import annotations

import argparse

from scrapy.commands.parse import Command as ScrapyParse

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
