"""``scrapy add URL …``: seeds for a crawl that has begun, whether it runs now or not."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.frontier.discovered import seed_found
from crawlerproject.inspection.operator_command import InspectCommand
from crawlerproject.rules.readable import human_seconds
from crawlerproject.rules.url.seed_rules import BadOption
from crawlerproject.rules.url.seeds import seeds_of
from crawlerproject.stores.operator_files.control import spool_seeds
from crawlerproject.terminal import say, say_json

# The crawl looks twice a second; very many seeds, or a busy machine, take longer.
PATIENCE_SECONDS = 15.0
_LOOK_SECONDS = 0.1


class Command(InspectCommand):
    """Once it has ended well, the seeds are the crawl's: no crash loses them, and none is taken in twice."""

    arguments = "URL [URL ...] [--file FILE] [--json]"
    summary = "Add seeds to a crawl, while it runs or for its next start"

    example = "scrapy add https://example.org/ 'https://example.com/blog/ scope=path'"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--file", metavar="FILE", help="a file of seeds, one a line, as -a seeds= takes it")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        crawl = self.look()
        lines = [*args, *(_lines(opts.file) if opts.file else [])]
        try:
            seeds = seeds_of(lines)
        except BadOption as error:
            raise OperatorError(f"{error}; nothing was added.") from None
        if seeds.problems:
            first = seeds.problems[0]
            raise OperatorError(f"{first.text!r} is no seed ({first.reason}); nothing was added.")
        if not seeds.addresses:
            raise OperatorError(f"Give one URL or more, for example: {self.example}")
        with crawl.store() as store:
            gates = crawl.gates(store)
            refused = {
                address.url: str(refusal)
                for address in seeds.addresses
                if (refusal := gates.refusal(seed_found(address), crawl.now)) is not None
            }
        if len(refused) == len(seeds.addresses):
            url, reason = next(iter(refused.items()))
            raise OperatorError(f"{url} would be refused ({reason}; scrapy why {url}); nothing was added.")
        wanted = [
            f"{address.url} {seeds.options.get(address.url, '')}".rstrip()
            for address in seeds.addresses
            if address.url not in refused
        ]
        began = time.monotonic()
        taken = _taken(spool_seeds(crawl.folder, wanted)) if crawl.running else not spool_seeds(crawl.folder, wanted)
        waited = round(time.monotonic() - began, 1)
        if opts.json:
            say_json({"added": len(wanted), "refused": refused, "running": crawl.running, "taken_in": taken})
            return
        for url, reason in refused.items():
            say(f"{url} is refused ({reason}): scrapy why {url}", error=True)
        what = "1 seed" if len(wanted) == 1 else f"{len(wanted):,} seeds"
        if taken:
            say(f"The running crawl took in {what} after {human_seconds(waited)}; what it knew already stays as it is.")
        elif crawl.running:
            say(f"{what} added; the running crawl has not come to it yet, and will.")
        else:
            say(f"{what} added; the crawl does not run, its next start takes it in.")


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise OperatorError(f"The seeds file {path} cannot be read ({error.strerror}).") from error


def _taken(spooled: Path) -> bool:
    """Whether the running crawl has queued the seeds: their list vanishes then."""
    until = time.monotonic() + PATIENCE_SECONDS
    while spooled.exists() and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    return not spooled.exists()
