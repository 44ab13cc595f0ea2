"""WARC files to Parquet: one WARC, one file of pages and one of links; WET and WAT on request.

A WARC is a unit: its files appear whole (written beside, then renamed) or not at all, and the same WARC gives the
same bytes. Each is read in a process of its own, so that whatever a page does to a parser costs that file only.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from crawlerproject.batch.warc_extract import ExtractOptions, Writers
from crawlerproject.documents.document_texts import DocumentTexts
from crawlerproject.rules.archive.warc_members import Flaw
from crawlerproject.stores.archive.warc_reader import shown_members
from crawlerproject.stores.atomic_files import sync_path
from crawlerproject.stores.crawl_dir import stem_of


class Outcome(NamedTuple):
    """What is to be said of one WARC."""

    problem: str = ""  # why a part of it, or all, is left out; "" when it is whole
    notes: tuple[str, ...] = ()  # documents that could not be read


PART = ".part"
"""Behind the name of a file while it is written."""
PAGES, LINKS, WET, WAT = "pages", "links", "wet", "wat"
"""Folders of the results, below the one that is named."""


def outputs(warc: Path, out: Path, wanted: ExtractOptions) -> list[Path]:
    """The files that stand for this WARC once it is done."""
    stem = stem_of(warc.name)
    files = [out / PAGES / f"{stem}.parquet", out / LINKS / f"{stem}.parquet"]
    if wanted.wet:
        files.append(out / WET / f"{stem}.warc.wet.gz")
    if wanted.wat:
        files.append(out / WAT / f"{stem}.warc.wat.gz")
    return files


def process_warc(
    warc: Path, out: Path, wanted: ExtractOptions, progress: Callable[[int], None] | None = None
) -> Outcome:
    """Make what is missing of one WARC; its problem is that it is damaged (what stands before counts)."""
    targets = outputs(warc, out, wanted)
    # Not by the process' number: two machines that write into one folder may have the same.
    parts = [path.with_name(f"{path.name}{PART}{uuid4().hex}") for path in targets]
    for path in targets:
        path.parent.mkdir(parents=True, exist_ok=True)
    flaw = ""
    documents = DocumentTexts()
    try:
        with Writers(parts, wanted, warc, documents) as writers:
            for member in shown_members(warc, progress):
                if isinstance(member, Flaw):
                    flaw = f"{warc.name} is damaged at byte {member.offset} ({member.what}); the rest is left out"
                    break
                writers.take(member)
        for part, target in zip(parts, targets, strict=True):
            sync_path(part)
            part.rename(target)
    finally:
        documents.close()
        for part in parts:
            part.unlink(missing_ok=True)
    return Outcome(flaw, tuple(f"{warc.name}: {note}" for note in documents.notes()))


def is_done(warc: Path, out: Path, wanted: ExtractOptions) -> bool:
    """Whether all its files are there."""
    return all(path.exists() for path in outputs(warc, out, wanted))


def remaining(warcs: list[Path], out: Path, wanted: ExtractOptions, done: Callable[[int], None]) -> list[Path]:
    """Those whose files are not all there yet; ``done`` is called with the bytes of each other."""
    waiting = [warc for warc in warcs if not is_done(warc, out, wanted)]
    for warc in {*warcs}.difference(waiting):
        done(warc.stat().st_size)
    return waiting


def process_all(
    warcs: list[Path], out: Path, wanted: ExtractOptions, workers: int, done: Callable[[int], None]
) -> list[Outcome]:
    """Every WARC whose files are not all there yet, in ``workers`` processes; what is to be said of some.

    ``done`` is called with the bytes as they are read; those of files that were there already count at once.
    """
    outcomes = []
    for warc, outcome in _in_processes(remaining(warcs, out, wanted, done), out, wanted, workers, done):
        if outcome != Outcome():
            outcomes.append(outcome)
        for path in outputs(warc, out, wanted):  # leftovers of processes that were killed
            for part in path.parent.glob(f"{path.name}{PART}*"):
                part.unlink(missing_ok=True)
    return outcomes


def _in_processes(
    waiting: list[Path], out: Path, wanted: ExtractOptions, workers: int, done: Callable[[int], None]
) -> Iterator[tuple[Path, Outcome]]:
    # Not forked: libraries below (Arrow) have threads of their own.
    context = multiprocessing.get_context("spawn")
    running: dict[Connection, tuple[SpawnProcess, Path]] = {}
    todo = list(waiting)
    try:
        while todo or running:
            while todo and len(running) < workers:
                warc = todo.pop(0)
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(warc, out, wanted, theirs), daemon=True)
                process.start()
                theirs.close()
                running[ours] = process, warc
            for pipe in wait(list(running)):
                assert isinstance(pipe, Connection)
                process, warc = running[pipe]
                try:
                    word: int | Outcome = pipe.recv()
                except EOFError:  # it died without a word
                    process.join()
                    del running[pipe]
                    sentence = f"{warc.name} ended its process (exit status {process.exitcode}); it is left out"
                    yield warc, Outcome(sentence)
                    continue
                if isinstance(word, int):
                    done(word)
                    continue
                process.join()
                del running[pipe]
                yield warc, word
    finally:
        for process, _ in running.values():
            process.terminate()


def _work(warc: Path, out: Path, wanted: ExtractOptions, pipe: Any) -> None:
    try:
        pipe.send(process_warc(warc, out, wanted, pipe.send))
    except OSError as error:
        pipe.send(Outcome(f"{warc.name}: {error.strerror or error}"))
    except Exception as error:  # one file's fault must not end the others
        pipe.send(Outcome(f"{warc.name} could not be processed ({type(error).__name__}: {error})"))
