"""``scrapy resume [HOST …]``: what ``scrapy pause`` paused goes on."""

from __future__ import annotations

import argparse

from crawlerproject.commands.pause import order, show
from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import InspectCommand, option
from crawlerproject.reports.summary import bare_host
from crawlerproject.stores.operator_files.control import Pauses, read_pauses


class Command(InspectCommand):
    """Waits until the running crawl has taken it up."""

    arguments = "[HOST ...] [--all] [--json]"
    summary = "Let the crawl, or single hosts, go on after scrapy pause"

    example = "scrapy resume example.org"

    options = (option("--all", action="store_true", help="the crawl and every paused host"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        crawl = self.look()
        hosts = [bare_host(host) for host in args]
        before = read_pauses(crawl.folder)
        for host in hosts:
            if host not in before.hosts:
                listed = ", ".join(sorted(before.hosts)) or "none"
                raise OperatorError(f"{host} is not paused; paused hosts: {listed}.")
        if not hosts and not opts.all and not before.crawl:
            more = f"; paused hosts: {', '.join(sorted(before.hosts))}" if before.hosts else ""
            raise OperatorError(f"The crawl as a whole is not paused{more}.")

        def change(pauses: Pauses) -> None:
            pauses.hosts = {} if opts.all else {host: why for host, why in pauses.hosts.items() if host not in hosts}
            if opts.all or not hosts:
                pauses.crawl = ""

        show(crawl, order(crawl, change), "Nothing is paused any more.", as_json=opts.json)
