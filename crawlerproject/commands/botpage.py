"""``scrapy botpage``: the information page of the bot, written from the settings."""

from __future__ import annotations

import argparse
from pathlib import Path

from crawlerproject.config.values import identity, preset_of
from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import InspectCommand, option
from crawlerproject.reports.bot_page import Bot, bot_page
from crawlerproject.terminal import say


class Command(InspectCommand):
    """Put the page where CRAWLER_INFO_URL leads."""

    arguments = "[FILE] [--address IP] [--purpose TEXT]"
    summary = "Write the bot's information page (HTML) from the settings"

    example = "scrapy botpage bot.html --address 192.0.2.7 -s CRAWLER_CONTACT=you@example.org"

    options = (
        option("--address", action="append", default=[], metavar="IP", help="the bot asks from; repeatable"),
        option("--purpose", default="", metavar="TEXT", help="what the pages are for, in a sentence"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) > 1 or opts.json:
            raise OperatorError(f"Give one file or none (then the page is printed), for example: {self.example}")
        settings = self.settings
        who = identity(settings)
        contact = settings["CRAWLER_CONTACT"]
        if not contact:
            raise OperatorError("CRAWLER_CONTACT is empty: the page must say whom to ask.")
        pace = preset_of(settings)
        page = bot_page(
            Bot(
                who.token, who.user_agent, contact, settings["WARC_OPERATOR"], opts.purpose, opts.address,
                pace.start_seconds, pace.min_seconds, pace.max_seconds, pace.multiplier,
                settings.getfloat("ROBOTS_TTL_SECONDS") / 3600, settings.getint("FETCH_MAX_BYTES"),
            )
        )  # fmt: skip
        if not args:
            say(*page.rstrip("\n").split("\n"))
            return
        try:
            Path(args[0]).write_text(page, encoding="utf-8")
        except OSError as error:
            raise OperatorError(f"{args[0]} cannot be written ({error.strerror}).") from error
        where = settings["CRAWLER_INFO_URL"] or "unset"
        say(f"Written to {args[0]}; publish it where CRAWLER_INFO_URL leads ({where}).")
