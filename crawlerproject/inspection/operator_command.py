"""What commands for the operator share: how they describe themselves, how they end, and the crawl that they look at.

Scrapy lists every command class that a module of ``commands/`` defines, so these stand elsewhere.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from scrapy.commands import ScrapyCommand
from scrapy.settings import Settings

from crawlerproject.config.crawl_file import CrawlFile, apply_of_folder
from crawlerproject.errors import OperatorError, StorageError, sentence_of
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.settings import given
from crawlerproject.terminal import guard_streams, say

_EXIT_REFUSED = 2


class OperatorCommand(ScrapyCommand):
    """Needs no crawler. What the operator can mend is one sentence and exit status 2."""

    requires_project = True
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False, **given()}
    settings: Settings  # Scrapy sets them before it calls a command

    arguments = ""
    """What may follow the command's name."""
    summary = ""
    """One line for the list of commands."""
    details = ""
    """What ``scrapy COMMAND -h`` prints."""
    example = ""

    def __init__(self) -> None:
        super().__init__()
        # Scrapy makes one of each command that it has imported: all of them for a command of its own, whose output is
        # guarded by that.
        guard_streams()

    def syntax(self) -> str:
        return self.arguments

    def short_desc(self) -> str:
        return self.summary

    def long_desc(self) -> str:
        return self.details

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with one_sentence():
            self.answer(args, opts)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """What the command does. OperatorError and StorageError end it."""
        raise NotImplementedError


class InspectCommand(OperatorCommand):
    """Answers a question about the crawl that CRAWL_DIR names, in text or, with ``--json``, for programs."""

    crawl_file: CrawlFile | None = None

    def long_desc(self) -> str:
        return f"{self.summary}. Example: {self.example} (-s CRAWL_DIR=DIR for another crawl than crawls/web)"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="for programs: JSON instead of text")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with one_sentence():
            self.crawl_file = apply_of_folder(self.settings)
            self.answer(args, opts)

    def look(self) -> CrawlView:
        """A look at the crawl that the settings name."""
        return CrawlView(self.settings)


@contextmanager
def one_sentence() -> Iterator[None]:
    """Say what the operator, or the disk, got wrong in one sentence, with exit status 2 and without a traceback."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as ``head`` does
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # or Python complains when it flushes at its end
        raise SystemExit(0) from None
    except (OperatorError, StorageError, OSError) as error:
        raise SystemExit(_refused(sentence_of(error))) from None


def _refused(sentence: str) -> int:
    say(sentence, error=True)
    return _EXIT_REFUSED


def one_argument(args: list[str], what: str, example: str) -> str:
    """The only argument. Raises OperatorError, with an example, when there is none or more."""
    if len(args) != 1:
        raise OperatorError(f"Give {what}, for example: {example}")
    return args[0]
