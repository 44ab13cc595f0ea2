"""``scrapy fleet``: several workers on one crawl on this machine, started, watched, and started again when they die."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import uuid
from collections.abc import Sequence

from scrapy.exceptions import UsageError
from scrapy.utils.log import configure_logging

from crawlerproject.commands.crawl import Command as CrawlCommand
from crawlerproject.commands.spider_command import log_refusal
from crawlerproject.config.crawl_file import apply_of_folder
from crawlerproject.config.crawl_kind import LOCAL, shared, whole_crawl
from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.fleet.local.local_fleet import LOCAL_NAME, LocalFleet, LockedCrawl
from crawlerproject.fleet.supervisor import LOCAL_REFUSALS, Supervisor, Worker
from crawlerproject.json_log import take_process
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.operator_files.control import SUPERVISED_SINCE, StopOrders
from crawlerproject.terminal import refusal

logger = logging.getLogger(__name__)


class Command(CrawlCommand):
    """The options of ``scrapy crawl``, which go to every worker."""

    # The crawls are the workers'. A process made for nothing leaves an event loop that complains as it goes.
    requires_crawler_process = False
    starts_workers = True
    _run = uuid.uuid4().hex  # what this start is called

    def syntax(self) -> str:
        return "-a seeds=FILE --workers N [options]"

    def short_desc(self) -> str:
        return "Run several workers on one crawl, on every core of this machine or on a Redis"

    def long_desc(self) -> str:
        return (
            "Start N workers on this machine, start again those that die, and end when the crawl is done. Each has "
            "its share of the hosts, and a frontier in CRAWL_DIR/NAME, or with STATE_URL=redis://… a part of the one "
            "in Redis; its output is in CRAWL_DIR/NAME.log. Ctrl-C once ends all in good order. Example: scrapy fleet"
            " -a seeds=seeds.txt --workers 2"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cores = os.cpu_count() or 1
        parser.add_argument(
            "--workers", type=int, metavar="N", help=f"default: as many as before, or {cores}, one a CPU"
        )
        parser.add_argument(
            "--name",
            default="",
            help=f"names are NAME-1, NAME-2 …; default: {LOCAL_NAME}, with Redis the machine's name",
        )

    def check_start(self, args: list[str], opts: argparse.Namespace) -> None:
        """What the workers would refuse, once and before they start."""
        log_settings = self.settings.copy()
        apply_of_folder(log_settings)
        self.settings.set("LOG_LINES", log_settings["LOG_LINES"], log_settings.getpriority("LOG_LINES") or 0)
        take_process(self.settings)
        if args:
            raise UsageError("scrapy fleet runs the web spider: give its arguments with -a", print_help=False)
        if opts.workers is not None and opts.workers < 1:
            raise UsageError("--workers must be at least 1.", print_help=False)
        if shared(self.settings):
            self._check_as(_names(opts.name or socket.gethostname(), opts.workers), opts)
        elif not str(self.settings["STATE_URL"]).startswith("rocksdb:"):
            raise UsageError(
                f"STATE_URL is {self.settings['STATE_URL']!r}; use rocksdb: or redis://host:6379/0.", print_help=False
            )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Until the crawl is done or was stopped."""
        configure_logging(self.settings)
        folder = whole_crawl(self.settings)
        if shared(self.settings):
            names = _names(opts.name or socket.gethostname(), opts.workers)
            workers = [self._worker(folder, name, opts) for name in names]
            self.exitcode = _kept_running(folder, workers)
            return
        try:
            with LockedCrawl(folder) as whole:
                self._run_local(whole, opts)
        except (OperatorError, StorageError, UsageError) as error:
            raise log_refusal(self.settings, refusal(error)) from None
        except KeyboardInterrupt:  # workers are not at work yet: from then on the supervisor has the signals
            logger.warning("Stopped before the crawl began; the same command goes on where it was.")

    def _run_local(self, whole: LockedCrawl, opts: argparse.Namespace) -> None:
        self.settings.set("STATE_URL", LOCAL, priority="cmdline")
        plan = whole.plan(opts.name, opts.workers, self.settings.getint("FLEET_PARTITIONS"))
        self._check_as(plan.workers, opts)
        service = LocalFleet(
            whole.folder,
            plan.workers,
            rest_seconds=self.settings.getfloat("PACE_IP_SECONDS"),
            log_seconds=self.settings.getfloat("PROGRESS_LOG_SECONDS"),
            is_new=whole.is_new,
        )
        workers = [self._worker(whole.folder, name, opts, whole.lock) for name in plan.workers]
        self.exitcode = _kept_running(whole.folder, workers, service)

    def _take_log(self) -> None:
        """It is taken: what is checked as a worker is reported by the supervisor."""

    def _check_as(self, names: Sequence[str], opts: argparse.Namespace) -> None:
        """Check what the first of them would."""
        self.settings.set("FLEET_WORKER", names[0], priority="cmdline")
        self._check(opts)
        self.settings.set("FLEET_WORKER", "", priority="cmdline")  # what is logged from now on is the supervisor's

    def _worker(self, folder: CrawlDir, name: str, opts: argparse.Namespace, *inherits: int) -> Worker:
        given = [part for key, value in opts.spargs.items() for part in ("-a", f"{key}={value}")]
        given += [part for pair in opts.set for part in ("-s", pair)]
        given += (
            ["-s", f"STATE_URL={LOCAL}"] if inherits else ["-s", f"FLEET_RUN={self.settings['FLEET_RUN'] or self._run}"]
        )
        command = [sys.executable, "-m", "scrapy", "crawl", "web", *given, "-s", f"FLEET_WORKER={name}"]
        return Worker(name, command, folder / f"{name}.log", inherits, LOCAL_REFUSALS if inherits else 0)


def _kept_running(folder: CrawlDir, workers: list[Worker], service: LocalFleet | None = None) -> int:
    """What is ordered from now on is for them, even for one that is not at work yet."""
    orders = StopOrders(folder)
    os.environ[SUPERVISED_SINCE] = str(orders.began)
    return Supervisor(workers, service, asked_to_stop=orders).run()


def _names(prefix: str, workers: int | None) -> list[str]:
    return [f"{prefix}-{number}" for number in range(1, (workers or os.cpu_count() or 1) + 1)]
