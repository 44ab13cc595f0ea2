"""Reading archive files that are there, ours and those of others: record by record, or one record at its place.

All commands read so. Ours, and all that have their shape, are read strictly; of other shapes warcio finds the records
(``rules/archive/warc_members.py``), but never in a file of ours, where they are damage.

The captures of WARC files one after the other: an answer, or what a browser made of a page, with the notes on it.

All that reads archives from end to end reads them so: ``scrapy recover``, ``process``, ``wacz``, ``reparse`` and the
import of others' records. What a browser made of a page is a ``conversion`` record behind the answer that it names, in
the same file or in a later one (``rules/archive/warc_records.py``). The metadata record of either follows it.
"""

from __future__ import annotations

import mmap
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from io import BytesIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.http_messages import header_pairs
from crawlerproject.rules.archive.warc_members import (
    CHUNK_BYTES,
    Flaw,
    Member,
    is_ours,
    plain_records,
    records_in,
    walk,
)
from crawlerproject.rules.archive.warc_records import is_render
from crawlerproject.stores.crawl_dir import OPEN_SUFFIX
from crawlerproject.stores.operator_files.watched_lists import withdrawn_from

_NOTE = re.compile(r"(?m)^([A-Za-z-]+): *(.*?)\r?$")
_RECORDS_AFTER = 2  # a response's metadata follows it, that of a render perhaps its screenshot
_GZIP_MARK = b"\x1f\x8b\x08"  # RFC 1952 2.3.1, with the only method there is

Progress = Callable[[int], None]
"""Called with the number of bytes read since the last call."""
Take = Callable[[Member | Flaw], None]
"""Its own work on each record of a walk."""


def members(path: Path, start: int = 0, progress: Progress | None = None) -> Iterator[Member | Flaw]:
    """Every good record from byte ``start`` on; a Flaw, if any, comes last."""
    for found in packed_members(path, start, progress):
        if isinstance(found, Flaw) and found.plain:
            with path.open("rb") as file:
                if file.read(len(_GZIP_MARK)) != _GZIP_MARK:
                    file.seek(found.offset)
                    yield from plain_records(_Counted(file, progress))
                    return
        yield found


def all_members(path: Path, progress: Progress | None = None, until: int | None = None) -> Iterator[Member | Flaw]:
    """Every good record, also those behind damage, and a Flaw at each place of it.

    ``until``: what begins behind so many bytes is left out.
    """
    position: int | None = 0
    while position is not None and (until is None or position < until):
        start, position = position, None
        for found in members(path, start, progress):
            if until is not None and found.offset >= until:
                return
            yield found
            if isinstance(found, Flaw):
                position = next_member(path, found.offset + 1)


def shown_members(path: Path, progress: Progress | None = None, start: int = 0) -> Iterator[Member | Flaw]:
    """``members`` of a file in a crawl's folder from byte ``start`` on, without those that were withdrawn."""
    withdrawn = withdrawn_from(path)
    return (
        found for found in members(path, start, progress) if isinstance(found, Flaw) or not withdrawn.covers(found.url)
    )


def packed_members(path: Path, start: int = 0, progress: Progress | None = None) -> Iterator[Member | Flaw]:
    """The good records of a compressed file from byte ``start`` on; a Flaw, if any, comes last."""

    @cache
    def ours() -> bool:
        with path.open("rb") as file:
            return is_ours(next(walk(chunks_of(file, None)), None))

    def cut(data: bytes, offset: int, length: int) -> Iterator[Member | Flaw] | None:
        return None if ours() else records_in(data, offset, length)

    with path.open("rb") as file:
        file.seek(start)
        yield from walk(chunks_of(file, progress), start, cut=cut)


def chunks_of(file: BinaryIO, progress: Progress | None) -> Iterator[bytes]:
    """The rest of a file."""
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
        if progress is not None:
            progress(len(chunk))


class _Counted:
    """A file that reports how many bytes are read."""

    def __init__(self, file: BinaryIO, progress: Progress | None) -> None:
        self.tell = file.tell
        self._read = file.read
        self._progress = progress

    def read(self, size: int, /) -> bytes:
        chunk = self._read(size)
        if self._progress is not None:
            self._progress(len(chunk))
        return chunk


def next_member(path: Path, start: int) -> int | None:
    """Where the next good record begins at or after byte ``start``; None when there is none."""
    if start >= path.stat().st_size:
        return None
    with ExitStack() as held:
        file = held.enter_context(path.open("rb"))
        try:
            number = file.fileno()
        except OSError:  # of a file at another place a copy: only damage asks for it
            copy = held.enter_context(TemporaryFile())
            shutil.copyfileobj(file, copy)
            copy.flush()
            number = copy.fileno()
        data = held.enter_context(mmap.mmap(number, 0, access=mmap.ACCESS_READ))  # in memory as it is needed
        position = data.find(_GZIP_MARK, start)
        while position >= 0:
            # A mark by chance, or that of a compressed body within a record, is not followed by a WARC header.
            if isinstance(next(members(path, position), None), Member):
                return position
            position = data.find(_GZIP_MARK, position + 1)
    return None


def first_member(path: Path) -> Member | None:
    """The record a file begins with, its warcinfo; None when that is not good."""
    first = next(members(path), None)
    return first if isinstance(first, Member) else None


def member_at(path: Path, offset: int, length: int) -> Member | Flaw:
    """The one record of a span of the file, as an index names it."""
    with path.open("rb") as file:
        file.seek(offset)
        return member_of(file.read(length), offset, length)


def member_of(data: bytes, offset: int, length: int) -> Member | Flaw:
    """The one record of a span that holds ``data``, whichever program wrote it."""
    found = next(walk([data], offset, cut=records_in), None)
    if isinstance(found, Flaw) and found.plain:
        found = next(plain_records(BytesIO(data)), found)
        if isinstance(found, Member):
            found = found._replace(offset=offset, length=found.length)
    if isinstance(found, Member) and found.length != length:
        return Flaw(offset, f"a record of {found.length} bytes where the index says {length}")
    return found or Flaw(offset, "the file ends before")


def notes_of(metadata: Member) -> dict[str, str]:
    """The lines of a metadata record by name; the last of those that have one name."""
    return dict(note_lines(metadata))


def note_lines(metadata: Member) -> list[tuple[str, str]]:
    """All lines of a metadata record, as name and value."""
    return _NOTE.findall(metadata.block.decode("utf-8", "replace"))


def notes_after(path: Path, end: int) -> dict[str, str]:
    """The lines of the metadata record of the response or render that ends before a byte; none where it has none."""
    for member in islice(members(path, end), _RECORDS_AFTER):
        if isinstance(member, Flaw) or member.kind == "request":
            break
        if member.kind == "metadata":
            return notes_of(member)
    return {}


class PlainResponse(NamedTuple):
    """The place of a response record, with the words and links that the page had without a browser."""

    filename: str
    offset: int
    length: int
    words: int
    links: int

    def note(self) -> str:
        """The note of its queue row."""
        return " ".join(map(str, self))

    @classmethod
    def of(cls, note: str) -> PlainResponse:
        """What ``note`` wrote; StorageError when it is something else."""
        filename, *numbers = note.rsplit(" ", 4)
        if len(numbers) != 4 or not all(number.isdigit() for number in numbers):
            raise StorageError(f"{note!r} is no place in the archive")
        return cls(filename, *map(int, numbers))


def names_of(filename: str) -> tuple[str, str]:
    """What a WARC file is called while it is written, and then."""
    return f"{filename}{OPEN_SUFFIX}", filename


def read_answer(paths: Iterable[Path], place: PlainResponse) -> Member:
    """Read one response record from the first of ``paths`` that exists; StorageError when it is not there any more."""
    member = None
    for path in paths:
        try:
            with path.open("rb") as file:
                file.seek(place.offset)
                member = next(walk([file.read(place.length)]), None)
            break
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StorageError(f"{path}: {error}") from error
    if not isinstance(member, Member) or member.kind != "response":
        raise StorageError(f"the plain answer is not at {place.offset:,} of {place.filename} any more")
    return member


_ANSWERS = frozenset({"response", "revisit"})
_NO_MOMENT = datetime.fromtimestamp(0, UTC)  # of a record whose WARC-Date cannot be read
_STATUS = re.compile(rb"\S+[ \t]+([0-9]{3})(?!\S)")


def date_of(member: Member) -> float:
    """A record's WARC-Date in epoch seconds; raises ValueError when it is malformed."""
    return datetime.fromisoformat(member.field("warc-date")).timestamp()


def status_of(head: bytes) -> int:
    """The status of an HTTP head; 0 where it has none."""
    found = _STATUS.match(head)
    return int(found[1]) if found is not None else 0


@dataclass
class ArchivedCapture:
    """An archived answer, or what a browser made of one."""

    member: Member  # response, revisit or conversion
    path: Path  # of the WARC
    number: int = 0  # of the file, in the order of writing
    notes: dict[str, str] = field(default_factory=dict)  # of its metadata record, the last of each name
    whole: bool = False  # that record is there

    @property
    def url(self) -> str:
        """The address that was requested."""
        return self.member.url

    @property
    def rendered(self) -> bool:
        """Whether a browser made it."""
        return self.member.kind not in _ANSWERS

    @property
    def answer_id(self) -> str:
        """The record id of the answer: its own, or that of the answer which the browser made it of."""
        return self.member.field("warc-refers-to" if self.rendered else "warc-record-id")

    @property
    def place(self) -> tuple[int, int]:
        """Of its record: the number of its file, its first byte."""
        return self.number, self.member.offset

    @property
    def key(self) -> tuple[str, str]:
        """What the request log's line shares with it: URL and WARC-Date."""
        return self.url, self.member.field("warc-date")

    @property
    def fetched_at(self) -> datetime:
        """Its WARC-Date."""
        try:
            return datetime.fromisoformat(self.member.field("warc-date"))
        except ValueError:
            return _NO_MOMENT

    @property
    def ended_at(self) -> float:
        """Epoch seconds."""
        milliseconds = self.notes.get("fetchTimeMs", "")
        return date_of(self.member) + (int(milliseconds) / 1000 if milliseconds.isdigit() else 0.0)

    @cached_property
    def status(self) -> int:
        """Of the answer; a page that a browser made was shown."""
        return 200 if self.rendered else status_of(self.member.head)

    @cached_property
    def headers(self) -> dict[str, str]:
        """The answer's, by their names in lower case, the last of each."""
        if self.rendered:
            return {"content-type": self.member.field("content-type")}
        return {name.lower(): value for name, value in header_pairs(self.member.head)}


class CaptureReader:
    """Takes the records of a file in order, gives captures: each when its metadata record has come, or cannot."""

    def __init__(self, path: Path, number: int = 0) -> None:
        self._path, self._number = path, number
        self._waiting: ArchivedCapture | None = None

    def take(self, member: Member) -> ArchivedCapture | None:
        """The capture that ends with or before this record, if one does."""
        waiting = self._waiting
        if member.kind in _ANSWERS or is_render(member):
            self._waiting = ArchivedCapture(member, self._path, self._number)
            return waiting
        if member.kind != "metadata" or waiting is None or not _is_about(member, waiting.member):
            return None
        self._waiting, waiting.notes, waiting.whole = None, notes_of(member), True
        return waiting

    def rest(self) -> ArchivedCapture | None:
        """The last one, where no metadata record follows it."""
        waiting, self._waiting = self._waiting, None
        return waiting


def captures_in(
    path: Path, progress: Progress | None = None, number: int = 0, flawed: Callable[[Flaw], object] = lambda flaw: None
) -> Iterator[ArchivedCapture]:
    """The captures of a file in order, up to its first flaw, which ``flawed`` takes, without the withdrawn ones."""
    reader = CaptureReader(path, number)
    for member in shown_members(path, progress):
        if isinstance(member, Flaw):
            flawed(member)
            break
        if (capture := reader.take(member)) is not None:
            yield capture
    if (last := reader.rest()) is not None:
        yield last


def _is_about(metadata: Member, capture: Member) -> bool:
    """Whether a metadata record names a capture's; one that names none is about that before it of the same URL."""
    named = metadata.all("warc-concurrent-to") + metadata.all("warc-refers-to")
    return capture.field("warc-record-id") in named if named else metadata.url == capture.url
