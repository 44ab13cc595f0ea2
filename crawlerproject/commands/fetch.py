"""``scrapy fetch``: Scrapy's own, with every polite rule in force."""

from __future__ import annotations

from scrapy.commands.fetch import Command as ScrapyFetch

from crawlerproject.commands.polite_command import PoliteCommandMixin


class Command(PoliteCommandMixin, ScrapyFetch):
    """Opens no crawl's files, so it runs beside a crawl."""

    def long_desc(self) -> str:
        return (
            "Fetch one URL under every polite rule and print its body (--headers: both headers). A refusal names the "
            "rule; exit status 1. Example: scrapy fetch https://example.org/"
        )
