"""The index of an archive as pywb reads it, in a folder of its own: closed files, and the one that is still written.

Of files at another place the indexes are copied, and the WARC files are named as what stands between gives them.

Invariant: a WARC file is in the list of paths before the first line of the index names it, and the lines of a file
that is being written are replaced by those of its finished index in one rename. So a reader finds each capture
once at any moment, and its file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from crawlerproject.rules.archive import cdxj
from crawlerproject.stores.archive.capture_index import CDXJ_SUFFIX
from crawlerproject.stores.atomic_files import write_whole
from crawlerproject.stores.crawl_dir import (
    ARCHIVE_SUFFIXES,
    OPEN_SUFFIX,
    WARC_SUFFIX,
    CrawlDir,
    archive_of_stem,
    stem_of,
)
from crawlerproject.stores.index.cdxj import JOURNAL_SUFFIX

_FILE_MODE = 0o644  # as files have by default


class _Journal:
    """The rows of one open WARC file as lines of an index; each byte of the journal is read once."""

    def __init__(self, path: Path, filename: str) -> None:
        self._path = path
        self._filename = filename
        self._inode, self._read_bytes = 0, 0
        self._lines: dict[int, bytes] = {}  # by where the capture begins; after a cut an offset is used again

    def grown(self) -> bool:
        """Whether there is more than before; raises FileNotFoundError for one that was closed a moment ago."""
        with self._path.open("rb") as file:
            found = self._path.stat()
            if found.st_ino != self._inode or found.st_size < self._read_bytes:  # it was cut
                self._inode, self._read_bytes = found.st_ino, 0
                self._lines.clear()
            file.seek(self._read_bytes)
            before = self._read_bytes
            for line in file:
                if not line.endswith(b"\n"):  # the rest is still to be written
                    break
                self._read_bytes += len(line)
                if (row := cdxj.unpack(line)) is not None:
                    self._lines[row.start] = cdxj.line(row, self._filename) + b"\n"
        return self._read_bytes != before

    def lines(self) -> bytes:
        """Sorted, as in a finished index."""
        return b"".join(sorted(set(self._lines.values())))


def _all_here(path: Path) -> None:
    """No file is at another place."""


class ReplayIndex:
    """``indexes`` holds one CDXJ file a WARC file, ``paths`` a line a WARC file: its name, then where it may be."""

    def __init__(self, folder: Path, distant: Callable[[Path], str | None] = _all_here) -> None:
        """``distant``: the address of a WARC file at another place, None of one that is here."""
        self._distant = distant
        self.indexes = folder / "indexes"
        self.paths = folder / "paths"
        self.indexes.mkdir()
        self._journals: dict[str, _Journal] = {}
        self._linked: dict[str, Path] = {}
        self._changes = 0

    def refresh(self, folders: Sequence[CrawlDir], elsewhere: Sequence[Path] = ()) -> tuple[str, ...]:
        """Take in what has changed in the folders of one crawl; the closed WARC files that have no index.

        ``elsewhere`` are files that were removed from these folders.
        """
        # Journals first: one that is closed meanwhile is then found among the closed ones.
        journals = {_stem(path, JOURNAL_SUFFIX): path for path in _all(folders, JOURNAL_SUFFIX)}
        indexes = [path for path in elsewhere if path.name.endswith(CDXJ_SUFFIX)]
        closed = {_stem(path, CDXJ_SUFFIX): path for path in (*indexes, *_all(folders, CDXJ_SUFFIX))}
        warcs = [path for folder in folders for path in (*folder.closed_warcs(), *folder.open_warcs())]
        warcs += [path for path in elsewhere if path.name.endswith(ARCHIVE_SUFFIXES)]
        self._list_paths(warcs)
        for stem, index in closed.items():
            if self._linked.get(stem) != index:
                self._link(stem, index)
        for stem, journal in journals.items():
            if stem not in closed:
                self._copy(stem, journal)
        for stem in [stem for stem in (*self._linked, *self._journals) if stem not in closed | journals]:
            self._forget(stem)
        self._mark()
        stems = {stem_of(path.name) for path in warcs if path.name.endswith(ARCHIVE_SUFFIXES)}
        return tuple(sorted(map(archive_of_stem, stems - closed.keys() - journals.keys())))

    def _mark(self) -> None:
        """Make changes seen: pywb lists a folder again when its time differs by whole seconds (2.10, aggregator.py)."""
        if self.indexes.stat().st_mtime != self._changes:
            self._changes += 1
            os.utime(self.indexes, (self._changes, self._changes))

    def _list_paths(self, warcs: Iterable[Path]) -> None:
        """Each file under both of its names, since it may be closed between two looks."""
        lines = set()
        for warc in warcs:
            whole = str(warc.resolve()).removesuffix(OPEN_SUFFIX)
            name = warc.name.removesuffix(OPEN_SUFFIX)
            places = self._distant(warc) or f"{whole}\t{whole}{OPEN_SUFFIX}"
            lines.add(f"{name}\t{places}\n".encode())
        content = b"".join(sorted(lines))
        if not self.paths.exists() or self.paths.read_bytes() != content:
            write_whole(self.paths, content, _FILE_MODE)

    def _link(self, stem: str, index: Path) -> None:
        if self._distant(index) is not None:
            write_whole(self._place(stem), index.read_bytes(), _FILE_MODE)
        else:
            link = self.indexes / f"{stem}.link"
            link.unlink(missing_ok=True)
            link.symlink_to(index.resolve())
            link.replace(self._place(stem))
        self._linked[stem] = index
        self._journals.pop(stem, None)

    def _copy(self, stem: str, path: Path) -> None:
        journal = self._journals.setdefault(stem, _Journal(path, f"{stem}{WARC_SUFFIX}"))
        with suppress(FileNotFoundError):  # its index is there at the next look
            if journal.grown():
                write_whole(self._place(stem), journal.lines(), _FILE_MODE)

    def _forget(self, stem: str) -> None:
        self._place(stem).unlink(missing_ok=True)
        self._linked.pop(stem, None)
        self._journals.pop(stem, None)

    def _place(self, stem: str) -> Path:
        return self.indexes / f"{stem}{CDXJ_SUFFIX}"


def _all(folders: Sequence[CrawlDir], suffix: str) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.index.glob(f"*{suffix}"))]


def _stem(path: Path, suffix: str) -> str:
    return path.name.removesuffix(suffix)
