"""``scrapy stop``: the running crawl ends in good order, as after Ctrl-C; its next start goes on."""

from __future__ import annotations

import argparse
import time

from crawlerproject.commands.pause import order, taken_up
from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import InspectCommand
from crawlerproject.stores.operator_files.control import Pauses
from crawlerproject.terminal import say, say_json


class Command(InspectCommand):
    """Of several workers on this machine all end, and their supervisor. Waits until they have taken it up."""

    arguments = "[--json]"
    summary = "End the running crawl in good order, as Ctrl-C does, from anywhere on its machine"

    example = "scrapy stop"

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise OperatorError("scrapy stop takes no argument; to ask single hosts nothing more: scrapy pause HOST")
        crawl = self.look()
        if not crawl.running:
            raise OperatorError(f"The crawl in {crawl.folder} does not run: there is nothing to stop.")

        def change(pauses: Pauses) -> None:
            pauses.stopped_at = time.time()

        took = order(crawl, change)
        if opts.json:
            say_json(took)
            return
        say(f"{taken_up(crawl, took)} What is on its way ends first; what is queued stays for the next start.")
