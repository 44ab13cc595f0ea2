"""Mends WARC files: what is not committed, or damaged, is cut out and kept aside in ``torn/``.

``recover`` is done to the folder at each start: only committed bytes stay in an open file. ``mend`` is for a file that
is damaged somewhere: its good captures stay.

Pages whose captures the disk lost: put back into the frontier, to be fetched and archived again.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, NamedTuple

from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.index_rows import CdxjEntry, sha1_of
from crawlerproject.rules.archive.warc_members import CHUNK_BYTES, Flaw, Member, whole_length
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.printable import counted
from crawlerproject.rules.row_kinds import FLAG_FRAME, FLAG_REQUISITE, SEED, requisite_key
from crawlerproject.rules.url.urls import UrlRefused, parse
from crawlerproject.stores.archive.warc_reader import Progress, members, next_member, packed_members
from crawlerproject.stores.atomic_files import storage_errors, sync_path, unused, whole_file
from crawlerproject.stores.crawl_dir import OPEN_SUFFIX, WARC_SUFFIX, CrawlDir
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.logs.request_log import log_files, read_rows
from crawlerproject.stores.protocols import (
    ARCHIVE_FACT,
    Changes,
    FrontierStore,
    OpenFile,
    PageRecord,
    QueuedPage,
    is_embedded,
    pack_open,
)

TORN_SUFFIX = ".torn"
"""Beside ``warc/``, so that whatever takes all files of that folder takes no scraps; before, they lay in it."""

# How far before its end a file is read again after a crash: what was in flight to the disk when the power went (ours).
_TAIL_BYTES = 64 * 1024

RowsLost = Callable[[list[CdxjEntry], OpenFile | None], int]
"""(committed captures that a power loss took, what is kept of the open file) -> how many pages are queued again."""

Span = tuple[int, int]
"""First byte, first byte after."""


@dataclass(slots=True)
class Recovery:
    """What was found and done at start."""

    open_file: OpenFile | None = None  # to go on with
    torn: list[tuple[Path, int]] = field(default_factory=list)  # kept aside: file, bytes
    messages: list[str] = field(default_factory=list)  # for the log, one sentence each

    def keeps(self, torn: Path, what: str) -> None:
        """Something was done to a file, and what it had is kept."""
        kept = torn.stat().st_size
        self.torn.append((torn, kept))
        self.messages.append(f"{what}; {kept} bytes are kept in {torn.parent.name}/{torn.name}")


def recover(
    folder: Path, committed: OpenFile | None, index: CdxjFiles | None = None, lost: RowsLost | None = None
) -> Recovery:
    """Cut the open file to what was committed and move files begun after the last commit aside.

    Runs again safely after a crash at any point of it; earlier ``.torn`` files are never overwritten.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recovery = Recovery()
    for path in sorted(folder.glob(f"*{WARC_SUFFIX}{OPEN_SUFFIX}")):
        filename = path.name.removesuffix(OPEN_SUFFIX)
        with storage_errors(path):
            if committed is not None and filename == committed.filename:
                _cut_to_committed(path, committed, recovery, index)
            else:
                recovery.keeps(move_aside(path), f"{path.name}, begun after the last commit, was moved aside")
    if committed is not None and recovery.open_file != committed and not _closed(folder, committed.filename):
        if recovery.open_file is None:
            recovery.messages.append(f"{committed.filename} is missing; {committed.length} bytes of it were committed")
        if index is not None:  # which captures are lost, before the journal forgets them
            kept = recovery.open_file.length if recovery.open_file else 0
            rows = index.journal_between(committed.filename, kept, committed.length)
            if lost is not None:
                count = lost(rows, recovery.open_file)
                pages = counted(count, "page whose captures are lost waits", "pages whose captures are lost wait")
                recovery.messages.append(f"{pages} in the frontier again")
            if sum(row.end - row.start for row in rows) < committed.length - kept:
                recovery.messages.append("Not every lost capture is known: scrapy recover finds the rest")
    if index is not None:
        if recovery.open_file is not None:
            index.cut(*recovery.open_file)
        recovery.messages += index.catch_up(folder)
    return recovery


def _closed(folder: Path, filename: str) -> bool:
    """Whether a file was closed: it lies here, or another place has confirmed it and it was removed here."""
    if (folder / filename).exists():
        return True
    crawl = CrawlDir(folder.parent)
    if not crawl.has_removed():
        return False
    from crawlerproject.stores.uploads.upload_journal import Journal  # no other crawl imports it

    return f"{folder.name}/{filename}" in Journal(crawl).removed()


def _cut_to_committed(path: Path, committed: OpenFile, recovery: Recovery, index: CdxjFiles | None) -> None:
    """Leave exactly the committed bytes, or the last whole capture where a power loss took some of them."""
    size, length = path.stat().st_size, committed.length
    boundary = index.boundary(committed.filename, length - _TAIL_BYTES) if index is not None else 0
    if size < length or _whole_end(path, boundary, length) != length:
        length = _whole_end(path, 0, length)
        recovery.messages.append(
            f"{path.name} has {size} bytes, {committed.length} were committed and whole captures end at {length}:"
            " the file system lost the rest"
        )
    if length == 0:
        recovery.keeps(move_aside(path), f"{path.name}, without one good record, was moved aside")
        return
    if size > length:  # the tail is kept in a file of its own, durably, before it goes
        torn = torn_file(path, length)
        with path.open("r+b") as file:
            file.seek(length)
            _keep(file, torn)
            file.truncate(length)
            os.fsync(file.fileno())
        recovery.keeps(torn, f"{path.name} was cut back to {length} committed bytes")
    recovery.open_file = OpenFile(committed.filename, length)


def _whole_end(path: Path, start: int, until: int) -> int:
    """End of the last whole capture from ``start``, where a record begins, to ``until``; 0 when there is none."""
    return whole_length(takewhile(lambda member: member.offset < until, members(path, start)))


def move_aside(path: Path) -> Path:
    """Keep a whole file out of the archive, durably; where. OSError."""
    torn = torn_file(path, 0)
    try:
        path.rename(torn)
    except OSError as error:
        if error.errno != errno.EXDEV:  # warc/ may be a file system of its own
            raise
        with path.open("rb") as file:
            _keep(file, torn)
        path.unlink()
    sync_path(torn.parent)
    sync_path(path.parent)
    return torn


def torn_file(path: Path, offset: int) -> Path:
    """Where to keep what a WARC file had from ``offset`` on; the folder is made."""
    folder = CrawlDir(path.parent.parent).torn
    folder.mkdir(exist_ok=True)
    return unused(folder / f"{path.name}.{offset}{TORN_SUFFIX}")


def torn_files(folder: CrawlDir) -> list[Path]:
    """What recoveries have kept."""
    return sorted(folder.torn.glob(f"*{TORN_SUFFIX}"))


def _keep(file: BinaryIO, torn: Path) -> None:
    """The rest of an open file, durably."""
    with whole_file(torn) as kept:
        shutil.copyfileobj(file, kept)


def good_spans(path: Path, *, whole_captures: bool, progress: Progress | None = None) -> list[Span]:
    """Which bytes of a file to keep: good records, in files of ours only as whole captures; neighbours joined."""
    spans: list[Span] = []
    good = _good(path, progress)
    records = ((member.offset, member.end) for member in good if member is not None)
    for start, end in _captures(good) if whole_captures else records:
        if spans and start <= spans[-1][1]:  # records may share a gzip member
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def mend(path: Path, spans: list[Span]) -> list[str]:
    """Keep only ``spans`` of a file; sentences that say what was done, none when the file is good.

    An open file is closed under its final name, since its frontier knows other places of its records. Runs again
    safely after a crash: the file is replaced at once, after what is cut off is safe.
    """
    size = path.stat().st_size
    if spans == [(0, size)] or size == 0:
        return []
    if not spans:
        return [f"{path.name} has no good record; it is left as it is"]
    borders = [0, *(border for span in spans for border in span), size]
    cut = [(start, end) for start, end in zip(borders[::2], borders[1::2], strict=True) if start < end]
    final = path.with_name(path.name.removesuffix(OPEN_SUFFIX))
    with storage_errors(path), path.open("rb") as file:
        torn = [torn_file(path, start) for start, _ in cut]
        for kept, span in zip(torn, cut, strict=True):
            _copy(file, kept, [span])
        _copy(file, final, spans)
        if final != path:
            path.unlink()
            sync_path(path.parent)
    lost = sum(end - start for start, end in cut)
    where = ", ".join(f"{start}–{end - 1}" for start, end in cut[:5]) + (" …" if len(cut) > 5 else "")
    return [f"{path.name}: {lost:,} bytes were cut out (bytes {where}) and are kept in "
            f"{torn[0].parent.name}/{torn[0].name}"
            + (f" and {len(torn) - 1} more" if len(torn) > 1 else "")]  # fmt: skip


def _captures(good: Iterable[Member | None]) -> Iterator[Span]:
    """Whole captures (request, response or revisit, metadata) and renders, and records that belong to none."""
    began: int | None = None
    answered = rendered = False
    for member in good:
        if member is None:
            began = None
        elif member.kind in ("request", "conversion"):
            began = member.offset
            answered = rendered = member.kind == "conversion"
        elif member.kind in ("response", "revisit"):
            answered = True
        elif member.kind == "metadata":
            if began is not None and answered:
                yield began, member.end
            began = None
        elif began is None or not rendered:  # the screenshot of a render is a part of it
            yield member.offset, member.end


def _good(path: Path, progress: Progress | None) -> Iterator[Member | None]:
    """Every good record; None where something between two is not."""
    position: int | None = 0
    while position is not None:
        start, position = position, None
        for member in packed_members(path, start, progress):
            if isinstance(member, Flaw):
                yield None
                position = next_member(path, member.offset + 1)
            else:
                yield member


def _copy(file: BinaryIO, target: Path, spans: list[Span]) -> None:
    with whole_file(target) as copy:
        for position, end in spans:
            file.seek(position)
            while position < end:
                position += copy.write(file.read(min(end - position, CHUNK_BYTES)))


class LostCapture(NamedTuple):
    """A committed capture that the disk lost."""

    url: str
    digest: bytes  # sha1 of its payload, b"" when that is not known


class Discovery(NamedTuple):
    """How a page was found."""

    depth: int = 0
    hops: str = ""
    via: str = ""


def places_of(log_folder: Path, urls: Iterable[str]) -> dict[str, Discovery]:
    """How pages were found, by the request log; the newest days are read first, and no more than is needed."""
    places: dict[str, Discovery] = {}
    wanted = set(urls)
    for path in reversed(log_files(log_folder)):
        if not wanted:
            break
        with suppress(OSError, ValueError):  # what is not known of a page does not keep it from being fetched
            for row in read_rows(path):
                if row is not None and row["url"] in wanted:
                    places[str(row["url"])] = Discovery(int(str(row["depth"])), str(row["hop"]), str(row["via"]))
        wanted -= places.keys()
    return places


Counted = Callable[[FrontierStore, Changes], None]
"""Adds to changes that queue rows what becomes of the hosts' states; ``frontier.hosts.on_disk.count_rows``."""


class LostPages:
    """Queues pages again, as of ``now`` (epoch seconds), with what the log in ``log_folder`` tells of them.

    A page that no log has is taken for a seed.
    """

    def __init__(
        self, store: FrontierStore, log_folder: Path, now: float, counted: Counted, *, other_logs: Iterable[Path] = ()
    ) -> None:
        """``other_logs``: of former holders of the pages."""
        self._store = store
        self._log_folders = [*other_logs, log_folder]
        self._now = now
        self._counted = counted

    def rows_lost(self, rows: list[CdxjEntry], kept: OpenFile | None) -> int:
        """The open file was found shorter than committed: queue the pages of ``rows`` and commit what is ``kept``."""
        lost = [LostCapture(row.url, sha1_of(row.digest)) for row in rows]
        return self.fetch_again(lost, [(ARCHIVE_FACT, pack_open(kept))])

    def fetch_again(self, lost: Sequence[LostCapture], facts: Iterable[tuple[str, bytes]] = ()) -> int:
        """Queue the pages of lost captures and apply ``facts``, all in one change; how many pages were queued.

        A page that has another capture by now, that is queued or is no page of the frontier (a robots.txt, which is
        requested again when it is stale) is left as it is. No later capture may stand on the payload of a lost one.
        """
        payloads: list[tuple[bytes, Original | None]] = []
        pages: dict[bytes, str] = {}
        for url, digest in lost:
            original = self._store.original(digest) if digest else None
            if original is not None and original.url == url:
                payloads.append((digest, None))
            try:
                address = parse(url)
            except UrlRefused:
                continue
            key, host = address.key, address.host
            record = self._store.page(key, host)
            if record is None:  # a document that a page embeds has its record apart
                key = requisite_key(key)
                record = self._store.page(key, host)
            another = record is None or not record.status or (digest and record.digest and record.digest != digest)
            if not another:
                pages.setdefault(key, url)
        return self._queue(pages, Changes(facts=list(facts), payloads=payloads))

    def poisoned(self) -> int:
        """Queue the pages that were set aside as poison, in one change; how many were. Reads every page's record."""
        return self._queue({key: row.url for key, row in self._store.pages() if row.reason == Reason.POISON}, Changes())

    def _queue(self, pages: Mapping[bytes, str], changes: Changes) -> int:
        places: dict[str, Discovery] = {}
        for folder in self._log_folders:
            places |= places_of(folder, pages.values())
        arrival = int(self._now * 1_000_000)
        for number, (key, url) in enumerate(pages.items(), 1):
            host, place = parse(url).host, places.get(url, Discovery())
            # Backwards in time: what the frontier queues from now on gets later moments, and none twice.
            row = QueuedPage(host, key, url, SEED, arrival - number, *place)
            if is_embedded(place.hops):
                apart = requisite_key(parse(url).key)
                frame = FLAG_FRAME if key == apart else 0
                row = row._replace(key=apart, flags=FLAG_REQUISITE | frame)
            changes.queued.append(row)
            changes.pages.append((key, PageRecord(url, Reason.LOST, 0, self._now)))
        self._counted(self._store, changes)
        if changes:
            self._store.apply(changes)
        return len(pages)
