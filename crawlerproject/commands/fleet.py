"""``scrapy fleet``: several workers on one crawl on this machine, started, watched, and started again when they die."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import uuid

from scrapy.exceptions import UsageError
from scrapy.utils.log import configure_logging

from crawlerproject.commands.crawl import Command as CrawlCommand
from crawlerproject.config.crawl_dir import whole_crawl
from crawlerproject.fleet.supervisor import Supervisor, Worker
from crawlerproject.stores.redis.client import SCHEMES


class Command(CrawlCommand):
    """The options of ``scrapy crawl``, which go to every worker."""

    # The crawls are the workers'. A process made for nothing leaves an event loop that complains as it goes.
    requires_crawler_process = False
    _run = uuid.uuid4().hex  # what this start is called

    def syntax(self) -> str:
        return "-a seeds=FILE --workers N [options]"

    def short_desc(self) -> str:
        return "Run several workers on one crawl; needs STATE_URL=redis://…"

    def long_desc(self) -> str:
        return (
            "Starts N workers of the web spider on this machine, starts again those that die, and ends when the crawl "
            "is done. Ctrl-C once lets every worker finish what is on its way. The output of each is in "
            "CRAWL_DIR/NAME.log. Example: scrapy fleet -a seeds=seeds.txt --workers 4 -s STATE_URL=redis://localhost/0"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        workers = os.cpu_count() or 1
        parser.add_argument("--workers", type=int, default=workers, metavar="N", help=f"default: {workers}, one a CPU")
        parser.add_argument("--name", default="", help="names are NAME-1, NAME-2 …; default: the machine's name")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Check what the workers would refuse, once and before they start."""
        assert self.settings is not None
        super().process_options(args, opts)
        if args:
            raise UsageError("scrapy fleet runs the web spider: give its arguments with -a", print_help=False)
        if opts.workers < 1:
            raise UsageError("--workers must be at least 1.", print_help=False)
        if not str(self.settings["STATE_URL"]).startswith(SCHEMES):
            raise UsageError(
                f"STATE_URL is {self.settings['STATE_URL']}: several workers need a frontier that they can share; "
                "use -s STATE_URL=redis://host:6379/0.",
                print_help=False,
            )
        self.settings.set("FLEET_WORKER", self._names(opts)[0], priority="cmdline")
        self._check(opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Until the crawl is done or was stopped."""
        assert self.settings is not None
        configure_logging(self.settings)
        folder = whole_crawl(self.settings)
        workers = [Worker(name, self._command(name, opts), folder / f"{name}.log") for name in self._names(opts)]
        self.exitcode = Supervisor(workers).run()

    def _names(self, opts: argparse.Namespace) -> list[str]:
        name = opts.name or socket.gethostname()
        return [f"{name}-{number}" for number in range(1, opts.workers + 1)]

    def _command(self, name: str, opts: argparse.Namespace) -> list[str]:
        assert self.settings is not None
        given = [part for key, value in opts.spargs.items() for part in ("-a", f"{key}={value}")]
        given += [part for pair in opts.set for part in ("-s", pair)]
        run = str(self.settings["FLEET_RUN"] or self._run)
        own = ["-s", f"FLEET_WORKER={name}", "-s", f"FLEET_RUN={run}"]
        return [sys.executable, "-m", "scrapy", "crawl", "web", *given, *own]
