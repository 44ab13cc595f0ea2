"""Mends a WARC file that is damaged somewhere: good captures stay, the rest is kept aside in ``torn/``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from crawlerproject.rules.archive.warc_members import Flaw, Member
from crawlerproject.stores.archive.recovery import torn_file
from crawlerproject.stores.archive.warc_reader import Progress, next_member, packed_members
from crawlerproject.stores.atomic_files import new_file, storage_errors, sync_folder
from crawlerproject.stores.crawl_dir import OPEN_SUFFIX

Span = tuple[int, int]
"""First byte, first byte after."""


def good_spans(path: Path, *, whole_captures: bool, progress: Progress | None = None) -> list[Span]:
    """Which bytes of a file to keep: good records, in files of ours only as whole captures; neighbours joined."""
    spans: list[Span] = []
    for start, end in _captures(path, progress) if whole_captures else _records(path, progress):
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
    cut = list(_between(spans, size))
    final = path.with_name(path.name.removesuffix(OPEN_SUFFIX))
    part = path.with_name(f"{final.name}.part")
    with storage_errors(path), path.open("rb") as file:
        torn = [_kept_aside(file, path, span) for span in cut]
        _copy(file, part, spans)
        part.replace(final)
        if final != path:
            path.unlink()
        sync_folder(path.parent)
    lost = sum(end - start for start, end in cut)
    where = ", ".join(f"{start}–{end - 1}" for start, end in cut[:5]) + (" …" if len(cut) > 5 else "")
    return [f"{path.name}: {lost:,} bytes were cut out (bytes {where}) and are kept in "
            f"{torn[0].parent.name}/{torn[0].name}"
            + (f" and {len(torn) - 1} more" if len(torn) > 1 else "")]  # fmt: skip


def _records(path: Path, progress: Progress | None) -> Iterator[Span]:
    for member in _good(path, progress):
        if member is not None:
            yield member.offset, member.end


def _captures(path: Path, progress: Progress | None) -> Iterator[Span]:
    """Whole captures (request, response or revisit, metadata) and renders, and records that belong to none."""
    began: int | None = None
    answered = rendered = False
    for member in _good(path, progress):
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


def _between(spans: list[Span], size: int) -> Iterator[Span]:
    position = 0
    for start, end in spans:
        if start > position:
            yield position, start
        position = end
    if size > position:
        yield position, size


def _kept_aside(file: BinaryIO, path: Path, span: Span) -> Path:
    torn = torn_file(path, span[0])
    _copy(file, torn, [span])
    sync_folder(torn.parent)
    return torn


def _copy(file: BinaryIO, target: Path, spans: list[Span]) -> None:
    with new_file(target) as copy:
        for start, end in spans:
            file.seek(start)
            _copy_bytes(file.read, copy, end - start)
        copy.flush()
        os.fsync(copy.fileno())


def _copy_bytes(read: Callable[[int], bytes], copy: BinaryIO, count: int) -> None:
    while count:
        chunk = read(min(count, shutil.COPY_BUFSIZE))  # type: ignore[attr-defined]  # its stub leaves it out
        copy.write(chunk)
        count -= len(chunk)
