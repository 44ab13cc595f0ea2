"""Cuts captures out of WARC files: a tombstone of the same length takes the place of each, and nothing else moves.

``covered`` finds them, ``erase`` replaces the file at once by one without them (beside, made durable, renamed): a
death at any moment leaves the old file or the new one, and a second run finds what is left to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.index_rows import INDEXED
from crawlerproject.rules.archive.warc_members import CHUNK_BYTES, Flaw, Member
from crawlerproject.rules.archive.warc_records import warc_date
from crawlerproject.rules.archive.withdrawal import Withdrawal, Withdrawn, tombstone
from crawlerproject.stores.archive.archive import new_record_id
from crawlerproject.stores.archive.warc_reader import Progress, members, next_member
from crawlerproject.stores.atomic_files import storage_errors, whole_file

_BEGINNINGS = frozenset({"request", "conversion"})  # of what we write at once
# What a tombstone fits into, whatever its reason says, by the shortest form that it has (400) and some more. A capture
# of ours has 700 bytes and more; shorter spans, of records that others wrote, are taken together with their neighbour.
_LEAST_BYTES = 500


class Span(NamedTuple):
    """Bytes of a file that were withdrawn: one capture."""

    start: int
    end: int
    entry: Withdrawal
    answer_id: str  # of the response, revisit or render; "" without one
    captures: int  # responses and revisits in it


def covered(
    path: Path, withdrawn: Withdrawn, progress: Progress | None = None, flaws: list[Flaw] | None = None
) -> Iterator[Span]:
    """The spans of a file that are withdrawn, in order; damage is passed over, and added to ``flaws``.

    Raises OperatorError for a record of them that has no gzip member of its own.
    """
    if not withdrawn.entries:
        return
    packed: bool | None = None  # not looked yet
    span: Span | None = None
    for member in _good(path, progress, [] if flaws is None else flaws):
        entry = withdrawn.of(member.url)
        if entry is None:
            continue
        packed = _is_packed(path) if packed is None else packed
        if member.shared or not packed:
            raise OperatorError(
                f"{path.name} has records of {entry.what} that are not compressed one by one, and none can be cut out; "
                f"warcio recompress {path.name} NEW.warc.gz gives each its own place."
            )
        answers = member.kind in INDEXED
        found = member.field("warc-record-id") if answers or member.kind == "conversion" else ""
        if span is not None and span.end == member.offset and not _begins(member, span):
            span = span._replace(end=member.end, answer_id=span.answer_id or found, captures=span.captures + answers)
            continue
        if span is not None:
            yield span
        span = Span(member.offset, member.end, entry, found, int(answers))
    if span is not None:
        yield span


def erased_chunks(path: Path, spans: Sequence[Span], now: float, progress: Progress | None = None) -> Iterator[bytes]:
    """The bytes of a file with tombstones in the place of ``spans``; ``now`` in epoch seconds. Raises OperatorError."""
    date = warc_date(now)
    with path.open("rb") as file:
        for span in (*spans, None):
            end = span.start if span is not None else None
            while chunk := file.read(CHUNK_BYTES if end is None else min(CHUNK_BYTES, end - file.tell())):
                if progress is not None:
                    progress(len(chunk))
                yield chunk
            if span is None:
                return
            try:
                yield tombstone(span.end - span.start, span.entry, new_record_id(), of=span.answer_id, date=date)
            except ValueError as error:
                raise OperatorError(f"{path.name}, byte {span.start}: {error}.") from None
            if progress is not None:
                progress(span.end - span.start)
            file.seek(span.end)


def erase(path: Path, spans: Sequence[Span], now: float, target: Path | None = None) -> None:
    """Put a file without ``spans`` in the place of ``path``, or of ``target``. Raises StorageError, OperatorError."""
    target = target or path
    with storage_errors(target), whole_file(target) as file:
        for chunk in erased_chunks(path, spans, now):
            file.write(chunk)


def _begins(member: Member, span: Span) -> bool:
    """Whether another capture begins with a record; one that is too short for a tombstone takes its neighbour in."""
    return member.kind in _BEGINNINGS and span.end - span.start >= _LEAST_BYTES


def _good(path: Path, progress: Progress | None, flaws: list[Flaw]) -> Iterator[Member]:
    """Every good record, also behind damage."""
    position: int | None = 0
    while position is not None:
        start, position = position, None
        for member in members(path, start, progress):
            if isinstance(member, Flaw):
                flaws.append(member)
                position = next_member(path, member.offset + 1)
            else:
                yield member


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"  # RFC 1952 2.3.1
