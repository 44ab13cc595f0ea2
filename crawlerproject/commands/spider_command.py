"""What ``scrapy crawl`` and ``runspider`` share: refusals of one line, and an exit status that tells."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from scrapy import Spider
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings, Settings

from crawlerproject.commands.polite_command import BriefCommandMixin
from crawlerproject.config.crawl_kind import whole_crawl
from crawlerproject.config.promised_settings import keep_addon
from crawlerproject.config.values import preset_of
from crawlerproject.crawl.start.setting_limits import check_scrapys, check_values
from crawlerproject.errors import (
    EXIT_FORGOTTEN,
    NOTHING_FETCHED,
    OPERATOR_ERROR,
    STORE_FORGOT,
    OperatorError,
    StorageError,
    StoreForgot,
    sentence_of,
)
from crawlerproject.fleet.local.supervisor_link import SUPERVISOR_GONE
from crawlerproject.json_log import formatter_of, json_handler, own_stream, take_process
from crawlerproject.stores.operator_files.control import SUPERVISED_SINCE, StopOrders
from crawlerproject.terminal import EXIT_REFUSED, refusal

if TYPE_CHECKING:
    from scrapy.commands import BaseRunSpiderCommand

    _Command = BaseRunSpiderCommand  # it is mixed into one
else:
    _Command = object

logger = logging.getLogger(__name__)

_REFUSED = "The crawl does not start: %s"
# A crawl that stopped because of errors, not because it was done (sysexits.h: EX_SOFTWARE).
_EXIT_STOPPED_BY_ERRORS = 70
# Reasons: Scrapy's own, and that of ``scrapy stop``.
_BY_SIGNAL, _BY_ORDER = "shutdown", "stopped"
_LOOK_SECONDS = 0.01  # between a crawl's opening and its first request anyway
# A worker ended in good order since its supervisor died: the same command continues (sysexits.h: EX_TEMPFAIL).
_EXIT_UNSUPERVISED = 75
# A crawl that ended by itself had not one good answer (sysexits.h: EX_UNAVAILABLE).
EXIT_NOTHING = 69
_EXITS = {
    **dict.fromkeys(
        ("errors_in_a_row", "commit_failed", "loading_failed", "frontier_damaged"), _EXIT_STOPPED_BY_ERRORS
    ),
    SUPERVISOR_GONE: _EXIT_UNSUPERVISED,
    OPERATOR_ERROR: EXIT_REFUSED,
    STORE_FORGOT: EXIT_FORGOTTEN,
    NOTHING_FETCHED: EXIT_NOTHING,
}
"""By Scrapy's ``finish_reason``; 0 for any other."""


def log_refusal(settings: BaseSettings, refused: UsageError) -> UsageError:
    """Write a refusal into the log, whatever LOG_LEVEL is; returns what is left for standard error.

    Into a log for programs; else into LOG_FILE: of a job that a daemon starts, its log is all that is seen.
    """
    path = settings.get("LOG_FILE")
    record = logger.makeRecord(logger.name, logging.ERROR, "", 0, _REFUSED, (str(refused),), None)
    if str(refused) and own_stream() is not None and (handler := json_handler()) is not None:
        handler.handle(record)
        return UsageError(print_help=False)
    if str(refused) and path:
        # It cannot be opened: that is what the sentence says.
        with (
            suppress(OSError, LookupError, ValueError),
            open(path, "a", encoding=settings.get("LOG_ENCODING") or "utf-8") as file,
        ):
            handler = logging.StreamHandler(file)
            handler.setFormatter(formatter_of(settings))
            handler.handle(record)
    return refused


class _Engine(ExecutionEngine):
    """Scrapy's ``close_async`` writes a traceback for each part that was never opened: this one remembers that.

    And a signal that carries a stop which the operator ordered is that order.
    """

    refused = False

    async def open_spider_async(self, *, close_if_idle: bool = True) -> None:
        try:
            await super().open_spider_async(close_if_idle=close_if_idle)
        except (OperatorError, StorageError, OSError):
            self.refused = True
            raise

    async def close_spider_async(self, *, reason: str = "cancelled") -> None:
        assert isinstance(self.crawler, RefusingCrawler)
        if reason == _BY_SIGNAL and self.crawler.is_stopped():
            reason = _BY_ORDER
        await super().close_spider_async(reason=reason)

    async def close_async(self, *, reason: str = _BY_SIGNAL) -> None:
        if self.refused:
            self.downloader.close()
        else:
            await super().close_async(reason=reason)


class RefusingCrawler(Crawler):
    """Says in one sentence why a crawl could not be opened although the preflight check found nothing."""

    refused = 0  # the exit status

    def __init__(self, spidercls: type[Spider], settings: Settings) -> None:
        super().__init__(spidercls, settings)
        keep_addon(self.settings, settings.getdict("ADDONS"))
        # What this process starts itself, a hook for example, is not supervised.
        self._began = float(os.environ.pop(SUPERVISED_SINCE, "") or time.time())

    async def crawl_async(self, *args: Any, **kwargs: Any) -> None:
        """What changed after the check (Redis went away, a name was taken) ends without a traceback."""
        try:
            await super().crawl_async(*args, **kwargs)
        except (OperatorError, StorageError) as error:
            self.refused = EXIT_FORGOTTEN if isinstance(error, StoreForgot) else EXIT_REFUSED
            logger.error(_REFUSED, error)
        except OSError as error:  # a file or folder of the crawl's, read or made as it opened
            if not (isinstance(self._engine, _Engine) and self._engine.refused):
                raise
            self.refused = EXIT_REFUSED
            logger.error(_REFUSED, sentence_of(error))

    def is_stopped(self) -> bool:
        """Whether a stop was ordered, taken up or not: a fleet's supervisor may pass it on before the crawl looks."""
        return StopOrders(whole_crawl(self.settings, self.spidercls.name), self._began)()

    async def stop_async(self) -> None:
        """Stop a crawl that is just opening (a signal came) once it has opened.

        Scrapy ends the process at once then: nothing is closed, and a fleet waits for the worker's leases.
        """
        while self.crawling and (engine := self._engine) and engine.spider is not None and not engine.running:
            await asyncio.sleep(_LOOK_SECONDS)
        await super().stop_async()

    def _create_engine(self) -> ExecutionEngine:
        return _Engine(self, lambda _: self.stop_async())


class SpiderCommandMixin(BriefCommandMixin, _Command):
    """Mixed into Scrapy's own commands that run a spider, before them."""

    _ours: RefusingCrawler | None = None

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Read the options, and check what they ask for before anything is started."""
        try:
            super().process_options(args, opts)
            take_process(self.settings)
            self.check_start(args, opts)
        except UsageError as refused:
            raise log_refusal(self.settings, refused) from None
        except (OperatorError, OSError) as error:
            raise log_refusal(self.settings, refusal(error)) from None

    def check_start(self, args: list[str], opts: argparse.Namespace) -> None:
        """Raise UsageError or OperatorError for what can be mended; what a spider sets itself is not known yet."""
        check_scrapys(self.settings)
        check_values(self.settings)
        preset_of(self.settings)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Crawl, and set the exit status."""
        super().run(args, opts)  # type: ignore[safe-super]  # the command it is mixed into has one
        if (crawler := self._ours) is not None:
            reason = crawler.stats.get_value("finish_reason") if crawler.stats is not None else None
            self.exitcode = crawler.refused or _EXITS.get(str(reason), self.exitcode)

    def _create_crawler(self, spidercls: type[Spider] | str) -> Crawler:
        assert self.crawler_process is not None
        if isinstance(spidercls, str):
            spidercls = self.crawler_process.spider_loader.load(spidercls)
        self._ours = RefusingCrawler(spidercls, self.settings)
        return super()._create_crawler(cast("Any", self._ours))  # it may be a crawler, which is taken as it is
