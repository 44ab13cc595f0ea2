"""One WARC file of a crawl, read strictly and compared with its parts of the two indexes. Changes nothing."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from crawlerproject.errors import StorageError
from crawlerproject.reports.warc_check import FileCheck
from crawlerproject.rules.archive import index_rows
from crawlerproject.rules.archive.http_messages import digest_text, payload_digest
from crawlerproject.rules.archive.index_rows import CdxjEntry
from crawlerproject.rules.archive.warc_members import TOMBSTONE, Member, is_ours
from crawlerproject.rules.archive.withdrawal import Withdrawn
from crawlerproject.rules.printable import counted
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.archive.warc_reader import Progress, Take, all_members, first_member, names_of
from crawlerproject.stores.crawl_dir import CrawlDir, stem_of
from crawlerproject.stores.index.index_files import JOURNAL_SUFFIX, without_places
from crawlerproject.stores.protocols import OpenFile

_TOO_MANY_REQUESTS, _SERVER_ERRORS = 429, 500  # RFC 6585 4, RFC 9110 15.6
_BROKE_OFF = "disconnect"  # WARC 1.1 5.14, WARC-Truncated: the rest of the page is asked for once more
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


@dataclass(slots=True)
class FileFindings(Findings):
    """Those of one file, and what of it is compared with all the others and with the frontier."""

    place: int = 0  # of the file among all
    prints: array[int] = field(default_factory=lambda: array("Q"))  # two ``print_of`` each capture, one each response
    revisits: array[int] = field(default_factory=lambda: array("Q"))  # the two, and that of the response they name
    # URLs of pages that a frontier must know, and whether it must have a record of them; only where there is one.
    fetched: dict[str, bool] = field(default_factory=dict)
    tombstones: int = 0
    bodiless: int = 0  # captures of others, shown without a body that was withdrawn


class Look(NamedTuple):
    """How a file is looked at."""

    place: int
    withdrawn: Withdrawn
    compared: bool  # there is a frontier
    committed: OpenFile | None = None  # the file that its holder has open


Walk = Callable[[Take], None]
"""Hands what is found in a file to its taker, and perhaps to others."""


def verify_closed(path: Path, look: Look, progress: Progress, walk: Walk | None = None) -> FileFindings:
    """A file that is closed, and its part of either index. ``walk``: one that others share, in place of its own."""
    found, rows = _read(path, look, None, progress, walk)
    least = look.committed.length if look.committed is not None else 0
    if (size := path.stat().st_size) < least:
        found.problems.append(f"{path.name} is {size} bytes long; {least} were committed")
    shown = [row for row in rows if not look.withdrawn.covers(row.url)]
    _cdxj(path, shown, found)
    _parquet_parts(path, shown, found)
    return found


def verify_open(folder: CrawlDir, look: Look, progress: Progress) -> FileFindings:
    """The file that is being written as far as it was committed; it may be closed any moment."""
    assert look.committed is not None
    name, length = look.committed.filename, look.committed.length
    paths = [folder.warc / each for each in names_of(name)]
    there = next((path for path in paths if path.exists()), None)
    if there is None:
        missing = f"{name} is missing; {length} bytes were committed"
        return FileFindings(place=look.place, problems=[missing])
    found, _ = _read(there, look, length, progress)
    if (after := there.stat().st_size - length) > 0:
        what = f"{there.name} goes on for {after:,} bytes after its last commit"
        found.notes.append(f"{what}; after a crash the next start cuts them off and fetches again")
    return found


def _read(
    path: Path, look: Look, until: int | None, progress: Progress, walk: Walk | None = None
) -> tuple[FileFindings, list[CdxjEntry]]:
    found, covers = FileFindings(files=1, place=look.place), look.withdrawn.covers
    rows: list[CdxjEntry] = []
    shared: list[CdxjEntry] = []  # that an index cannot name
    ours = is_ours(first_member(path))

    def seen(member: Member, kind: str) -> None:
        if kind in index_rows.INDEXED:
            row = index_rows.row_of_member(member)
            prints = print_of(row.url, row.status, ""), print_of(row.url, row.status, row.digest)
            withdrawn = covers(member.field("warc-refers-to-target-uri"))
            found.bodiless += withdrawn and not covers(row.url)
            named = member.field("warc-refers-to") if kind == "revisit" and ours and not withdrawn else ""
            if named:
                found.revisits.extend((*prints, print_of_name(named)))
            else:
                found.prints.extend(prints)
            if kind == "response":
                found.prints.append(print_of_name(member.field("warc-record-id")))
            if not ours:  # others may digest a body in its chunks, or not at all
                found.prints.append(print_of(row.url, row.status, digest_text(payload_digest(member.body))))
            (shared if member.shared else rows).append(row)
        elif kind == TOMBSTONE:
            found.tombstones += 1
        elif not (kind == "metadata" and look.compared and rows and ours) or covers(member.url):
            pass
        elif member.field("warc-concurrent-to"):
            _note_fetched(found.fetched, rows[-1], member.block)

    check = FileCheck(path, until=until, ours=ours, seen=seen)
    if walk is not None:
        walk(check.take)
    else:
        for each in all_members(path, progress, until):
            check.take(each)
    report = check.end()
    if not ours:
        found.notes.append(not_ours(path))
    found.problems += [f"{path.name}, byte {flaw.offset}: {flaw.what}" for flaw in report.flaws]
    found.records = report.records.total()
    found.captures = len(rows) + len(shared)
    found.notes += filter(None, [without_places(path.name, len(shared))])
    return found, rows


def _note_fetched(fetched: dict[str, bool], row: CdxjEntry, metadata: bytes) -> None:
    hops = _HOPS.search(metadata)
    if hops is None or not hops[1].rstrip(b"R").endswith(_FETCHED_BESIDES):
        fetched[row.url] = not _comes_back(row) or fetched.get(row.url, False)


def print_of(url: str, status: int, digest: str) -> int:
    """A capture in 64 bits; without its digest, too, since it may have been asked for otherwise."""
    return xxh3_64_intdigest(f"{url} {status} {digest}".encode())


def print_of_name(name: str) -> int:
    """A record's id or a page's URL in 64 bits."""
    return xxh3_64_intdigest(name.encode())


def _cdxj(warc: Path, rows: list[CdxjEntry], found: Findings) -> None:
    stem = stem_of(warc.name)
    index = CrawlDir(warc.parent.parent).index / f"{stem}.cdxj"
    if not index.exists():
        if index.with_name(f"{stem}{JOURNAL_SUFFIX}").exists():
            found.notes.append(f"{warc.name} is not indexed yet; the crawl, or its next start, does it")
        else:
            found.problems.append(f"{warc.name} has no index; scrapy index makes it")
        return
    due = sorted({index_rows.line(row, warc.name) for row in rows})
    there = index.read_bytes().splitlines()
    if there == due:
        return
    more, less = len(set(there) - set(due)), len(set(due) - set(there))
    what = (
        f"{counted(more, 'line')} without a capture, {counted(less, 'capture')} without a line"
        if more or less
        else "is not sorted"
    )
    found.problems.append(f"{index.name}: {what}; scrapy index makes it again")


def _parquet_parts(warc: Path, rows: list[CdxjEntry], found: Findings) -> None:
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
            found.problems.append(str(error))
            continue
        if not good:
            what = "does not agree with" if path in due and path.exists() else "is missing or none of"
            found.problems.append(f"{name} {what} {warc.name}; scrapy index makes it again")


def not_ours(path: Path) -> str:
    """The note about a file of someone else's."""
    return f"{path.name} was written by another program: whether its captures are whole is not checked"


def _comes_back(row: CdxjEntry) -> bool:
    """Whether a page that was answered so may wait in its queue for another try."""
    broke_off = row.status == 200 and row.truncated == _BROKE_OFF
    return broke_off or row.status == _TOO_MANY_REQUESTS or row.status >= _SERVER_ERRORS
