"""The captures of WARC files one after the other: an answer, or what a browser made of a page, with the notes on it.

All that reads archives from end to end reads them so: ``scrapy recover``, ``process``, ``wacz``, ``reparse`` and the
import of others' records. What a browser made of a page is a ``conversion`` record behind the answer that it names, in
the same file or in a later one (``rules/archive/warc_records.py``). The metadata record of either follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from crawlerproject.rules.archive.http_heads import header_pairs
from crawlerproject.rules.archive.warc_members import Flaw, Member
from crawlerproject.rules.archive.warc_records import is_render
from crawlerproject.stores.archive.warc_reader import Progress, notes_of, shown_members

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


def captures_in(path: Path, progress: Progress | None = None, number: int = 0) -> Iterator[ArchivedCapture]:
    """The captures of a file in order, up to its first flaw, without those that were withdrawn."""
    reader = CaptureReader(path, number)
    for member in shown_members(path, progress):
        if isinstance(member, Flaw):
            break
        if (capture := reader.take(member)) is not None:
            yield capture
    if (last := reader.rest()) is not None:
        yield last


def _is_about(metadata: Member, capture: Member) -> bool:
    """Whether a metadata record names a capture's; one that names none is about that before it of the same URL."""
    named = metadata.all("warc-concurrent-to") + metadata.all("warc-refers-to")
    return capture.field("warc-record-id") in named if named else metadata.url == capture.url
