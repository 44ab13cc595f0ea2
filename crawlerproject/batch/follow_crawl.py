"""``scrapy process --follow``: what a crawl has archived becomes Parquet while it goes on.

Of a file that is still written the piece is taken that the crawl has committed since the last one: what a power loss or
a kill would leave. A piece counts by its name alone, so that a follower which is killed goes on behind the last that is
there. Pieces of one folder are made by one follower at a time.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from crawlerproject.batch.process_warcs import Outcome, is_done, pieces_end, process_pieces
from crawlerproject.batch.warc_extract import ExtractOptions
from crawlerproject.errors import OperatorError
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT, unpack_open
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import Archives, archives_of
from crawlerproject.stores.rocks.tables import open_facts

BETWEEN_SECONDS = 20.0
"""Between two looks: a page is in the tables within a minute, and a day leaves some 4,000 files at most (ours)."""
_LOCK = ".follow"


def follow(
    crawl: CrawlDir, out: Path, wanted: ExtractOptions, workers: int, sleep: Callable[[float], None] = time.sleep
) -> Iterator[Outcome]:
    """What is to be said of some WARCs, until no process of the crawl is left and all is done.

    One that could not be read is not read again. Raises OperatorError where another one follows.
    """
    out.mkdir(parents=True, exist_ok=True)
    with (out / _LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperatorError(f"Another scrapy process --follow works on {out}; stop that one first.") from None
        _remove_parts(out)
        failed = set[Path]()
        while True:
            archives = archives_of(crawl)
            going_on = any(
                folder.locked() for folder in archives.to_lock()
            )  # asked first: the last look misses nothing
            waiting = {warc: end for warc, end in _waiting(archives, out, wanted) if warc not in failed}
            for warc, outcome in process_pieces(waiting, out, wanted, workers):
                if outcome.problem:
                    failed.add(warc)
                if outcome != Outcome():
                    yield outcome
            if not going_on:
                return
            sleep(BETWEEN_SECONDS)


def _waiting(archives: Archives, out: Path, wanted: ExtractOptions) -> Iterator[tuple[Path, int | None]]:
    """WARCs of which something is not done yet, by their final names; None: it is closed."""
    for folder in archives.folders:
        written = _committed(folder)  # before the closed ones: a file may be closed meanwhile
        for warc in folder.closed_warcs():
            if not is_done(warc, out, wanted):
                yield warc, None
        if written is not None and not written[0].exists() and pieces_end(written[0], out, written[1]) < written[1]:
            yield written


def _committed(folder: CrawlDir) -> tuple[Path, int] | None:
    """The open file by its final name, and its good bytes; of a fleet whose frontier is in Redis none is known."""
    if not folder.open_warcs() or not folder.has_frontier():
        return None
    with closing(open_facts(os.fspath(folder.frontier))) as facts:
        state = unpack_open(facts.get(ARCHIVE_FACT.encode()))
    return None if state is None else (folder.warc / state.filename, state.length)


def _remove_parts(out: Path) -> None:
    """Leftovers of a follower that was killed."""
    for path in out.glob("*/*.parquet.part*"):
        path.unlink(missing_ok=True)
