"""What commands for the operator share: how they describe themselves and end, and which crawl they look at.

Scrapy lists every command class that a module of ``commands/`` defines, so the base classes stand here.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from scrapy.settings import BaseSettings, Settings

from crawlerproject.config.crawl_file import CrawlFile, apply_of_folder
from crawlerproject.config.crawl_kind import whole_crawl
from crawlerproject.errors import OperatorError, StorageError, sentence_of
from crawlerproject.light_start import LightCommand, is_light
from crawlerproject.rules.printable import human_bytes, human_seconds
from crawlerproject.settings import given
from crawlerproject.stores.atomic_files import opened
from crawlerproject.stores.crawl_dir import CrawlDir, check_there, lock_or_refuse, take_lock
from crawlerproject.stores.crawl_folders import Archives, archives_of
from crawlerproject.terminal import EXIT_REFUSED, console, guard_streams, prepare_parser, say

if TYPE_CHECKING:
    from rich.progress import Progress
    from scrapy.commands import ScrapyCommand

    from crawlerproject.inspection.crawl_view import CrawlView
elif is_light():
    ScrapyCommand = LightCommand
else:
    from scrapy.commands import ScrapyCommand

EXIT_INTERRUPTED = 130
"""A shell's exit status of a program that SIGINT ended: 128 and the signal."""
ORDER_SECONDS = 15.0
"""A running crawl looks for orders twice a second; many seeds, or a busy machine, take longer."""
_LOOK_SECONDS = 0.1
LOCAL, DUCKDB, SPARK = "local", "duckdb", "spark"
"""Engines of steps that need not run on this machine alone."""
# A line this often where there is no terminal to draw a bar on (ours).
_LINE_SECONDS = 10.0
# Of a core that a crawl wants too, a tenth is left to it (Linux gives niceness 10 a weight of 110, 0 one of 1024).
_LONG_NICENESS = 10


class Option(NamedTuple):
    """What ``ArgumentParser.add_argument`` takes."""

    names: tuple[str, ...]
    given: dict[str, Any]


def option(*names: str, **given: Any) -> Option:
    """One of a command's ``options``."""
    return Option(names, given)


SPAN = (
    option("--since", metavar="TIME", default="", help="2026-01-31 or 2026-01-31T12:00, in UTC"),
    option("--until", metavar="TIME", default="", help="the same; this moment itself is left out"),
)
"""Options that ``span_of`` reads."""


WORKERS = option("--workers", type=int, default=1, help="processes (default: 1)")
"""Option that ``workers_of`` reads."""


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
    options: tuple[Option, ...] = ()

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

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        prepare_parser(parser)
        for each in self.options:
            parser.add_argument(*each.names, **each.given)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with one_sentence():
            refuse_options(self, args)
            self.answer(args, opts)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """What the command does. OperatorError and StorageError end it."""
        raise NotImplementedError


class InspectCommand(OperatorCommand):
    """Answers a question about the crawl that CRAWL_DIR names, in text or, with ``--json``, for programs."""

    example = ""
    crawl_file: CrawlFile | None = None

    def long_desc(self) -> str:
        return f"{self.summary}. Example: {self.example} (-s CRAWL_DIR=DIR for another crawl than crawls/web)"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="for programs: JSON instead of text")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with one_sentence():
            refuse_options(self, args)
            self.crawl_file = apply_of_folder(self.settings)
            self.answer(args, opts)

    def look(self) -> CrawlView:
        """A look at the crawl that the settings name."""
        from crawlerproject.inspection.crawl_view import CrawlView  # half a start of a command that looks at archives

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
        say(sentence_of(error), error=True)
        raise SystemExit(EXIT_REFUSED) from None
    except KeyboardInterrupt:
        say("Stopped; what is done stays, and the same command does the rest.", error=True)
        raise SystemExit(EXIT_INTERRUPTED) from None


def refuse_options(command: ScrapyCommand, args: list[str]) -> None:
    """Raise OperatorError for an option that the command does not have: Scrapy takes it for an argument."""
    unknown = next((each for each in args if each.startswith("--") and len(each) > 2), None)
    if unknown is not None:
        name = command.__module__.rpartition(".")[2]
        raise OperatorError(f"There is no option {unknown.partition('=')[0]}; scrapy {name} -h lists them all.")


def one_argument(args: list[str], what: str, example: str) -> str:
    """The only argument. Raises OperatorError, with an example, when there is none or more."""
    if len(args) != 1:
        raise OperatorError(f"Give {what}, for example: {example}")
    return args[0]


def named_crawl(args: list[str], settings: BaseSettings) -> CrawlDir:
    """The folder of a crawl, with those of its workers in it: the first argument, or CRAWL_DIR; or its ARCHIVE_URL."""
    named = args[0] if args else str(settings["CRAWL_DIR"] or "")
    if "://" in named:
        from crawlerproject.stores.uploads.distant import distant_crawl  # commands on folders do without

        return distant_crawl(named)
    return CrawlDir(args[0]) if args else whole_crawl(settings)


def named_archives(args: list[str], settings: BaseSettings) -> Archives:
    """What the crawl that is named has archived. Raises OperatorError when there is no WARC file."""
    folder = named_crawl(args, settings)
    if folder.is_here:
        check_there(folder)
    archives = archives_of(folder)
    if not archives.has_archive():
        raise OperatorError(f"{folder} holds no crawl: there is no WARC file in {folder.warc}.")
    return archives


def processed_files(folder: CrawlDir, kind: str, lacking: str) -> tuple[Path, list[Path]]:
    """The folder of one ``kind`` of results of ``scrapy process``, and its files. OperatorError when there are none."""
    if folder.is_here:
        check_there(folder)
    results = folder.processed / kind
    files = list(results.glob("*.parquet"))
    if not files:
        raise OperatorError(f"{lacking} in {results}; run scrapy process first.")
    return results, files


@contextmanager
def locked(folders: Iterable[CrawlDir]) -> Iterator[None]:
    """No process of the crawl works in these folders meanwhile. Raises OperatorError when one does."""
    with ExitStack() as locks:
        for folder in folders:
            locks.callback(os.close, take_lock(folder))
        yield


@contextmanager
def still(folders: Iterable[Path], *, erases: bool = False) -> Iterator[None]:
    """Nothing is erased in these folders meanwhile; or, for what ``erases``, nothing reads them to make something.

    Raises OperatorError when it does.
    """
    with ExitStack() as locks:
        for folder in folders:
            descriptor = locks.enter_context(opened(folder, os.O_RDONLY))
            try:
                fcntl.flock(descriptor, fcntl.LOCK_NB | (fcntl.LOCK_EX if erases else fcntl.LOCK_SH))
            except BlockingIOError:
                other = "process, load or export" if erases else "withdraw --erase"
                raise OperatorError(f"A scrapy {other} is at work in {folder}; let it end first, or stop it.") from None
        yield


@contextmanager
def alone(folder: Path, command: str) -> Iterator[None]:
    """No other process works in ``folder`` meanwhile: made, and removed if it stays empty. Raises OperatorError."""
    folder.mkdir(parents=True, exist_ok=True)
    with opened(folder, os.O_RDONLY) as descriptor:
        lock_or_refuse(descriptor, f"Another scrapy {command} is at work in {folder}; let it end first.")
        try:
            yield
        finally:
            with suppress(OSError):  # what was refused leaves nothing
                folder.rmdir()


def engine_options(*engines: str) -> tuple[Option, Option]:
    """``--engine``, whose default is the first of these, and where Spark is."""
    return (
        option("--engine", choices=engines, default=engines[0], help="who does it (docs/engines.md)"),
        option("--master", default="local[*]", help="of Spark: local[N], spark://HOST:PORT, yarn, k8s://..."),
    )


def workers_of(opts: argparse.Namespace) -> int:
    """The value of the option WORKERS. Raises OperatorError."""
    workers = int(opts.workers)
    if workers < 1:
        raise OperatorError(f"--workers is {workers}; give 1 or more.")
    return workers


def span_of(opts: argparse.Namespace) -> tuple[str, str]:
    """The moments of SPAN as the log writes them, in UTC, "" for one that is not given. Raises OperatorError."""
    return _logged_moment(opts.since, "--since"), _logged_moment(opts.until, "--until")


def _logged_moment(text: str, named: str) -> str:
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise OperatorError(f"{named} is {text!r}; write 2026-01-31 or 2026-01-31T12:00 (UTC).") from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def waited_for(done: Callable[[], bool], patience_seconds: float) -> float:
    """Look again and again until it is done, or for so long; the seconds that this took."""
    began = time.monotonic()
    while not done() and time.monotonic() - began < patience_seconds:
        time.sleep(_LOOK_SECONDS)
    return time.monotonic() - began


@contextmanager
def leaving_cores() -> Iterator[None]:
    """For so long this process, and each that it starts, leaves the cores to a crawl that runs."""
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(niceness, _LONG_NICENESS))
    try:
        yield
    finally:
        with suppress(PermissionError):  # only root may; a command ends soon after
            os.setpriority(os.PRIO_PROCESS, 0, niceness)


class Bytes:
    """How much of these files' bytes is done: a bar on a terminal, now and then a line elsewhere; always on stderr.

    Meanwhile it is ``leaving_cores``.
    """

    def __init__(self, what: str, files: Iterable[Path] | int) -> None:
        """``files``: paths, or a number of bytes."""
        total = files if isinstance(files, int) else sum(file.stat().st_size for file in files)
        self._what, self._total, self._done = what, total, 0
        self._began = self._said = time.monotonic()
        self._leaving = leaving_cores()
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            measures = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
            columns = (TextColumn(what), BarColumn(), *measures)
            self._bar = Progress(*columns, console=console(error=True), transient=True)
            self._task = self._bar.add_task(what, total=total)

    def __enter__(self) -> Self:
        self._leaving.__enter__()
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.__exit__(None, None, None)
        if self._bar is not None:
            self._bar.stop()

    def advance(self, done: int) -> None:
        """So many bytes more are done."""
        self._done += done
        if self._bar is not None:
            self._bar.advance(self._task, done)
        elif time.monotonic() - self._said >= _LINE_SECONDS:
            self._said = time.monotonic()
            rate = self._done / (self._said - self._began)
            left = human_seconds(max(0, self._total - self._done) / rate) if rate else "unknown"
            speed = f"{human_bytes(int(rate))}/s, left: {left}"
            total = max(self._done, self._total)  # files may have come meanwhile
            say(f"{self._what}: {self._done:,} of {total:,} bytes, {speed}", error=True)
