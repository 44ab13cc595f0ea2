"""``scrapy verify``: a strict reading of the archive, compared with its indexes and with the frontier."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from crawlerproject.inspection.verification import Each, Task, Verification
from crawlerproject.inspection.verified_file import Findings, not_ours
from crawlerproject.operator_command import WORKERS, Bytes, OperatorCommand, named_archives, workers_of
from crawlerproject.reports.warc_check import check_file
from crawlerproject.rules.archive.warc_members import is_ours
from crawlerproject.rules.printable import counted
from crawlerproject.stores.archive.warc_reader import Progress, first_member
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.terminal import say

# Problems printed; a file full of holes has thousands that say nothing new.
_SHOWN = 50


class Command(OperatorCommand):
    """Reads everything, changes nothing; works while the crawl runs."""

    arguments = "[FOLDER | FILE ...] [--workers N]"
    summary = "Check WARC files strictly, and against the index and the frontier"
    details = (
        "Read every record of a crawl folder (default: CRAWL_DIR), or of single WARC or ARC files; compare with the "
        "indexes and the frontier. Changes nothing; a crawl may run meanwhile. Exit status 1 when something is wrong."
        " Example: scrapy verify crawls/web"
    )

    options = (WORKERS,)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print what was found; problems and notes on stderr."""
        from crawlerproject.batch.file_workers import each_answer  # Scrapy imports every command at each start

        workers = workers_of(opts)

        def each(tasks: Iterable[tuple[Path, Task]], done: Progress) -> Iterator[Any]:
            return each_answer(tasks, workers, done)

        paths = [Path(arg) for arg in args]
        if any(path.is_file() for path in paths):
            self._verify_files(paths, each)
            return
        archives = named_archives(args, self.settings)
        folder = archives.crawl
        with Bytes("Verifying", [*archives.closed_warcs(), *archives.open_warcs()]) as progress:
            found = Verification(folder, progress.advance, each).run_by(self.settings)
        self.exitcode = say_findings(folder, found)

    def _verify_files(self, paths: list[Path], each: Each) -> None:
        with Bytes("Verifying", paths) as progress:
            tasks = [(path, partial(_checked, number, path)) for number, path in enumerate(paths)]
            found = sorted(each(tasks, progress.advance))
        problems, notes = ([line for one in found for line in one[place]] for place in (1, 2))
        records = sum(one[3] for one in found)
        self.exitcode = _say(problems, notes)
        say(f"{counted(len(paths), 'WARC file')}, {counted(records, 'record')}: {_verdict(problems)}")


def say_findings(folder: CrawlDir, found: Findings) -> int:
    """Problems and notes on stderr, then one line; the exit status."""
    status = _say(found.problems, found.notes)
    files, records = counted(found.files, "WARC file"), counted(found.records, "record")
    pages = f", {found.pages:,} answered pages of the frontier" if found.pages else ""
    say(f"{folder}: {files}, {records}, {counted(found.captures, 'capture')}{pages}: {_verdict(found.problems)}")
    return status


def _say(problems: list[str], notes: list[str]) -> int:
    say(*notes, *problems[:_SHOWN], error=True)
    if len(problems) > _SHOWN:
        say(f"… and {len(problems) - _SHOWN:,} more", error=True)
    return 1 if problems else 0


def _checked(number: int, path: Path, progress: Progress) -> tuple[int, list[str], list[str], int]:
    """The problems, the notes and the number of records of a file."""
    ours = is_ours(first_member(path))
    report = check_file(path, ours=ours, progress=progress)
    problems = [f"{path.name}, byte {flaw.offset}: {flaw.what}" for flaw in report.flaws]
    return number, problems, [] if ours else [not_ours(path)], report.records.total()


def _verdict(problems: list[str]) -> str:
    return counted(len(problems), "problem") if problems else "all is well"
