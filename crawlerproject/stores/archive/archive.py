"""What a crawl leaves behind, kept in step: WARC files, their index, the request log.

The open WARC file: captures are appended whole, closed files are never touched again.

``NAME.warc.gz.open`` while being written. The commit loop calls ``sync`` and commits ``state`` to the frontier;
only bytes up to a committed length count, ``recover`` cuts the rest away (and keeps it aside).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

from crawlerproject import native
from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.http_messages import Wire, payload_digest
from crawlerproject.rules.archive.warc_members import CHUNK_BYTES, Member, walk
from crawlerproject.rules.archive.warc_records import (
    Context,
    Original,
    Render,
    capture,
    render_members,
    warc_date,
    warcinfo,
    withheld,
)
from crawlerproject.stores.archive.recovery import RowsLost, recover
from crawlerproject.stores.atomic_files import put_back, storage_error, storage_errors, sync_path, write_at
from crawlerproject.stores.crawl_dir import OPEN_SUFFIX, WARC_SUFFIX, CrawlDir
from crawlerproject.stores.index.index_files import CdxjFiles, ParquetFiles
from crawlerproject.stores.logs.request_log import RequestLog
from crawlerproject.stores.operator_files.watched_lists import RELOAD_SECONDS, WithdrawnFile
from crawlerproject.stores.poison import NO_MARK, Waiting
from crawlerproject.stores.protocols import OpenFile

_SERIAL = re.compile(r"-\d{17}-(\d{5,})-[^/]*\.warc\.gz")
_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}  # RFC 9562 4.1
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]+")


class Position(NamedTuple):
    """Where a capture was written: final file name (without ``.open``) and its first byte."""

    filename: str
    offset: int


class WarcSeries(NamedTuple):
    """What the files of one writer have in common."""

    prefix: str  # of their names
    host_name: str  # in their names: where they were written
    max_bytes: int  # a file that has reached this is closed
    description: Sequence[tuple[str, str]]  # fields of their first record


class WarcFiles:
    """Appends captures to one open WARC at a time. One thread, but for ``sync``."""

    def __init__(
        self,
        folder: Path,
        series: WarcSeries,
        clock: Callable[[], float],
        *,
        index: CdxjFiles | None = None,
        resume: OpenFile | None = None,
    ) -> None:
        self.folder = folder
        self._series = series
        self._clock = clock
        self._index = index
        self._descriptor = -1
        self._filename = ""
        self._path = folder  # of that name
        self._length = 0
        folder.mkdir(parents=True, exist_ok=True)
        # One more than any file there has, so that names sort in the order of writing across restarts.
        serials = (int(match[1]) for path in folder.iterdir() if (match := _SERIAL.search(path.name)))
        self._serial = max(serials, default=-1) + 1
        self.warcinfo_id = new_record_id()
        """Record id for WARC-Warcinfo-ID of the next capture to be appended."""
        if resume is not None:
            self._resume(resume)

    def append(self, members: bytes) -> Position:
        """Write one capture with one write; StorageFull or StorageError leaves the file as it was."""
        if self._descriptor < 0:
            self.begin_file()
        offset = self._length
        try:
            write_at(self._descriptor, members, offset)
        except OSError as error:
            raise storage_error(self._path, error) from error
        self._length = offset + len(members)
        return Position(self._filename, offset)

    @property
    def next_place(self) -> tuple[str, int]:
        """The open file's final name, and where the next capture goes; "" when no file is open."""
        return self._filename if self._descriptor >= 0 else "", self._length

    def state(self) -> OpenFile | None:
        """What to commit, and where the next capture goes; None when no file is open."""
        return OpenFile(self._filename, self._length) if self._descriptor >= 0 else None

    @property
    def full(self) -> bool:
        """Whether the open file has reached its size."""
        return self._descriptor >= 0 and self._length >= self._series.max_bytes

    def keep(self) -> None:
        """Make the open file again when it was removed from its folder. Raises StorageError."""
        if self._descriptor >= 0:
            self._descriptor = put_back(self._descriptor, self._path.with_name(f"{self._path.name}{OPEN_SUFFIX}"))

    def sync(self) -> None:
        """Make what was appended survive a power loss. May run in a thread, not while a file is closed."""
        if self._descriptor >= 0:
            with storage_errors(self._path):
                os.fdatasync(self._descriptor)

    def roll_if_full(self) -> str | None:
        """Close a file that has reached its size, right after a commit; its name, or None. Index in the background.

        May run in a thread while nothing is appended.
        """
        return self._finish() if self.full else None

    def close(self) -> str | None:
        """Close the open file after a commit and wait for its index; its name, or None."""
        name = self._finish() if self._descriptor >= 0 else None
        if self._index is not None:
            self._index.wait()
        return name

    def abandon(self) -> None:
        """Let go of the open file as it is; the next start goes on with its committed part."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def begin_file(self) -> OpenFile:
        """Make a new file that holds its warcinfo, with ``warcinfo_id``; no file is left behind when that fails.

        May run in a thread while nothing is appended.
        """
        now = self._clock()
        prefix, host = (_UNSAFE.sub("_", part) for part in (self._series.prefix, self._series.host_name))
        moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d%H%M%S%f")[:17]
        filename = f"{prefix}-{moment}-{self._serial:05d}-{host}{WARC_SUFFIX}"
        path = self.folder / f"{filename}{OPEN_SUFFIX}"
        first = warcinfo(self._series.description, filename=filename, record_id=self.warcinfo_id, now=now)
        with storage_errors(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                write_at(descriptor, first, 0)
                os.fsync(descriptor)
                sync_path(self.folder)
            except OSError:
                os.close(descriptor)
                path.unlink(missing_ok=True)
                raise
        self._descriptor, self._filename, self._length = descriptor, filename, len(first)
        self._path = self.folder / filename
        self._serial += 1
        return OpenFile(filename, len(first))

    def _resume(self, committed: OpenFile) -> None:
        path = self.folder / f"{committed.filename}{OPEN_SUFFIX}"
        with storage_errors(path):
            descriptor = os.open(path, os.O_RDWR)
            first = next(walk(iter(lambda: os.read(descriptor, CHUNK_BYTES), b"")), None)
            if os.fstat(descriptor).st_size != committed.length or not isinstance(first, Member):
                os.close(descriptor)
                raise StorageError(f"{path} does not end at its committed length {committed.length}: recover it first")
        self._descriptor, self._filename, self._length = descriptor, committed.filename, committed.length
        self._path = self.folder / committed.filename
        self.warcinfo_id = first.field("warc-record-id")

    def _finish(self) -> str:
        """Durable bytes, then the final name, then the index."""
        final = self._path
        with storage_errors(final):
            os.ftruncate(self._descriptor, self._length)
            os.fsync(self._descriptor)
            opened = final.with_name(f"{final.name}{OPEN_SUFFIX}")
            if opened.exists():
                opened.rename(final)
            try:
                sync_path(self.folder)
            except OSError:
                with suppress(OSError):  # under its final name all counts, and more may be appended before the next try
                    final.rename(opened)
                raise
        os.close(self._descriptor)
        self._descriptor = -1
        self.warcinfo_id = new_record_id()
        if self._index is not None:
            with suppress(StorageError):  # the index is then read from the WARC; the next flush says it again
                self._index.flush()
            self._index.finish_in_background(final)
        return final.name


def close_left(folder: Path, filename: str) -> None:
    """Close the file of a process that does not come back, after ``recover`` has cut it to what is committed."""
    opened = folder / f"{filename}{OPEN_SUFFIX}"
    with storage_errors(opened):
        sync_path(opened)
        opened.rename(folder / filename)
        sync_path(folder)


def has_our_name(path: Path) -> bool:
    """Whether a file is named as we name them, whatever is in it."""
    return _SERIAL.search(path.name) is not None


def new_record_ids(count: int) -> Sequence[str]:
    """Fresh ``<urn:uuid:...>``s (version 4); several times as fast as ``uuid.uuid4``."""
    random = os.urandom(16 * count)
    return record_ids(random) if (page := native.reader) is None else page.ids(random)


def record_ids(random: bytes) -> Sequence[str]:
    """Of each 16 bytes one of them, as the native reader makes them."""
    digits, ids = random.hex(), []
    for at in range(0, len(digits), 32):
        one = digits[at : at + 32]
        ids.append(f"<urn:uuid:{one[:8]}-{one[8:12]}-4{one[13:16]}-{_VARIANTS[one[16]]}{one[17:20]}-{one[20:]}>")
    return tuple(ids)


def new_record_id() -> str:
    """One of them."""
    return new_record_ids(1)[0]


class Written(NamedTuple):
    """Where a capture went, and the payload's digest (sha1, 20 bytes)."""

    filename: str
    offset: int  # of the response record
    length: int  # of the response record
    digest: bytes
    record_id: str  # of the response record
    date: str  # its WARC-Date


def parquet_of(folder: CrawlDir) -> ParquetFiles:
    """The Parquet index of a crawl folder."""
    return ParquetFiles(folder.parquet, folder.resolve().name)


class Archive:
    """Appends captures and log lines; ``flush`` and ``warc.sync`` come before each commit of the frontier."""

    def __init__(
        self,
        folder: CrawlDir,
        committed: OpenFile | None,
        series: WarcSeries,
        *,
        keep_days: int,
        clock: Callable[[], float],
        lost: RowsLost | None = None,
        waiting: Waiting = NO_MARK,
    ) -> None:
        """``waiting`` is entered whenever a capture's bytes are ready and the disk is waited for."""
        self._withdrawn, self._clock, self._waiting = WithdrawnFile(folder, RELOAD_SECONDS), clock, waiting
        self._index = CdxjFiles(folder.index, parquet_of(folder))
        recovery = recover(folder.warc, committed, self._index, lost)
        self.messages = [*recovery.messages, *self._index.catch_up(folder.warc)]
        self.warc = WarcFiles(folder.warc, series, clock, index=self._index, resume=recovery.open_file)
        self.log = RequestLog(folder.log, keep_days)

    def write(
        self, wire: Wire, context: Context, digest: bytes | None = None, original: Original | None = None
    ) -> Written:
        """Append one capture whole, a revisit when there is an ``original``; ``digest`` is the body's, if known.

        StorageError when there is no room, and nothing has changed then.
        """
        warc = self.warc
        filename, start = warc.next_place
        if not filename:
            with self._waiting:
                filename, start = warc.begin_file()
        digest, ids = digest or payload_digest(wire.body), new_record_ids(3)
        info_id = warc.warcinfo_id
        members, record_id, date, line, offset, length = capture(
            wire, context, digest, original, warcinfo_id=info_id, ids=ids, start=start
        )
        with self._waiting:
            warc.append(members)
        self._index.append(filename, line)
        return Written(filename, offset, length, digest, record_id, date)

    def withdrawn(self, url: str) -> bool:
        """Whether the captures of a URL were asked back."""
        return self._withdrawn.current(self._clock()).covers(url)

    def write_withheld(self, wire: Wire, context: Context) -> None:
        """Append the metadata of an answer of which nothing else is kept. StorageError, as ``write``."""
        self._append(withheld(wire, context, warcinfo_id=self.warc.warcinfo_id, record_id=new_record_id()))

    def write_render(self, render: Render) -> Written:
        """Append what a browser made of a page; StorageError when there is no room, and nothing has changed then."""
        built = render_members(render, warcinfo_id=self.warc.warcinfo_id, new_id=new_record_id)
        position = self._append(built.members)
        digest = sha1(render.html, usedforsecurity=False).digest()
        date = warc_date(render.ended_at)
        return Written(position.filename, position.offset, built.length, digest, built.record_id, date)

    def _append(self, members: bytes) -> Position:
        with self._waiting:
            return self.warc.append(members)

    def flush(self) -> None:
        """Hand everything buffered to the operating system: it survives the death of the process."""
        self.warc.keep()
        self._index.flush()
        self.log.flush()

    def close(self) -> None:
        """Close the open file under its final name, with its index. Commit before."""
        self.flush()
        self.warc.close()
        self._index.close()
        self.log.close()

    def abandon(self) -> None:
        """Let go of everything as it is: the next start recovers it."""
        self.warc.abandon()
