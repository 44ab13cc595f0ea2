"""``scrapy shell``: Scrapy's own, with every polite rule in force and ``page``, the answer as our reader sees it."""

from __future__ import annotations

import argparse
import logging
from typing import Any

from scrapy.commands.shell import Command as ScrapyShell
from scrapy.exceptions import UsageError
from scrapy.http import Response

from crawlerproject.commands.polite_command import PoliteCommandMixin
from crawlerproject.inspection.archived_response import archived
from crawlerproject.operator_command import named_archives, one_argument, one_sentence
from crawlerproject.parse.page_view import PageView
from crawlerproject.render.request import rendered
from crawlerproject.terminal import say, unguard_streams

_HELP = (
    "[s] page        the answer as our reader sees it; also page.links (each with the gate it would meet),\n"
    "[s]             page.words, page.title, page.text, page.canonical, page.triage, page.robots, page.pace\n"
    "[s] rendered    fetch(rendered(url)) fetches it as a browser shows it; response.meta['rendered'] tells more"
)


class Command(PoliteCommandMixin, ScrapyShell):
    """Opens no crawl's files, so it runs beside a crawl."""

    _archived: Response | None = None  # to be shown first

    def syntax(self) -> str:
        return "[url|file] [--archived [--at T]]"

    def long_desc(self) -> str:
        return (
            "Interactive console for one page, under every polite rule. `page` is the answer as the crawler's reader "
            "sees it. With --archived the page is taken from the crawl in CRAWL_DIR, and nothing is asked. Example: "
            'scrapy shell -c "page.links" https://example.org/'
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--archived", action="store_true", help="the page as CRAWL_DIR has it, without the network")
        parser.add_argument(
            "--at", metavar="T", help="of its captures the one nearest to this UTC time: 2026, 20261121"
        )

    def update_vars(self, vars: dict[str, Any]) -> None:
        """``page`` beside Scrapy's own ``response``; None when nothing came."""
        vars["rendered"] = rendered
        if self._archived is not None:
            vars["response"], vars["request"] = self._archived, self._archived.request
            self._archived = None
        response = vars.get("response")
        vars["page"] = PageView(vars["crawler"], response) if response is not None else None

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        self.refuse_unknown_spider(opts)
        if opts.at and not opts.archived:
            raise UsageError("--at chooses among captures: give --archived with it.", print_help=False)
        if opts.archived:
            with one_sentence():
                url = one_argument(args, "one URL", "scrapy shell --archived https://example.org/")
                if not self._take(url, opts.at or ""):
                    return
            args = []
        if not args:  # Scrapy leaves the engine as it is then, and asyncio would complain of that at the end
            logging.getLogger("asyncio").addFilter(lambda record: "was destroyed" not in record.getMessage())
        if not opts.code:
            unguard_streams()
            say(*_HELP.split("\n"))
        super().run(args, opts)

    def _take(self, url: str, at: str) -> bool:
        """Find the page in the archive, and say which capture it is."""
        archives = named_archives([], self.settings)
        found = archived(archives.folders, url, at)
        if found is None:
            say(f"There is no capture of {url} in {archives.crawl}.", error=True)
            self.exitcode = 1
            return False
        how = ", as a browser showed it" if found.rendered else ""
        how += f"; it had not changed at {found.since}" if found.since else ""
        say(f"{found.response.url} as captured at {found.date}{how}", error=True)
        self._archived = found.response
        return True
