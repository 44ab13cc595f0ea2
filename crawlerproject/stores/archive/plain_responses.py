"""Where a page's plain answer lies in the archive, as its queue row remembers it, and that answer read back."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.warc_members import Member, walk

OPEN_SUFFIX = ".open"


class PlainResponse(NamedTuple):
    """The place of a response record, and what the page said without a browser."""

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


class StoredResponse(NamedTuple):
    """A response record as it was written: its id, its HTTP head and its body, Content-Encoding kept."""

    record_id: str
    date: str  # WARC-Date
    head: bytes
    body: bytes


def names_of(filename: str) -> tuple[str, str]:
    """What a WARC file is called while it is written, and then."""
    return f"{filename}{OPEN_SUFFIX}", filename


def read_answer(paths: Iterable[Path], place: PlainResponse) -> StoredResponse:
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
    head, _, body = member.block.partition(b"\r\n\r\n")
    return StoredResponse(member.field("warc-record-id"), member.field("warc-date"), head, body)
