"""``scrapy view``: Scrapy's own, with every polite rule in force."""

from __future__ import annotations

from scrapy.commands.view import Command as ScrapyView

from crawlerproject.commands.polite_command import PoliteCommandMixin


class Command(PoliteCommandMixin, ScrapyView):
    """Opens no crawl's files, so it runs beside a crawl."""

    def long_desc(self) -> str:
        return (
            "Fetch one URL under every polite rule and show it in a browser. A refusal names the rule; exit status 1."
            " Example: scrapy view https://example.org/"
        )
