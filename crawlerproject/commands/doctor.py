"""``scrapy doctor``: which best practices the configuration breaks, as a site owner would find out."""

from __future__ import annotations

import argparse

from crawlerproject.config.settings_table import SETTINGS
from crawlerproject.crawl.start.setting_limits import check_word
from crawlerproject.inspection.identity_checks import findings
from crawlerproject.operator_command import InspectCommand
from crawlerproject.terminal import say_either

_WORDS = {True: "good", False: "MEND", None: "?"}
_EXIT_TO_MEND = 1


class Command(InspectCommand):
    """Exit status 1 when something is to be mended."""

    arguments = "[--json]"
    summary = (
        "Look at the contact, the bot's page, keys, address ranges, reverse DNS and the clock as a site owner would"
    )

    example = "scrapy doctor"

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        check_word("PURPOSE", self.settings["PURPOSE"], SETTINGS["PURPOSE"])
        found = list(findings(self.settings))
        lines = (f"{_WORDS[one.good]:4}  {one.about}: {one.said}" for one in found)
        say_either([one._asdict() for one in found], lines, as_json=opts.json)
        if any(one.good is False for one in found):
            self.exitcode = _EXIT_TO_MEND
