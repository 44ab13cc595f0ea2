"""Whether what a crawl keeps agrees with itself: WARC files, their two indexes, and the frontier. Changes nothing."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from xxhash import xxh3_64_intdigest

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.inspection.crawl_view import LocalView, frontier_in
from crawlerproject.reports.warc_check import FileReport, check_file
from crawlerproject.rules.archive import index_rows
from crawlerproject.rules.archive.http_messages import digest_text, payload_digest
from crawlerproject.rules.archive.index_rows import CdxjEntry
from crawlerproject.rules.archive.warc_members import TOMBSTONE, Member, is_ours
from crawlerproject.rules.archive.withdrawal import State
from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.urls import UrlRefused, host_key, parse
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.archive.recovery import torn_files
from crawlerproject.stores.archive.warc_reader import Progress, first_member
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT, OpenFile, unpack_open
from crawlerproject.stores.crawl_dir import ARCHIVE_SUFFIXES, OPEN_SUFFIX, CrawlDir, archive_of_stem, stem_of
from crawlerproject.stores.crawl_folders import ALONE, folders_of, removed_from
from crawlerproject.stores.index.index_files import JOURNAL_SUFFIX, without_places
from crawlerproject.stores.operator_files.withdrawn_list import withdrawn_of
from crawlerproject.stores.protocols import PageRecord
from crawlerproject.stores.redis.redis_reader import RedisReader
from crawlerproject.stores.rocks.fleet_view import FleetView

_TOO_MANY_REQUESTS, _SERVER_ERRORS = 429, 500  # RFC 6585 4, RFC 9110 15.6
_BROKE_OFF = "disconnect"  # WARC 1.1 5.14, WARC-Truncated: the rest of the page is asked for once more
_AT_A_TIME = 4096  # rows compared with one call
_HOPS = re.compile(rb"(?m)^hopsFromSeed: *(\w*)")
_FETCHED_BESIDES = (b"P", b"E")  # robots.txt, and what a page in the browser asked for: not pages of the frontier


@dataclass(slots=True)
class Findings:
    """What was counted, and what is not as it should be, a sentence each."""

    files: int = 0
    records: int = 0
    captures: int = 0
    pages: int = 0  # of the frontier, with an answer that must be archived
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


Compared = LocalView | RedisReader
"""A frontier that archives are compared with."""


class Captured:
    """Every capture that was seen, at 24 bytes each: enough to ask whether there is one of a page."""

    def __init__(self) -> None:
        self._prints = array("Q")
        self._sorted: np.ndarray[tuple[int], np.dtype[np.uint64]] | None = None

    def add(self, row: CdxjEntry) -> None:
        """Remember a capture."""
        self._prints.extend((_print(row.url, row.status, ""), _print(row.url, row.status, row.digest)))

    def missing(self, records: list[PageRecord]) -> list[PageRecord]:
        """Those of ``records`` that say they were answered and of which no such capture was seen."""
        if self._sorted is None:
            self._sorted = np.unique(np.frombuffer(self._prints, np.uint64))
        wanted = np.array([_print(record.url, record.status, _digest(record)) for record in records], np.uint64)
        there = np.isin(wanted, self._sorted)
        return [record for record, found in zip(records, there, strict=True) if not found]


def _print(url: str, status: int, digest: str) -> int:
    return xxh3_64_intdigest(f"{url} {status} {digest}".encode())


def _digest(record: PageRecord) -> str:
    """The payload that must be archived; of other answers than 200 there may be several under one record."""
    return digest_text(record.digest) if record.status == 200 and record.digest else ""


class Verification:
    """One look at a crawl, in all of its folders; ``progress`` gets the bytes of WARC files read."""

    def __init__(self, crawl: CrawlDir, progress: Progress) -> None:
        self.found = Findings()
        self.captured = Captured()
        self.lost: list[PageRecord] = []  # of the frontier, without a capture
        self.crawl = crawl
        self._folders = folders_of(crawl)
        self._progress = progress
        self._unknown: list[str] = []  # archived pages that the frontier does not know
        self._withdrawn = withdrawn_of(crawl)
        self._tombstones = self._bodiless = 0

    def run(self, frontier: RedisReader | None = None) -> Findings:
        """Check everything; ``frontier``: of a fleet in Redis, at which no worker is at work."""
        # Before the frontier is opened: whatever was closed by now is committed there.
        closed = {folder: folder.closed_warcs() for folder in self._folders}
        for folder, warcs in closed.items():  # and those that another place has confirmed, as they lie there
            warcs += [path for path in removed_from(folder) if path.name.endswith(ARCHIVE_SUFFIXES)]
        if frontier is not None:
            self._compared(closed, frontier)
            return self._ended(closed)
        try:
            view = frontier_in(self.crawl, at_once=any(folder.locked() for folder in self._folders))
        except OperatorError:
            self.found.notes.append("There is no frontier to compare with; only WARC files and index are checked")
            for folder in self._folders:
                self._files(folder, closed[folder], None, None)
        else:
            with view:
                self._compared(closed, view)
        return self._ended(closed)

    def _compared(self, closed: dict[CrawlDir, list[Path]], view: Compared) -> None:
        for folder in self._folders:
            self._files(folder, closed[folder], self._committed(view, folder), view)
        self._pages(view)

    def _ended(self, closed: dict[CrawlDir, list[Path]]) -> Findings:
        for folder in self._folders:
            self._left_over(folder, closed[folder])
        self._asked_back()
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
        if isinstance(view, FleetView | RedisReader):
            return unpack_open(view.fact_of(ALONE if folder == self.crawl else folder.name, ARCHIVE_FACT))
        return unpack_open(view.fact(ARCHIVE_FACT)) if folder == self.crawl else None

    def _files(self, folder: CrawlDir, closed: list[Path], committed: OpenFile | None, view: Compared | None) -> None:
        for path in closed:
            self._closed(path, committed, view)
        if committed is None or committed.filename in {path.name for path in closed}:
            return
        # Still open, or closed since the frontier was opened.
        paths = (folder.warc / f"{committed.filename}{OPEN_SUFFIX}", folder.warc / committed.filename)
        there = next((path for path in paths if path.exists()), None)
        if there is None:
            self.found.problems.append(f"{committed.filename} is missing; {committed.length} bytes were committed")
            return
        self._one(there, view, committed.length)
        if (after := there.stat().st_size - committed.length) > 0:
            what = f"{there.name} goes on for {after:,} bytes after its last commit"
            self.found.notes.append(f"{what}; after a crash the next start cuts them off and fetches again")

    def _closed(self, path: Path, committed: OpenFile | None, view: Compared | None) -> None:
        report, rows = self._one(path, view, None)
        if committed is not None and committed.filename == path.name and report.file_bytes < committed.length:
            self.found.problems.append(
                f"{path.name} is {report.file_bytes} bytes long; {committed.length} were committed"
            )
        shown = [row for row in rows if not self._withdrawn.covers(row.url)]
        self._cdxj(path, shown)
        self._parquet_parts(path, shown)

    def _one(self, path: Path, view: Compared | None, until: int | None) -> tuple[FileReport, list[CdxjEntry]]:
        """Read one file; its captures go into ``captured`` and, for the index, into the rows."""
        rows: list[CdxjEntry] = []
        shared: list[CdxjEntry] = []  # that an index cannot name
        ours = is_ours(first_member(path))
        keys: dict[bytes, str] = {}  # to be known
        decided: dict[bytes, str] = {}  # to have a record

        def seen(member: Member) -> None:
            if member.kind in index_rows.INDEXED:
                row = index_rows.row_of_member(member)
                self.captured.add(row)
                if self._withdrawn.covers(member.field("warc-refers-to-target-uri")):
                    self._bodiless += not self._withdrawn.covers(row.url)
                if not ours:  # others may digest a body in its chunks, or not at all
                    self.captured.add(row._replace(digest=digest_text(payload_digest(member.body))))
                (shared if member.shared else rows).append(row)
            elif member.kind == TOMBSTONE:
                self._tombstones += 1
            elif self._withdrawn.covers(member.url):
                pass
            elif member.kind == "metadata" and rows and ours and view and member.field("warc-concurrent-to"):
                hops = _HOPS.search(member.block)
                if hops is None or not hops[1].rstrip(b"R").endswith(_FETCHED_BESIDES):
                    url = rows[-1].url
                    try:
                        key = parse(url).key
                    except UrlRefused:  # nothing that the frontier could know
                        key = url.encode()[:24]
                    (keys if _comes_back(rows[-1]) else decided)[key] = url
                if len(keys) + len(decided) >= _AT_A_TIME:
                    self._ask(view, keys, decided)

        report = check_file(path, until=until, ours=ours, seen=seen, progress=self._progress)
        if view is not None:
            self._ask(view, keys, decided)
        found = self.found
        if not ours:
            found.notes.append(not_ours(path))
        found.problems += [f"{path.name}, byte {flaw.offset}: {flaw.what}" for flaw in report.flaws]
        found.files += 1
        found.records += report.records.total()
        found.captures += len(rows) + len(shared)
        found.notes += filter(None, [without_places(path.name, len(shared))])
        return report, rows

    def _ask(self, view: Compared, keys: dict[bytes, str], decided: dict[bytes, str]) -> None:
        keys |= decided
        hosts = [host_key(url) for url in keys.values()]
        known = view.known(list(keys), hosts)
        self._unknown += [
            url
            for (key, url), host, is_known in zip(keys.items(), hosts, known, strict=True)
            if not is_known or (key in decided and view.page(key, host) is None)
        ]
        keys.clear()
        decided.clear()

    def _cdxj(self, warc: Path, rows: list[CdxjEntry]) -> None:
        stem = stem_of(warc.name)
        index = CrawlDir(warc.parent.parent).index / f"{stem}.cdxj"
        if not index.exists():
            if index.with_name(f"{stem}{JOURNAL_SUFFIX}").exists():
                self.found.notes.append(f"{warc.name} is not indexed yet; the crawl, or its next start, does it")
            else:
                self.found.problems.append(f"{warc.name} has no index; scrapy index makes it")
            return
        due = sorted({index_rows.line(row, warc.name) for row in rows})
        there = index.read_bytes().splitlines()
        if there == due:
            return
        more, less = len(set(there) - set(due)), len(set(due) - set(there))
        what = f"{more} lines without a capture, {less} captures without a line" if more or less else "is not sorted"
        self.found.problems.append(f"{index.name}: {what}; scrapy index makes it again")

    def _parquet_parts(self, warc: Path, rows: list[CdxjEntry]) -> None:
        from crawlerproject.stores.index.parquet_tables import read_part  # Arrow: not before it is needed

        folder = CrawlDir(warc.parent.parent)
        if not (folder.index / f"{stem_of(warc.name)}.cdxj").exists():
            return  # it is written before that file: said already
        parquet = parquet_of(folder)
        due = parquet.build(warc.name, first_member(warc), rows)
        for path in sorted({*due, *parquet.parts_of(warc.name)}):
            name = path.relative_to(folder)
            try:
                good = path in due and path.exists() and read_part(path).equals(due[path])
            except StorageError as error:
                self.found.problems.append(str(error))
                continue
            if not good:
                what = "does not agree with" if path in due and path.exists() else "is missing or none of"
                self.found.problems.append(f"{name} {what} {warc.name}; scrapy index makes it again")

    def _pages(self, view: Compared) -> None:
        covers = self._withdrawn.covers
        answered = (record for _, record in view.pages() if record.status and not covers(record.url))
        while batch := list(islice(answered, _AT_A_TIME)):
            self.found.pages += len(batch)
            self.lost += self.captured.missing(batch)
        here = {folder.name for folder in self._folders}
        elsewhere = [name for name in view.workers_ever() if name not in here] if isinstance(view, RedisReader) else []
        where = f" here, where the archives of {', '.join(elsewhere)} are not" if elsewhere else ""
        said = self.found.notes if elsewhere else self.found.problems
        _say(said, f"pages of the frontier have no capture{where}", [record.url for record in self.lost])
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
            self.found.notes.append(f"{len(torn)} .torn files keep {sum(torn):,} bytes that were cut off")


def not_ours(path: Path) -> str:
    """The note about a file of someone else's."""
    return f"{path.name} was written by another program: whether its captures are whole is not checked"


def _comes_back(row: CdxjEntry) -> bool:
    """Whether a page that was answered so may wait in its queue for another try."""
    broke_off = row.status == 200 and row.truncated == _BROKE_OFF
    return broke_off or row.status == _TOO_MANY_REQUESTS or row.status >= _SERVER_ERRORS


def _say(problems: list[str], what: str, urls: Iterable[str]) -> None:
    found = list(urls)
    if found:
        problems.append(f"{len(found)} {what}, the first is {min(found)}")
