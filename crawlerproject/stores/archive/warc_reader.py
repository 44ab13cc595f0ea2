"""Reading archive files that are there, ours and those of others: record by record, or one record at its place.

All commands read so. Ours, and all that have their shape, are read strictly; of other shapes warcio finds the records
(``rules/archive/warc_members.py``), but never in a file of ours, where they are damage.
"""

from __future__ import annotations

import mmap
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.warc_members import (
    CHUNK_BYTES,
    Flaw,
    Member,
    is_ours,
    plain_records,
    records_in,
    walk,
)
from crawlerproject.stores.crawl_dir import OPEN_SUFFIX
from crawlerproject.stores.operator_files.withdrawn_list import withdrawn_from

_NOTE = re.compile(r"(?m)^([A-Za-z-]+): *(.*?)\r?$")
_RECORDS_AFTER = 2  # a response's metadata follows it, that of a render perhaps its screenshot
_GZIP_MARK = b"\x1f\x8b\x08"  # RFC 1952 2.3.1, with the only method there is

Progress = Callable[[int], None]
"""Called with the number of bytes read since the last call."""


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
        """As the note of a queue row."""
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
