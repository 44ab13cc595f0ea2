"""``scrapy resume [HOST …]``: what ``scrapy pause`` paused goes on."""

from __future__ import annotations

import argparse

from crawlerproject.commands.pause import known_hosts, order, paused_lines, taken_up
from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import InspectCommand
from crawlerproject.reports.host_history import bare_host
from crawlerproject.stores.operator_files.control import Pauses, read_pauses
from crawlerproject.terminal import say, say_json


class Command(InspectCommand):
    """Waits until the running crawl has taken it up."""

    arguments = "[HOST ...] [--all] [--json]"
    summary = "Let the crawl, or single hosts, go on after scrapy pause"

    example = "scrapy resume example.org"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--all", action="store_true", help="the crawl and every paused host")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        crawl = self.look()
        hosts = [bare_host(host) for host in args]
        before = read_pauses(crawl.folder)
        known_hosts(hosts, before)
        if not hosts and not opts.all and not before.crawl:
            more = f"; paused hosts: {', '.join(sorted(before.hosts))}" if before.hosts else ""
            raise OperatorError(f"The crawl as a whole is not paused{more}.")
        took = order(crawl, lambda pauses: _resume(pauses, hosts, everything=opts.all))
        pauses = read_pauses(crawl.folder)
        if opts.json:
            say_json({"crawl": pauses.crawl or None, "hosts": pauses.hosts, **took})
            return
        for line in paused_lines(pauses) or ["Nothing is paused any more."]:
            say(line)
        say(taken_up(crawl, took))


def _resume(pauses: Pauses, hosts: list[str], *, everything: bool) -> None:
    for host in hosts:
        pauses.hosts.pop(host, None)
    if everything:
        pauses.hosts.clear()
    if everything or not hosts:
        pauses.crawl = ""
