"""The CDXJ index, one sorted file per closed WARC; while a WARC is open its rows are kept in a journal.

Invariant: ``index/NAME.cdxj`` exists only whole, and names exactly the captures of the closed ``NAME.warc.gz`` but for
those that were withdrawn. It is written after the WARC's Parquet parts, so that where it is, they are.
Journal rows say which span of the WARC they cover, so following the spans shows whether the journal is
complete; where it is not (a crash came between the two writes) the rows are read from the WARC itself.

``python -m crawlerproject.stores.index.index_files WARC INDEX_FOLDER [PARQUET_FOLDER CRAWL]`` makes the indexes of a
closed WARC in a process of its own: in the crawl's, those of a large WARC took memory that Python does not give back
(180 MB for the 47,000 captures of a broad crawl, Arrow included), and Python's lock beside the event loop.

The Parquet index: for each closed WARC one part a subset, in folders that Common Crawl's users know.

``parquet/crawl=NAME/subset=warc/FILE.parquet``; each part is sorted and only ever replaced whole.
"""

from __future__ import annotations

import heapq
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive import index_rows
from crawlerproject.rules.archive.index_rows import CdxjEntry, crawl_of
from crawlerproject.rules.archive.warc_members import Flaw, Member
from crawlerproject.rules.archive.withdrawal import Withdrawn
from crawlerproject.rules.printable import counted
from crawlerproject.stores.archive.warc_reader import Progress, first_member, members
from crawlerproject.stores.atomic_files import opened, replace_file, storage_errors
from crawlerproject.stores.crawl_dir import WARC_SUFFIX, archive_of_stem, closed_archives
from crawlerproject.stores.operator_files.watched_lists import withdrawn_from, withdrawn_of

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetFiles:
    """The parts in ``folder``; ``crawl`` names the crawl of WARC files that do not say which they belong to."""

    def __init__(self, folder: Path, crawl: str) -> None:
        self.folder = folder
        self.crawl = crawl

    def write(self, warc: Path, first: Member | None, rows: Iterable[CdxjEntry]) -> None:
        """Write the parts of one closed WARC, whose first record is ``first``, in place of earlier ones."""
        # Arrow takes a tenth of a second to import, which a crawl need not spend before its first file is full.
        from crawlerproject.stores.index.parquet_tables import written

        parts = self.build(warc.name, first, rows)
        for path, table in parts.items():
            with storage_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, written(table))
        for path in self.parts_of(warc.name):
            if path not in parts:
                path.unlink()

    def build(self, filename: str, first: Member | None, rows: Iterable[CdxjEntry]) -> dict[Path, pa.Table]:
        """What the parts of one WARC must hold, by their paths. Raises StorageError for a file beyond 2 GiB."""
        from crawlerproject.stores.index.parquet_tables import tables_of

        crawl = crawl_of(first, self.crawl)
        return {self._path(crawl, subset, filename): table for subset, table in tables_of(filename, rows).items()}

    def parts_of(self, filename: str) -> list[Path]:
        """Every part there is of one WARC."""
        return sorted(self.folder.glob(f"crawl=*/subset=*/{filename.removesuffix(WARC_SUFFIX)}.parquet"))

    def filenames(self) -> Iterator[str]:
        """The WARC files that any part is of."""
        yield from sorted({archive_of_stem(path.stem) for path in self.folder.glob("crawl=*/subset=*/*.parquet")})

    def _path(self, crawl: str, subset: str, filename: str) -> Path:
        return self.folder / f"crawl={crawl}" / f"subset={subset}" / f"{filename.removesuffix(WARC_SUFFIX)}.parquet"


CDXJ_SUFFIX, JOURNAL_SUFFIX = ".cdxj", ".cdxj.open"
_LINES_AT_ONCE = 1024
# Rows of some 5,000 captures. An index of more is made in a process of its own, which costs 0.2 s of CPU; of less, in a
# thread, where it takes 60 MB at most and some tenths of a second of Python's lock (our measurements).
_APART_BYTES = 2 * 1024 * 1024

_READ_BYTES = 16 * 1024
"""Of each file at a time (ours): with 5,000 files 80 MB."""

logger = logging.getLogger(__name__)


class CdxjFiles:
    """Journals and finished indexes in ``folder``; ``finish`` may run in the background, all else in one thread."""

    def __init__(self, folder: Path, parquet: ParquetFiles | None = None) -> None:
        self.folder = folder
        self._parquet = parquet
        folder.mkdir(parents=True, exist_ok=True)
        self._lines: dict[str, list[bytes]] = {}
        self._unwritten: dict[str, bytes] = {}
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cdxj")
        self._running: list[tuple[Path, Future[list[str]]]] = []

    def append(self, filename: str, line: bytes) -> None:
        """Remember the row of a capture in WARC ``filename``, packed; on disk after the next ``flush``."""
        self._lines.setdefault(filename, []).append(line)

    def flush(self) -> None:
        """Write remembered rows to their journals; raises StorageError and keeps what was not written."""
        for filename in list(self._lines):
            self._unwritten[filename] = b"".join([self._unwritten.get(filename, b""), *self._lines.pop(filename)])
        for filename in list(self._unwritten):
            journal = self._journal(filename)
            with storage_errors(journal):
                self.folder.mkdir(parents=True, exist_ok=True)
                with opened(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) as descriptor:
                    while data := self._unwritten[filename]:
                        self._unwritten[filename] = data[os.write(descriptor, data) :]
            del self._unwritten[filename]

    def cut(self, filename: str, length: int) -> None:
        """Forget the rows of captures past ``length``: their bytes were cut from the WARC."""
        rows = [index_rows.pack(row) for row in self._journal_rows(filename) if row.end <= length]
        if (journal := self._journal(filename)).exists():
            replace_file(journal, b"".join(rows))

    def boundary(self, filename: str, before: int) -> int:
        """The last byte up to ``before`` at which a capture begins, as the journal knows them; 0 when it knows none."""
        return max((row.start for row in self._journal_rows(filename) if row.start <= before), default=0)

    def journal_between(self, filename: str, start: int, end: int) -> list[CdxjEntry]:
        """The rows of captures that lie within a span of an open WARC, each once."""
        rows = self._journal_rows(filename)
        return list({row.start: row for row in rows if row.start >= start and row.end <= end}.values())

    def finish(self, warc: Path) -> list[str]:
        """Write the index of a closed WARC and drop its journal; what was odd, as sentences."""
        known, messages = self._journal_rows(warc.name), list[str]()
        if not known or (rows := _chain(known, warc)) is None:
            read = _read_rows(warc)
            rows, messages = read.rows, read.messages()
        self._write_index(warc, rows)
        self._journal(warc.name).unlink(missing_ok=True)
        return messages

    def finish_in_background(self, warc: Path) -> None:
        """Like ``finish``, beside the crawl; ``wait`` tells how it went."""
        self._running = [(path, future) for path, future in self._running if not self._reported(path, future)]
        self._running.append((warc, self._worker.submit(self._finish_beside, warc)))

    def _finish_beside(self, warc: Path) -> list[str]:
        journal = self._journal(warc.name)
        if journal.exists() and journal.stat().st_size < _APART_BYTES:
            return self.finish(warc)
        parquet = (self._parquet.folder, self._parquet.crawl) if self._parquet is not None else None
        return finish_apart(warc, self.folder, parquet)

    def wait(self) -> None:
        """Wait for what runs in the background; a failure is logged and mended by the next ``catch_up``."""
        for path, future in self._running:
            self._reported(path, future, wait=True)
        self._running = []

    def close(self) -> None:
        """Flush, wait, and end the background thread."""
        try:
            self.flush()
        finally:
            self.wait()
            self._worker.shutdown()

    def rebuild(self, warc: Path, progress: Progress | None = None) -> list[str]:
        """Write the index of a closed WARC from nothing but the WARC; what was odd, as sentences."""
        return self.write(warc, _read_rows(warc, progress))

    def write(self, warc: Path, read: RowsRead) -> list[str]:
        """Write the index of a closed WARC that was read; what was odd, as sentences."""
        self._write_index(warc, read.rows)
        return read.messages()

    def without_withdrawn(self, warc: Path) -> int:
        """Write the index of a closed WARC without what was withdrawn since; how many captures that leaves out."""
        try:
            lines = self.path(warc.name).read_bytes().splitlines()
        except FileNotFoundError:  # being closed: it is made without them
            return 0
        withdrawn, parsed = withdrawn_of(self.folder.parent), list(map(index_rows.parse, lines))
        rows = [found[0] for found in parsed if found is not None]
        gone = sum(withdrawn.covers(row.url) for row in rows)
        if gone and len(rows) < len(lines):
            self.rebuild(warc)
        elif gone:
            self._write_index(warc, rows)
        return gone

    def forget_withdrawn(self, filename: str) -> None:
        """Take out of the journal of an open WARC what was withdrawn: its bytes were erased. StorageError."""
        if (journal := self._journal(filename)).exists():
            replace_file(journal, b"".join(map(index_rows.pack, shown_rows(journal))))

    def catch_up(self, warc_folder: Path) -> list[str]:
        """At start: index closed WARCs without an index, drop journals without a WARC; what was done, as sentences."""
        messages = []
        for warc in closed_archives(warc_folder):
            if not self.path(warc.name).exists():
                messages += [f"{warc.name} had no index; it has one now", *self.finish(warc)]
        for journal in self.folder.glob(f"*{JOURNAL_SUFFIX}"):
            warc = warc_folder / archive_of_journal(journal)
            if not warc.with_name(f"{warc.name}.open").exists():
                journal.unlink(missing_ok=True)
        return messages

    def drop(self, filename: str) -> None:
        """Forget a closed WARC that is closed no more; its rows are read from it when they are wanted again."""
        self.path(filename).unlink(missing_ok=True)
        for part in self._parquet.parts_of(filename) if self._parquet is not None else ():
            part.unlink(missing_ok=True)

    def reopen(self, warc: Path) -> None:
        """Give a closed WARC that will be an open one its journal again, instead of an index. StorageError."""
        replace_file(self._journal(warc.name), b"".join(map(index_rows.pack, _read_rows(warc).rows)))
        self.drop(warc.name)

    def orphans(self, warc_folder: Path) -> list[str]:
        """WARC files that an index names and that are not there."""
        named = {archive_of_stem(path.stem) for path in self.folder.glob(f"*{CDXJ_SUFFIX}")}
        if self._parquet is not None:
            named |= set(self._parquet.filenames())
        return sorted(name for name in named if not (warc_folder / name).exists())

    def path(self, filename: str) -> Path:
        """Where the index of WARC ``filename`` is or will be."""
        return self.folder / f"{filename.removesuffix(WARC_SUFFIX)}{CDXJ_SUFFIX}"

    def _journal(self, filename: str) -> Path:
        return self.folder / f"{filename.removesuffix(WARC_SUFFIX)}{JOURNAL_SUFFIX}"

    def _journal_rows(self, filename: str) -> list[CdxjEntry]:
        with suppress(FileNotFoundError):
            return journal_rows(self._journal(filename))
        return []

    def _write_index(self, warc: Path, rows: list[CdxjEntry]) -> None:
        withdrawn = withdrawn_of(self.folder.parent)
        rows = [row for row in rows if not withdrawn.covers(row.url)]
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._parquet is not None:
            self._parquet.write(warc, first_member(warc), rows)
        # Sorted in pieces: one long sort would hold Python's lock, and with it the crawl beside it.
        starts = range(0, len(rows), _LINES_AT_ONCE)
        pieces = [sorted([index_rows.line(row, warc.name) for row in rows[at : at + _LINES_AT_ONCE]]) for at in starts]
        lines = [line + b"\n" for line, _ in groupby(heapq.merge(*pieces))]
        replace_file(self.path(warc.name), b"".join(lines))

    def _reported(self, path: Path, future: Future[list[str]], *, wait: bool = False) -> bool:
        """Log how a background job ended; False while it runs."""
        if not wait and not future.done():
            return False
        try:
            for message in future.result():
                logger.warning("%s", message)
        except (StorageError, OSError) as error:
            logger.error("No index for %s yet, the next start makes it: %s", path.name, error)
        return True


def finish_apart(warc: Path, folder: Path, parquet: tuple[Path, str] | None) -> list[str]:
    """``CdxjFiles.finish`` in a process of its own; StorageError when it fails, OSError when it cannot begin."""
    command = [sys.executable, "-m", __name__, str(warc), str(folder), *map(str, parquet or ())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C is for the crawl, which then waits for its index
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read().splitlines()
    if process.returncode:
        raise StorageError(printed[-1] if printed else f"its process ended with status {process.returncode}")
    return printed


def without_places(filename: str, captures: int) -> str:
    """A sentence on the captures that no index can name; "" when there are none."""
    what = f"{filename}: {counted(captures, 'capture')} share gzip members, and no index can name them"
    return f"{what}; warcio recompress {filename} NEW.warc.gz gives each its own" if captures else ""


def archive_of_journal(journal: Path) -> str:
    """The name that the archive file has once it is closed."""
    return f"{journal.name.removesuffix(JOURNAL_SUFFIX)}{WARC_SUFFIX}"


def shown_rows(journal: Path) -> list[CdxjEntry]:
    """What a journal holds and was not withdrawn. Raises FileNotFoundError."""
    withdrawn = withdrawn_from(journal)
    return [row for row in journal_rows(journal) if not withdrawn.covers(row.url)]


def journal_rows(journal: Path) -> list[CdxjEntry]:
    """What a journal holds; a row that was torn is passed over. Raises FileNotFoundError."""
    with journal.open("rb") as file:
        return [row for line in file if (row := index_rows.unpack(line)) is not None]


def _chain(rows: Iterable[CdxjEntry], warc: Path) -> list[CdxjEntry] | None:
    """The rows whose spans follow each other from the warcinfo to the end of the file; None when one is missing."""
    by_start = {row.start: row for row in rows}  # the latest wins: an offset is used again after a cut
    first = first_member(warc)
    if first is None:
        return None
    position, length = first.end, warc.stat().st_size
    chain = []
    while position < length:
        row = by_start.get(position)
        if row is None or row.end <= position:
            return None
        chain.append(row)
        position = row.end
    return chain if position == length else None


class RowsRead:
    """Takes what is found in a WARC, in order: its rows up to the first flaw."""

    def __init__(self, warc: Path) -> None:
        self.rows: list[CdxjEntry] = []
        self._warc = warc
        self._flaw: Flaw | None = None
        self._shared = 0  # captures without a place of their own

    def take(self, found: Member | Flaw) -> None:
        """One record, or a place of damage."""
        if self._flaw is not None:
            return
        if isinstance(found, Flaw):
            self._flaw = found
        elif found.kind in index_rows.INDEXED and found.shared:
            self._shared += 1
        elif found.kind in index_rows.INDEXED:
            self.rows.append(index_rows.row_of_member(found))

    def messages(self) -> list[str]:
        """What was odd, as sentences."""
        name, flaw = self._warc.name, self._flaw
        damage = f"{name} is not good from byte {flaw.offset} on: {flaw.what}" if flaw is not None else ""
        return list(filter(None, [damage, without_places(name, self._shared)]))


def _read_rows(warc: Path, progress: Progress | None = None) -> RowsRead:
    """From the WARC itself."""
    read = RowsRead(warc)
    for found in members(warc, progress=progress):
        read.take(found)
    return read


def merged_lines(indexes: Iterable[Path]) -> Iterator[bytes]:
    """The lines of all files, each of which is sorted, in one order. Raises OSError."""
    return heapq.merge(*map(_lines, indexes))


def shown_lines(lines: Iterable[bytes], withdrawn: Withdrawn) -> Iterator[bytes]:
    """The lines of an index whose captures were not withdrawn."""
    for line in lines:
        found = index_rows.parse(line) if withdrawn.entries else None
        if found is None or not withdrawn.covers(found[0].url):
            yield line


def _lines(path: Path) -> Iterator[bytes]:
    read, withdrawn = 0, withdrawn_from(path)  # at another place an index may have them still
    while True:
        with path.open("rb") as file:  # between two reads it is closed
            file.seek(read)
            lines = file.readlines(_READ_BYTES)
        if not lines:
            return
        read += sum(map(len, lines))
        yield from shown_lines(lines, withdrawn)


def main() -> None:
    """The process."""
    threading.Thread(target=_end_with_the_crawl, daemon=True).start()
    warc, folder, *parquet = sys.argv[1:]
    index = CdxjFiles(Path(folder), ParquetFiles(Path(parquet[0]), parquet[1]) if parquet else None)
    try:
        messages = index.finish(Path(warc))
    except (StorageError, OSError) as error:
        sys.exit(str(error))
    print(*messages, sep="\n", end="\n" if messages else "")


def _end_with_the_crawl() -> None:
    """After a ``kill -9`` of the crawl the next start makes the index, and must be the only one that does."""
    os.read(0, 1)  # the other end is the crawl's, and nothing is ever written
    os._exit(1)


if __name__ == "__main__":
    main()
