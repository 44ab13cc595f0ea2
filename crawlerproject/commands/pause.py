"""``scrapy pause [HOST …]``: the crawl, or single hosts, are asked nothing more until ``scrapy resume``."""

from __future__ import annotations

import argparse
import time
from typing import Any

from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.operator_command import ORDER_SECONDS, InspectCommand, option, waited_for
from crawlerproject.reports.summary import bare_host
from crawlerproject.rules.printable import human_seconds, moment
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from crawlerproject.stores.operator_files.control import Pauses, change_pauses, read_pauses
from crawlerproject.terminal import say, say_json


class Command(InspectCommand):
    """Durable: a pause holds over restarts. Waits until the running crawl has taken it up."""

    arguments = "[HOST ...] [--why TEXT] [--list] [--json]"
    summary = "Pause the crawl, or single hosts, until scrapy resume"

    example = 'scrapy pause example.org --why "asked by their webmaster"'

    options = (
        option("--why", metavar="TEXT", default="", help="shown by status and why, for the next operator"),
        option("--list", action="store_true", help="show what is paused, and change nothing"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        crawl, took = self.look(), dict[str, Any]()
        if not opts.list:
            reason = f"since {moment(time.time())}" + (f": {' '.join(opts.why.split())}" if opts.why.strip() else "")
            hosts = [bare_host(host) for host in args]

            def change(pauses: Pauses) -> None:
                for host in hosts:
                    pauses.hosts.setdefault(host, reason)
                if not hosts:
                    pauses.crawl = pauses.crawl or reason

            took = order(crawl, change)
        show(crawl, took, "Nothing is paused.", as_json=opts.json)


def show(crawl: CrawlView, took: dict[str, Any], nothing: str, *, as_json: bool) -> None:
    """Print what is paused, or ``nothing``, and, unless ``took`` is empty, whether the running crawl knows."""
    pauses = read_pauses(crawl.folder)
    if as_json:
        say_json({"crawl": pauses.crawl or None, "hosts": pauses.hosts, **took})
        return
    say(*paused_lines(pauses) or [nothing], *([taken_up(crawl, took)] if took else []))


def paused_lines(pauses: Pauses) -> list[str]:
    """What is paused, a line each."""
    lines = [f"The crawl is paused, {pauses.crawl}: scrapy resume"] if pauses.crawl else []
    return lines + [f"{host} is paused, {why}: scrapy resume {host}" for host, why in sorted(pauses.hosts.items())]


def order(crawl: CrawlView, change: Any) -> dict[str, Any]:
    """Change what is paused; whether the crawl runs, and how long it took until it knew (None: it does not yet)."""
    version = change_pauses(crawl.folder, change)
    folders = [worker.folder for worker in crawl.workers] or [crawl.folder]
    folders = [folder for folder in folders if folder.running(read_facts(folder.status))]

    def is_known() -> bool:
        return all(_has_read(folder, version) for folder in folders)

    waited = round(waited_for(is_known, ORDER_SECONDS), 1)
    return {"running": crawl.running, "seconds": waited if crawl.running and is_known() else None}


def taken_up(crawl: CrawlView, took: dict[str, Any]) -> str:
    """The same for a person; workers on other machines have folders of their own."""
    if not took["running"]:
        sentence = "The crawl does not run; its next start reads this."
    elif took["seconds"] is None:
        sentence = "The running crawl has not taken it up yet: look at its log."
    else:
        sentence = f"The running crawl took it up after {human_seconds(took['seconds'])}."
    elsewhere = crawl.workers_elsewhere()
    if elsewhere:
        sentence += f" Say it on the machines of {', '.join(elsewhere)} too: workers that are not on this one."
    return sentence


def _has_read(folder: CrawlDir, version: int) -> bool:
    """Whether it has; a process that has ended meanwhile is not waited for."""
    status = read_facts(folder.status)
    return int(status.get("orders_read") or 0) >= version or not folder.running(status)
