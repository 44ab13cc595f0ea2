"""``scrapy process --verify --index``: each file is read once, and each of them does its own work on what is found."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scrapy.settings import BaseSettings

from crawlerproject.commands.index import messages_on_lost, say_indexed
from crawlerproject.commands.verify import say_findings
from crawlerproject.inspection.verification import Verification
from crawlerproject.inspection.verified_file import FileFindings
from crawlerproject.operator_command import Bytes
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.archive.warc_reader import Progress, Take
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import Archives
from crawlerproject.stores.index.index_files import CdxjFiles, RowsRead
from crawlerproject.terminal import say

if TYPE_CHECKING:  # Scrapy imports every module beside its commands at each start, and Arrow is heavy
    from crawlerproject.batch.file_workers import Task
    from crawlerproject.batch.process_warcs import ExtractOptions, Outcome

Verify = Callable[..., FileFindings]
"""``verify_closed`` of one file, but for its walk."""


class _Walked(NamedTuple):
    """What came of one file."""

    outcome: Outcome
    messages: list[str]  # on its index
    findings: FileFindings | None


class Walks:
    """The closed files of a crawl, each read by one of some processes."""

    def __init__(self, archives: Archives, out: Path, wanted: ExtractOptions, opts: argparse.Namespace) -> None:
        self._archives, self._out, self._wanted = archives, out, wanted
        self._workers = opts.workers or os.cpu_count() or 1
        self._verify, self._index = bool(opts.verify), bool(opts.index)
        self._folders = {warc: folder for folder in archives.folders for warc in folder.closed_warcs()}
        self._damaged = False

    def run(self, settings: BaseSettings) -> int:
        """All of it; the exit status."""
        archives, found = self._archives, None
        files = [*archives.closed_warcs(), *(archives.open_warcs() if self._verify else ())]
        with Bytes("Processing", files) as progress:
            if self._verify:
                found = Verification(archives.crawl, progress.advance, self._each).run_by(settings)
            else:
                tasks = [(warc, None) for warc in archives.closed_warcs()]
                for _ in self._each(tasks, progress.advance):
                    pass
        if self._index:
            self._say("", [], messages_on_lost(archives))
            say_indexed(archives)
        status = say_findings(archives.crawl, found) if found is not None else 0
        return 1 if self._damaged else status

    def _each(self, tasks: Iterable[tuple[Path, Verify | None]], done: Progress) -> Iterator[FileFindings | None]:
        """What ``verify`` wants to know of each file; the rest is done besides."""
        from crawlerproject.batch.file_workers import FileWorkers, Lost

        asked, closed = dict(tasks), set(self._archives.closed_warcs())
        walks = [
            (path, self._walk(path, task) if task is None or path in closed else task) for path, task in asked.items()
        ]
        with closing(FileWorkers(self._workers)) as processes:
            for path, answer in processes.run(walks, done):
                if isinstance(answer, Lost):
                    self._say(answer.sentence, [], [])
                    answer = task(done) if (task := asked[path]) is not None else None
                elif isinstance(answer, _Walked):
                    self._say(answer.outcome.problem, answer.outcome.notes, answer.messages)
                    answer = answer.findings
                yield answer

    def _walk(self, warc: Path, verify: Verify | None) -> Task:
        folder = self._folders.get(warc) if self._index else None
        return partial(_walked, warc, self._out, self._wanted, folder, verify)

    def _say(self, problem: str, notes: Sequence[str], messages: list[str]) -> None:
        say(*notes, *filter(None, [problem]), *messages, error=True)
        self._damaged |= bool(problem or messages)


def _walked(
    warc: Path, out: Path, wanted: ExtractOptions, indexed: CrawlDir | None, verify: Verify | None, progress: Progress
) -> _Walked:
    """One walk over a closed file; its index is written before ``verify`` compares it."""
    from crawlerproject.batch.process_warcs import process_warc

    outcomes: list[Outcome] = []
    read, messages = RowsRead(warc), list[str]()

    def walk(*takers: Take) -> None:
        index = (read.take,) if indexed is not None else ()
        outcomes.append(process_warc(warc, out, wanted, progress, others=(*takers, *index)))
        if indexed is not None:
            messages.extend(CdxjFiles(indexed.index, parquet_of(indexed)).write(warc, read))

    findings = None
    if verify is None:
        walk()
    else:
        findings = verify(progress, walk=walk)
    return _Walked(outcomes[0], messages, findings)
