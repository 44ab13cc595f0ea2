"""``scrapy process --follow`` and ``scrapy load --follow``: what a crawl has archived can be searched while it goes on.

Of a file that is still written the piece is taken that the crawl has committed since the last one: what a power loss or
a kill would leave. A piece counts by its name alone, so that a follower which is killed goes on behind the last that is
there. Pieces of one folder are made by one follower at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from math import inf
from pathlib import Path
from typing import NamedTuple

from crawlerproject.batch.process_warcs import ExtractOptions, Outcome, Workers, is_done, pieces_end
from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.stores.crawl_dir import CrawlDir, is_locked, lock_or_refuse, read_facts
from crawlerproject.stores.crawl_folders import archives_of
from crawlerproject.stores.protocols import ARCHIVE_FACT, GIVEN_ARCHIVE_FACT, unpack_open
from crawlerproject.stores.rocks.rocks_tables import open_facts

BETWEEN_SECONDS = 20.0
"""Between two looks at WARCs: a page is in the tables within a minute, a day leaves some 4,000 files at most (ours)."""
TABLES_SECONDS = 5.0
"""Between two looks at tables, which cost a listing of their folder (ours)."""
PATIENCE_SECONDS = 60.0
"""After which a crawl that was killed is taken for ended; a busy machine takes ten seconds to begin it again (ours)."""
_LOCK, _ENDED = ".follow", b"ended"  # the lock's content: that it was not killed
_END_SECONDS = 1.0  # within which the end of a crawl is noticed

Sleep = Callable[[float], None]
Clock = Callable[[], float]
Shown = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""Shows how much of so many bytes is done, as it is called with those that are."""


def follow(
    crawl: CrawlDir, out: Path, wanted: ExtractOptions, workers: int, shown: Shown, sleep: Sleep = time.sleep
) -> Iterator[Outcome]:
    """The messages about some WARCs, until no process of the crawl is left and all is done.

    One that could not be read is not read again. Raises OperatorError where another one follows.
    """
    out.mkdir(parents=True, exist_ok=True)
    with (out / _LOCK).open("ab") as lock, closing(Workers(workers)) as processes:
        lock_or_refuse(lock.fileno(), f"Another scrapy process --follow works on {out}; stop that one first.")
        lock.truncate(0)
        for path in out.glob("*/*.parquet.part*"):  # leftovers of a follower that was killed
            path.unlink(missing_ok=True)
        settled = set[Path]()  # closed and done, or not to be read again
        for last in looks(Going(crawl), BETWEEN_SECONDS, sleep):
            try:
                waiting = dict(_waiting(crawl, out, wanted, settled))
            except (OperatorError, StorageError):  # a plan is just being written, a frontier is busy, a place is away
                if last:
                    raise
                continue
            if not waiting:
                continue
            committed = {warc: span.end if span.is_open else None for warc, span in waiting.items()}
            with shown(sum(span.end - span.start for span in waiting.values())) as done:
                for warc, outcome in processes.process(committed, out, wanted, done):
                    if outcome.problem:
                        settled.add(warc)
                    if outcome != Outcome():
                        yield outcome
        lock.write(_ENDED)


def looks(going_on: Callable[[], bool], between_seconds: float, sleep: Sleep = time.sleep) -> Iterator[bool]:
    """Time for a look, now and then, and when it has ended for the last one (True): that one misses nothing."""
    while going_on():
        yield False
        slept = 0.0
        while slept < between_seconds and going_on():
            sleep(_END_SECONDS)
            slept += _END_SECONDS
    yield True


class Going:
    """Whether a crawl goes on: a process of it is left, or was killed a moment ago and may be begun again."""

    def __init__(self, crawl: CrawlDir, *, tables: bool = False, clock: Clock = time.monotonic) -> None:
        """``tables``: with what follows it."""
        self._crawl, self._tables, self._clock = crawl, tables, clock
        self._seen = -inf  # at work

    def __call__(self) -> bool:
        lock = self._crawl.processed / _LOCK
        if any(folder.locked() for folder in self._folders()) or (self._tables and is_locked(lock)):
            self._seen = self._clock()
            return True
        return self._clock() - self._seen < PATIENCE_SECONDS and (
            any((status := read_facts(folder.status)) and not status.get("ended") for folder in self._folders())
            or (self._tables and lock.exists() and lock.read_bytes() != _ENDED)
        )

    def _folders(self) -> list[CrawlDir]:
        try:
            return archives_of(self._crawl).to_lock()
        except OperatorError:  # a fleet's plan is just being written
            return [self._crawl]


class _Span(NamedTuple):
    """The bytes of a WARC that wait."""

    start: int
    end: int
    is_open: bool


def _waiting(crawl: CrawlDir, out: Path, wanted: ExtractOptions, settled: set[Path]) -> Iterator[tuple[Path, _Span]]:
    """WARCs of which something is not done yet, by their final names; what is done for good becomes ``settled``.

    Raises OperatorError, StorageError.
    """
    archives = archives_of(crawl)
    written = [each for each in map(_committed, archives.folders) if each is not None]
    for warc in archives.closed_warcs():  # after the open ones: a file may be closed meanwhile
        if warc in settled:
            continue
        if is_done(warc, out, wanted):
            settled.add(warc)
        else:
            size = warc.stat().st_size
            yield warc, _Span(pieces_end(warc, out, size), size, is_open=False)
    for warc, end in written:
        if not warc.exists() and (start := pieces_end(warc, out, end)) < end:
            yield warc, _Span(start, end, is_open=True)


def _committed(folder: CrawlDir) -> tuple[Path, int] | None:
    """The open file by its final name, and its bytes that no crash takes back."""
    if not folder.open_warcs() or not folder.has_frontier():
        return None
    with closing(open_facts(os.fspath(folder.frontier))) as facts:
        fact = GIVEN_ARCHIVE_FACT if folder.worker.exists() else ARCHIVE_FACT
        state = unpack_open(facts.get(fact.encode()))
    return None if state is None else (folder.warc / state.filename, state.length)
