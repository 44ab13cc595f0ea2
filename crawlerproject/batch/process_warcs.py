"""WARC files to Parquet: one WARC, one file of pages and one of links; WET and WAT on request.

A WARC is a unit: its files appear whole (written beside, then renamed) or not at all, and the same WARC gives the
same bytes. Each is read in another process, so that whatever a page does to a parser costs that file only.
A file that is still written is taken in pieces (``follow_crawl.py``), whose names say from which byte to which; what is
behind the last of them is the next piece, also once the file is closed.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from crawlerproject.batch.file_workers import FileWorkers, Lost
from crawlerproject.rules.archive.warc_members import Flaw, Member
from crawlerproject.stores.archive.warc_reader import Take, all_members, names_of, shown_members
from crawlerproject.stores.atomic_files import sync_path
from crawlerproject.stores.crawl_dir import WARC_SUFFIX
from crawlerproject.stores.operator_files.watched_lists import withdrawn_from


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """What is made of each WARC besides pages and links."""

    wet: bool = False
    wat: bool = False
    main: bool = False  # the article beside the whole text


class Outcome(NamedTuple):
    """The messages about one WARC."""

    problem: str = ""  # why a part of it, or all, is left out; "" when it is whole
    notes: tuple[str, ...] = ()  # documents that could not be read


PART = ".part"
"""Behind the name of a file while it is written."""
PAGES, LINKS, WET, WAT = "pages", "links", "wet", "wat"
"""Folders of the results, below the one that is named."""


_PIECE = re.compile(r"(.+)\.([0-9]{12,})-([0-9]{12,})\.parquet")


class Piece(NamedTuple):
    """Bytes of a WARC: from the first one to that behind the last."""

    start: int
    end: int


def outputs(warc: Path, out: Path, wanted: ExtractOptions, piece: Piece | None = None) -> list[Path]:
    """The files that stand for this WARC, or for a piece of it, once it is done."""
    stem = warc.name.removesuffix(WARC_SUFFIX)
    if piece is not None:
        stem += f".{piece.start:012}-{piece.end:012}"
    files = [out / PAGES / f"{stem}.parquet", out / LINKS / f"{stem}.parquet"]
    if wanted.wet:
        files.append(out / WET / f"{stem}.warc.wet.gz")
    if wanted.wat:
        files.append(out / WAT / f"{stem}.warc.wat.gz")
    return files


def _pieces(warc: Path, out: Path, kind: str) -> dict[Piece, Path]:
    found = ((_PIECE.fullmatch(path.name), path) for path in (out / kind).glob("*.parquet"))
    stem = warc.name.removesuffix(WARC_SUFFIX)
    return {Piece(int(name[2]), int(name[3])): path for name, path in found if name is not None and name[1] == stem}


def pieces_end(warc: Path, out: Path, size: int) -> int:
    """How far a WARC of so many bytes is done in pieces that follow each other; 0: not at all."""
    done = dict(sorted(_pieces(warc, out, PAGES).keys() & _pieces(warc, out, LINKS).keys()))  # the longest of a start
    end = 0
    while end < done.get(end, 0) <= size:
        end = done[end]
    return end


def process_warc(
    warc: Path,
    out: Path,
    wanted: ExtractOptions,
    progress: Callable[[int], None] | None = None,
    committed: int | None = None,
    others: Sequence[Take] = (),
) -> Outcome:
    """Make what is missing of one WARC; its problem is that it is damaged (what stands before counts).

    ``committed``: it is still written, and so many bytes of it are good. ``others`` take what is found on the same
    walk, which then goes through all of it.
    """
    # Arrow, languages and readers of documents: not in the process that hands out files.
    from crawlerproject.batch.warc_extract import Writers
    from crawlerproject.documents.document_texts import DocumentTexts

    if others and is_done(warc, out, wanted):
        for _ in _shared(warc, progress, 0, others):
            pass
        return Outcome()
    in_pieces = not (wanted.wet or wanted.wat) and not is_whole(warc, out, wanted)
    size = (warc.stat().st_size if committed is None else committed) if in_pieces else 0
    start = pieces_end(warc, out, size) if in_pieces else 0
    piece = Piece(start, size) if start or committed is not None else None
    targets = outputs(warc, out, wanted, piece)
    # Not by the process' number: two machines that write into one folder may have the same.
    parts = [path.with_name(f"{path.name}{PART}{uuid4().hex}") for path in targets]
    for path in targets:
        path.parent.mkdir(parents=True, exist_ok=True)
    flaw = ""
    documents = DocumentTexts()
    try:
        with Writers(parts, wanted, warc, documents) as writers:
            for member in _shared(warc, progress, start, others) if others else _records(warc, progress, piece):
                if isinstance(member, Flaw):
                    flaw = f"{warc.name} is damaged at byte {member.offset} ({member.what}); the rest is left out"
                else:
                    writers.take(member)
        for part in parts:
            sync_path(part)
        if (parent := multiprocessing.parent_process()) is not None and not parent.is_alive():
            return Outcome()  # killed: the next one may be at the same piece
        for kind in (PAGES, LINKS):  # that were taken of a file which has lost its end since, or left half renamed
            for stale, path in _pieces(warc, out, kind).items():
                if stale.start >= start:
                    path.unlink(missing_ok=True)
        for part, target in zip(parts, targets, strict=True):
            part.rename(target)
    finally:
        documents.close()
        for part in parts:
            part.unlink(missing_ok=True)
    return Outcome(flaw, tuple(f"{warc.name}: {note}" for note in documents.notes()))


def _records(warc: Path, progress: Callable[[int], None] | None, piece: Piece | None) -> Iterator[Member | Flaw]:
    if piece is None:
        yield from shown_members(warc, progress)
        return
    written, closed = (warc.with_name(name) for name in names_of(warc.name))  # it may be closed any moment
    try:
        found = shown_members(closed if closed.exists() else written, progress, piece.start)
        first = next(found, None)
    except FileNotFoundError:
        found = shown_members(closed, progress, piece.start)
        first = next(found, None)
    for member in chain(() if first is None else (first,), found):
        if member.offset >= piece.end:
            break
        yield member


def _shared(
    warc: Path, progress: Callable[[int], None] | None, start: int, others: Sequence[Take]
) -> Iterator[Member | Flaw]:
    """What ``shown_members`` has from ``start`` on, of a walk from end to end that others share."""
    withdrawn, good = withdrawn_from(warc), True
    for found in all_members(warc, progress):
        for take in others:
            take(found)
        if good and found.offset >= start and (isinstance(found, Flaw) or not withdrawn.covers(found.url)):
            yield found
        good = good and not isinstance(found, Flaw)


def is_whole(warc: Path, out: Path, wanted: ExtractOptions) -> bool:
    """Whether all files of it as a whole are there."""
    return all(path.exists() for path in outputs(warc, out, wanted))


def is_done(warc: Path, out: Path, wanted: ExtractOptions) -> bool:
    """Whether all that is made of it is there, whole or in pieces."""
    if is_whole(warc, out, wanted) or wanted.wet or wanted.wat:
        return is_whole(warc, out, wanted)
    return pieces_end(warc, out, warc.stat().st_size) == warc.stat().st_size


def remaining(warcs: list[Path], out: Path, wanted: ExtractOptions, done: Callable[[int], None]) -> list[Path]:
    """Those whose files are not all there yet; ``done`` is called with the bytes of each other."""
    waiting = [warc for warc in warcs if not is_done(warc, out, wanted)]
    for warc in {*warcs}.difference(waiting):
        done(warc.stat().st_size)
    return waiting


def process_all(
    warcs: list[Path], out: Path, wanted: ExtractOptions, workers: int, done: Callable[[int], None]
) -> list[Outcome]:
    """Every WARC whose files are not all there yet, in ``workers`` processes; the messages about some.

    ``done`` is called with the bytes as they are read; those of files that were there already count at once.
    """
    outcomes, waiting = [], dict.fromkeys(remaining(warcs, out, wanted, done))
    with closing(Workers(workers)) as processes:
        for warc, outcome in processes.process(waiting, out, wanted, done):
            if outcome != Outcome():
                outcomes.append(outcome)
            for path in outputs(warc, out, wanted):  # leftovers of processes that were killed
                for part in path.parent.glob(f"{path.name}{PART}*"):
                    part.unlink(missing_ok=True)
    return outcomes


class Workers(FileWorkers):
    """Those that read WARC files."""

    def process(
        self, waiting: Mapping[Path, int | None], out: Path, wanted: ExtractOptions, done: Callable[[int], None]
    ) -> Iterator[tuple[Path, Outcome]]:
        """What is missing of these, of one that is still written up to so many bytes; ``done`` as above."""
        tasks = [(warc, partial(process_warc, warc, out, wanted, committed=end)) for warc, end in waiting.items()]
        for warc, answer in self.run(tasks, done):
            yield warc, Outcome(answer.sentence) if isinstance(answer, Lost) else answer
