"""Whether what a crawl keeps agrees with itself: WARC files, their two indexes, and the frontier. Changes nothing."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.settings import BaseSettings

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_view import LocalView, frontier_in, frontier_in_redis
from crawlerproject.inspection.verified_file import (
    FileFindings,
    Findings,
    Look,
    print_of,
    print_of_name,
    verify_closed,
    verify_open,
)
from crawlerproject.rules.archive.http_messages import digest_text
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.archive.withdrawal import State
from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.urls import UrlRefused, host_key, host_of_page, parse
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.archive.recovery import torn_files
from crawlerproject.stores.archive.warc_reader import Progress
from crawlerproject.stores.crawl_dir import ARCHIVE_SUFFIXES, CrawlDir, archive_of_stem
from crawlerproject.stores.crawl_folders import ALONE, folders_of, missing_workers, removed_from
from crawlerproject.stores.operator_files.watched_lists import withdrawn_of
from crawlerproject.stores.protocols import ARCHIVE_FACT, OpenFile, PageRecord, unpack_open
from crawlerproject.stores.redis.journal_view import JournalView
from crawlerproject.stores.redis.redis_crawl import RedisCrawl
from crawlerproject.stores.rocks.frontier_folder import FleetView, of_redis_worker

if TYPE_CHECKING:
    import numpy as np

    _Prints = np.ndarray[tuple[int], np.dtype[np.uint64]]

_AT_A_TIME = 4096  # rows compared with one call
_PAST_ALL = 2**64 - 1

Task = Callable[[Progress], Any]
"""What is done with one file."""
Each = Callable[[Iterable[tuple[Path, Task]], Progress], Iterator[Any]]
"""Does so with several files, and gives the answers in any order."""


def one_by_one(tasks: Iterable[tuple[Path, Task]], progress: Progress) -> Iterator[Any]:
    """In this process."""
    return (task(progress) for _, task in tasks)


Compared = LocalView | JournalView
"""A frontier that archives are compared with."""


class Captured:
    """Every capture that was seen, at 24 bytes each: enough to ask whether there is one of a page, and its payload.

    A revisit counts where the response that it names was seen.
    """

    def __init__(self) -> None:
        self._prints, self._revisits = array("Q"), array("Q")
        self._sorted: _Prints | None = None
        self._dangling = 0

    def add(self, found: FileFindings) -> None:
        """Remember those of a file."""
        self._prints.extend(found.prints)
        self._revisits.extend(found.revisits)

    def missing(self, records: list[PageRecord]) -> list[PageRecord]:
        """Those of ``records`` that say they were answered and of which no such capture was seen."""
        there = self._seen([print_of(record.url, record.status, _digest(record)) for record in records])
        return [record for record, found in zip(records, there, strict=True) if not found]

    def lost(self, originals: Iterable[tuple[bytes, Original]]) -> list[bytes]:
        """The digests of payloads whose first captures were not seen."""
        some = list(originals)
        there = self._seen([print_of_name(original.record_id) for _, original in some])
        return [digest for (digest, _), found in zip(some, there, strict=True) if not found]

    def dangling(self) -> int:
        """How many revisits name a response that was not seen."""
        self._seen([])
        return self._dangling

    def _seen(self, prints: list[int]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        import numpy as np  # a fifth of a start, and what has no frontier needs none of it

        if self._sorted is None:
            whole = _in_order(np.frombuffer(self._prints, np.uint64))
            revisits = np.frombuffer(self._revisits, np.uint64).reshape(-1, 3)
            stand = _within(whole, revisits[:, 2])
            self._dangling = len(revisits) - int(stand.sum())
            self._sorted = _in_order(np.append(whole[:-1], revisits[stand, :2])) if stand.any() else whole
        return _within(self._sorted, np.array(prints, np.uint64))


def _in_order(prints: _Prints) -> _Prints:
    import numpy as np

    return np.append(np.unique(prints), np.uint64(_PAST_ALL))


def _within(those: _Prints, wanted: _Prints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    there: np.ndarray[tuple[int], np.dtype[np.bool_]] = those[those.searchsorted(wanted)] == wanted
    return there


def _place_of(url: str) -> tuple[bytes, str]:
    """Key and host of a page."""
    try:
        address = parse(url)
    except UrlRefused:  # nothing that the frontier could know
        return url.encode()[:24], host_key(url)
    return address.key, address.host


def _digest(record: PageRecord) -> str:
    """The payload that must be archived; of other answers than 200 there may be several under one record."""
    return digest_text(record.digest) if record.status == 200 and record.digest else ""


class Verification:
    """One look at a crawl, in all of its folders; ``progress`` gets the bytes of WARC files read.

    ``each`` does what is to be done with each file, in any order.
    """

    def __init__(self, crawl: CrawlDir, progress: Progress, each: Each = one_by_one) -> None:
        self.found = Findings()
        self.captured = Captured()
        self.lost: list[PageRecord] = []  # of the frontier, without a capture
        self.crawl = crawl
        self._folders = folders_of(crawl)
        self._progress, self._each = progress, each
        self._unknown: list[str] = []  # archived pages that the frontier does not know
        self._withdrawn = withdrawn_of(crawl)
        self._tombstones = self._bodiless = 0

    def run_by(self, settings: BaseSettings) -> Findings:
        """Compare with the frontier in the folder, or with that of a fleet in Redis while no worker is at work."""
        try:
            frontier = frontier_in_redis(self.crawl, settings) if self.crawl.is_here else None
        except OperatorError as error:
            self.found.notes.append(f"{error} Only archives and indexes are compared")
            return self.run()
        if frontier is None:
            return self.run()
        with frontier:
            if frontier.workers():
                self.found.notes.append("The frontier in Redis is compared when no worker is at work")
                return self.run()
            return self.run(frontier)

    def run(self, frontier: JournalView | None = None) -> Findings:
        """Check everything; ``frontier``: of a fleet over Redis, at which no worker is at work."""
        # Before the frontier is opened: whatever was closed by now is committed there.
        closed = {folder: folder.closed_warcs() for folder in self._folders}
        for folder, warcs in closed.items():  # and those that another place has confirmed, as they lie there
            warcs += [path for path in removed_from(folder) if path.name.endswith(ARCHIVE_SUFFIXES)]
        if frontier is not None:
            self._compared(closed, frontier)
            return self._ended(closed)
        try:
            if of_redis_worker(self.crawl):  # what it has is of hosts that other workers had before, or after
                raise OperatorError("the frontier is that of a fleet")
            view = frontier_in(self.crawl, at_once=any(folder.locked() for folder in self._folders))
        except OperatorError:
            self.found.notes.append("There is no frontier to compare with; only WARC files and index are checked")
            self._files(closed, None, None)
        else:
            with view:
                self._compared(closed, view)
        return self._ended(closed)

    def _compared(self, closed: dict[CrawlDir, list[Path]], view: Compared) -> None:
        import numpy as np

        pages, decided = view.pages(), array("Q")
        while batch := list(islice(pages, _AT_A_TIME)):
            urls = [record.url for _, record in batch]
            known = view.known([key for key, _ in batch], list(map(host_of_page, urls)))
            decided.extend(map(print_of_name, compress(urls, known)))
        self._files(closed, view, _in_order(np.frombuffer(decided, np.uint64)))
        self._pages(view)

    def _ended(self, closed: dict[CrawlDir, list[Path]]) -> Findings:
        missing = missing_workers(self.crawl) if self.crawl.is_here else []
        self.found.problems += [f"{folder} is missing, and with it a worker's part of the crawl" for folder in missing]
        for folder in self._folders:
            self._left_over(folder, closed[folder])
        self._asked_back()
        if dangling := self.captured.dangling():
            self.found.notes.append(f"{counted(dangling, 'revisit')} of responses that are not here")
        return self.found

    def _asked_back(self) -> None:
        """What was withdrawn, how far that is, and what depended on it."""
        for entry in self._withdrawn.entries:
            if entry.state is State.ERASING:
                again = f"scrapy withdraw {entry.what} --erase ends it"
                self.found.problems.append(f"The erasure of {entry.what} was begun and has not ended; {again}")
        if self._tombstones:
            stones = counted(self._tombstones, "tombstone")
            self.found.notes.append(f"Captures were erased: {stones} in their place")
        if self._bodiless:
            others = counted(self._bodiless, "capture")
            self.found.notes.append(f"Shown without a body, since that was withdrawn: {others} of other pages")

    def _committed(self, view: Compared, folder: CrawlDir) -> OpenFile | None:
        """What the holder of a frontier has committed of its open file; a former holder has none open."""
        if isinstance(view, FleetView | RedisCrawl):
            return unpack_open(view.fact_of(ALONE if folder == self.crawl else folder.name, ARCHIVE_FACT))
        return unpack_open(view.fact(ARCHIVE_FACT)) if folder == self.crawl else None

    def _files(self, closed: dict[CrawlDir, list[Path]], view: Compared | None, decided: _Prints | None) -> None:
        """Each file of every folder; what is to be said of them in their order."""
        tasks: list[tuple[Path, Task]] = []
        for folder, paths in closed.items():
            committed = self._committed(view, folder) if view is not None else None
            look = Look(0, self._withdrawn, view is not None, committed)
            for path in paths:
                its = committed if committed is not None and committed.filename == path.name else None
                one = look._replace(place=len(tasks), committed=its)
                tasks.append((path, partial(verify_closed, path, one)))
            if committed is not None and committed.filename not in {path.name for path in paths}:
                one = look._replace(place=len(tasks))
                tasks.append((folder.warc / committed.filename, partial(verify_open, folder, one)))
        said = []
        for one in self._each(tasks, self._progress):
            self.found.files += one.files
            self.found.records += one.records
            self.found.captures += one.captures
            self._tombstones += one.tombstones
            self._bodiless += one.bodiless
            self.captured.add(one)
            if view is not None and decided is not None:
                self._ask(view, one.fetched, decided)
            said.append((one.place, one.problems, one.notes))
        for _, problems, notes in sorted(said):
            self.found.problems += problems
            self.found.notes += notes

    def _ask(self, view: Compared, fetched: dict[str, bool], decided: _Prints) -> None:
        """A page whose URL has a record is known; others are looked for by their keys, which several URLs may share."""
        import numpy as np

        there = _within(decided, np.fromiter(map(print_of_name, fetched), np.uint64, len(fetched)))
        rest = ((url, *_place_of(url)) for url in compress(fetched, ~there))
        while some := list(islice(rest, _AT_A_TIME)):
            known = view.known([key for _, key, _ in some], [host for _, _, host in some])
            self._unknown += [
                url
                for (url, key, host), is_known in zip(some, known, strict=True)
                if not is_known or (fetched[url] and view.page(key, host) is None)
            ]

    def _pages(self, view: Compared) -> None:
        covers = self._withdrawn.covers
        answered = (record for _, record in view.pages() if record.status and not covers(record.url))
        while batch := list(islice(answered, _AT_A_TIME)):
            self.found.pages += len(batch)
            self.lost += self.captured.missing(batch)
        here = {folder.name for folder in self._folders}
        elsewhere = [name for name in view.workers_ever() if name not in here] if isinstance(view, RedisCrawl) else []
        where = f" here, where the archives of {', '.join(elsewhere)} are not" if elsewhere else ""
        said = self.found.notes if elsewhere else self.found.problems
        none = f"pages of the frontier have no capture, or a revisit of one that is not there{where}"
        _say(said, none, [record.url for record in self.lost])
        unknown = "archived pages are not known to the frontier (scrapy recover --frontier makes it again)"
        _say(self.found.problems, unknown, self._unknown)

    def _left_over(self, folder: CrawlDir, closed: list[Path]) -> None:
        """Indexes without a file, and what earlier recoveries kept."""
        index = folder.index
        named = {archive_of_stem(path.name.removesuffix(".cdxj")) for path in index.glob("*.cdxj")}
        for name in sorted((named | set(parquet_of(folder).filenames())) - {path.name for path in closed}):
            if not (folder.warc / name).exists():
                self.found.problems.append(f"The index names {name}, which is missing")
        torn = [path.stat().st_size for path in torn_files(folder)]
        if torn:
            self.found.notes.append(
                f"{counted(len(torn), '.torn file keeps', '.torn files keep')} {counted(sum(torn), 'byte')} cut off"
            )


def _say(problems: list[str], what: str, urls: Iterable[str]) -> None:
    found = list(urls)
    if found:
        problems.append(f"{len(found)} {what}, the first is {min(found)}")
