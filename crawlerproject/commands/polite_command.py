"""What ``scrapy shell``, ``fetch``, ``parse`` and ``view`` share: every polite rule, and refusals of one line.

They open no crawl's files: Scrapy's own scheduler serves them, and the download handler enforces the rules.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.exceptions import ScrapyDeprecationWarning, UsageError
from scrapy.settings import SETTINGS_PRIORITIES

from crawlerproject.addon import set_for_frontier
from crawlerproject.config.crawl_file import apply_of_folder
from crawlerproject.config.values import identity, list_of, preset_of
from crawlerproject.crawl.start.setting_limits import check_scrapys, check_signing, check_values
from crawlerproject.errors import OperatorError
from crawlerproject.reasons import Reason
from crawlerproject.settings import given
from crawlerproject.terminal import guard_streams, prepare_parser, refusal, say

if TYPE_CHECKING:
    from scrapy.commands import ScrapyCommand
    from scrapy.settings import Settings

    _Command = ScrapyCommand  # it is mixed into one
else:
    _Command = object

_PROJECT = SETTINGS_PRIORITIES["project"]
_REDIRECTS = "crawlerproject.middlewares.redirects.ShellRedirects"
# Below the filters of the chain: each hop is a request of its own and passes them all.
_REDIRECTS_AT = 600
_LET_IN = "an address of a network of your own is let in by -s FETCH_ALLOW_NETWORKS=10.0.0.0/8 or its like"
_ONE_URL = "Give one URL, with http:// or https:// before it."


class BriefCommandMixin(_Command):
    """Mixed into Scrapy's own commands, before them: our settings, and refusals of one line."""

    settings: Settings  # Scrapy sets them before it calls a command
    default_settings: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        """Add our settings' defaults: an add-on brings them when a crawler is made, and they are checked before."""
        super().__init_subclass__()
        if hasattr(cls, "default_settings"):  # else another mixin
            cls.default_settings = {**cls.default_settings, **given()}

    def __init__(self) -> None:
        super().__init__()
        guard_streams()

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        prepare_parser(parser)


class PoliteCommandMixin(BriefCommandMixin):
    """Of the commands that ask for a page outside a crawl."""

    exitcode: int

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Check our settings; log warnings only, unless LOG_LEVEL is given; follow redirects through every gate."""
        super().process_options(args, opts)
        settings = self.settings
        set_for_frontier(settings)  # in another project: the same chain as here
        try:
            apply_of_folder(settings)
            check_scrapys(settings)
            check_values(settings)
            identity(settings)
            check_signing(settings)
            preset_of(settings)
            list_of(settings, "FETCH_ALLOW_NETWORKS")
        except OperatorError as error:
            raise refusal(error) from None
        if (settings.getpriority("LOG_LEVEL") or 0) <= _PROJECT:
            settings.set("LOG_LEVEL", "WARNING", "project")
            # It warns of extensions that are off outside a crawl, as intended. (A level would be reset.)
            logging.getLogger("scrapy.middleware").addFilter(lambda record: record.levelno > logging.WARNING)
        settings.set("REDIRECT_ENABLED", True, "project")
        chain = dict(settings.getdict("DOWNLOADER_MIDDLEWARES")) | {_REDIRECTS: _REDIRECTS_AT}
        settings.set("DOWNLOADER_MIDDLEWARES", chain, "project")

    def refuse_unknown_spider(self, opts: argparse.Namespace) -> None:
        """Raise UsageError. Not before ``run``: an add-on brings spiders when the process of the crawl is made."""
        assert self.crawler_process is not None
        known = sorted(self.crawler_process.spider_loader.list())
        if opts.spider and opts.spider not in known:
            raise UsageError(f"There is no spider {opts.spider!r}; there are {', '.join(known)}.", print_help=False)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print each refusal and failure as one line on standard error; any of them makes the exit status 1."""
        self.refuse_unknown_spider(opts)
        # Scrapy's own parse command wraps callbacks in this way.
        warnings.filterwarnings("ignore", "(?s).*returned a Deferred", ScrapyDeprecationWarning)
        # Printed whatever LOG_LEVEL is.
        printer = _RefusalPrinter(logging.INFO)
        for name in ("crawlerproject.guard.guard", "crawlerproject.fetch.download_handler"):
            logging.getLogger(name).addHandler(printer)
        try:
            super().run(args, opts)  # type: ignore[safe-super]  # the command it is mixed into has one
        except UsageError as error:  # Scrapy's own says nothing, beside a screen of help
            raise UsageError(str(error) or _ONE_URL, print_help=False) from None
        if printer.count:
            self.exitcode = 1


class _RefusalPrinter(logging.Handler):
    """Prints each refusal as one line on standard error, and counts them."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        if not hasattr(record, "reason") and record.levelno < logging.WARNING:  # that a host rests
            return
        self.count += 1
        message = " ".join(record.getMessage().split())
        say(f"{message}; {_LET_IN}" if Reason.PRIVATE_ADDRESS in message else message, error=True)
