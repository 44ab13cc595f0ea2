"""``scrapy shell``: Scrapy's own, with every polite rule in force and ``page``, the answer as our reader sees it."""

from __future__ import annotations

import argparse
from typing import Any

from scrapy.commands.shell import Command as ScrapyShell

from crawlerproject.page_view import PageView, rendered
from crawlerproject.shell_manners import Manners
from crawlerproject.terminal import say, unguard_streams

_HELP = (
    "[s] page        the answer as our reader sees it; also page.links (each with the gate it would meet),\n"
    "[s]             page.words, page.title, page.text, page.canonical, page.triage, page.robots, page.pace\n"
    "[s] rendered    fetch(rendered(url)) fetches it as a browser shows it; response.meta['rendered'] tells more"
)


class Command(Manners, ScrapyShell):
    """Opens no crawl's files, so it runs beside a crawl."""

    def long_desc(self) -> str:
        return (
            "Interactive console for one page, under every polite rule (robots.txt, NeverCrawl, pace, addresses). "
            "`page` is the answer as the crawler's reader sees it. "
            'Example: scrapy shell -c "page.links" https://example.org/'
        )

    def update_vars(self, vars: dict[str, Any]) -> None:
        """``page`` beside Scrapy's own ``response``; None when nothing came."""
        vars["rendered"] = rendered
        response = vars.get("response")
        vars["page"] = PageView(vars["crawler"], response) if response is not None else None

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not opts.code:
            unguard_streams()
            say(*_HELP.split("\n"))
        super().run(args, opts)
