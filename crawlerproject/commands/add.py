"""``scrapy add URL …``: seeds for a crawl that has begun, whether it runs now or not."""

from __future__ import annotations

import argparse
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.frontier.passage import seed_found
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.operator_command import ORDER_SECONDS, InspectCommand, option, waited_for
from crawlerproject.rules.printable import counted, human_seconds
from crawlerproject.rules.url.scope import BadOption, Seeds, seeds_of
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.operator_files.control import spool_seeds
from crawlerproject.stores.operator_files.watched_lists import lines_of
from crawlerproject.terminal import say, say_json


class Command(InspectCommand):
    """After a successful end the seeds belong to the crawl: no crash loses one, and none is queued twice."""

    arguments = "URL [URL ...] [--file FILE] [--json]"
    summary = "Add seeds to a crawl, while it runs or for its next start"

    example = "scrapy add https://example.org/ 'https://example.com/blog/ scope=path'"

    options = (option("--file", metavar="FILE", help="a file of seeds, one a line, as -a seeds= takes it"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        crawl = self.look()
        seeds = _seeds([*args, *(_lines(opts.file) if opts.file else [])])
        if not seeds.addresses:
            raise OperatorError(f"Give one URL or more, for example: {self.example}")
        with crawl.store() as store:
            filters = crawl.filters(store)
            found = ((address.url, filters.refusal(seed_found(address), crawl.now)) for address in seeds.addresses)
            refused = {url: str(refusal) for url, refusal in found if refusal is not None}
        if len(refused) == len(seeds.addresses):
            url, reason = next(iter(refused.items()))
            raise OperatorError(f"{url} would be refused ({reason}; scrapy why {url}); nothing was added.")
        wanted = [
            f"{address.url} {seeds.options.get(address.url, '')}".rstrip()
            for address in seeds.addresses
            if address.url not in refused
        ]
        spooled = spool_seeds(crawl.folder, wanted)  # it vanishes when the crawl has queued the seeds

        def taken_in() -> bool:
            return not any((folder.control / spooled.name).exists() for folder in _places(crawl))

        waited = waited_for(taken_in, ORDER_SECONDS) if crawl.running else 0.0
        taken = taken_in()
        if opts.json:
            say_json({"added": len(wanted), "refused": refused, "running": crawl.running, "taken_in": taken})
            return
        for url, reason in refused.items():
            say(f"{url} is refused ({reason}): scrapy why {url}", error=True)
        what = counted(len(wanted), "seed")
        if taken:
            say(f"The running crawl took in {what} after {human_seconds(waited)}; what it knew already stays as it is.")
        elif crawl.running:
            say(f"{what} added; the running crawl has not come to it yet, and will.")
        else:
            say(f"{what} added; the crawl does not run, its next start takes it in.")


def _places(crawl: CrawlView) -> list[CrawlDir]:
    """Where the seeds may wait: in the crawl's folder, then, in a fleet on one machine, with each worker."""
    return [crawl.folder, *(worker.folder for worker in crawl.workers)]


def _seeds(lines: list[str]) -> Seeds:
    try:
        seeds = seeds_of(lines)
    except BadOption as error:
        raise OperatorError(f"{error}; nothing was added.") from None
    if seeds.problems:
        first = seeds.problems[0]
        raise OperatorError(f"{first.text!r} is no seed ({first.reason}); nothing was added.")
    return seeds


def _lines(path: str) -> list[str]:
    try:
        return lines_of(Path(path))
    except OSError as error:
        raise OperatorError(f"The seeds file {path} cannot be read ({error.strerror}).") from error
