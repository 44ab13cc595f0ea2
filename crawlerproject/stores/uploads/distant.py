"""An archive that lies at another place, read from there as one reads a folder: listed, opened, read by ranges.

What the other side lists is not believed: a name that is no plain name of a file does not exist for us. Nothing is
written through these paths.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Generator, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PosixPath
from typing import Any, Self

from crawlerproject.rules.archive.upload_rules import is_plain_name
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.uploads.upload_journal import Journal
from crawlerproject.stores.uploads.upload_target import checked_url, filesystem, local_folder, target_errors

# A read beginning somewhere fetches so much, one that goes on where the last ended twice as much as that, up to the
# most: one record costs one request, and a stream few.
_FIRST_BYTES, _MOST_BYTES = 64 * 1024, 8 * 1024 * 1024
_LISTED_SECONDS = 60.0
_FILE, _FOLDER = stat.S_IFREG | 0o444, stat.S_IFDIR | 0o555
_MAGIC = "*?["


class SpanFile(io.RawIOBase):
    """A file of known size of which only the spans that are wanted are read, wherever these come from."""

    def __init__(self, size: int, span: Callable[[int, int], bytes]) -> None:
        """``span`` gives the bytes from a first one to before another."""
        self._size = size
        self._at = 0
        self._span = span

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        data = self._some(length) if length > 0 else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _some(self, length: int) -> bytes:
        """The next bytes, ``length`` at most."""
        return self._span(self._at, self._at + length)


class DistantPath(PosixPath):
    """A file or folder there. ``s3:/bucket/x`` as a path is ``s3://bucket/x``; it can be sent to another process.

    All that would look at this machine's files is answered here: which of its methods pathlib makes of which others
    changes from Python to Python.
    """

    __slots__ = ()

    @property
    def url(self) -> str:
        """Its address."""
        return str(self).replace(":/", "://", 1)

    def as_crawl(self) -> CrawlDir:
        """The same as a crawl's folder."""
        return DistantCrawl(self)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Size and kind. Raises FileNotFoundError, TargetError."""
        facts = self._asked(lambda files: files.info(self.url))
        folder = facts["type"] == "directory"
        size = 0 if folder else int(facts["size"])
        return os.stat_result((_FOLDER if folder else _FILE, 0, 0, 1, 0, 0, size, 0, 0, 0))

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return self._mode() != 0

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._mode() == _FILE

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._mode() == _FOLDER

    def _mode(self) -> int:
        try:
            return self.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def read_bytes(self) -> bytes:
        with self.open("rb") as file:
            return file.read()

    def iterdir(self) -> Generator[Self, None, None]:
        """What is listed there, by name; nothing where there is nothing."""
        try:
            listed = self._asked(lambda files: files.ls(self.url, detail=False))
        except (FileNotFoundError, NotADirectoryError):
            return
        inside = self.url.partition("://")[2] + "/"
        below = (str(name).rstrip("/") for name in listed)
        names = {name.removeprefix(inside) for name in below if name.startswith(inside)}
        yield from (self / name for name in sorted(names) if is_plain_name(name))

    def glob(self, pattern: str) -> Generator[Self, None, None]:
        """What of a folder matches the pattern, which has no ``**``."""
        first, _, rest = pattern.partition("/")
        if any(letter in first for letter in _MAGIC):
            found: Iterator[Self] = (path for path in self.iterdir() if fnmatchcase(path.name, first))
        else:
            found = iter([self / first] if rest or (self / first).exists() else [])
        for path in found:
            if rest:
                yield from path.glob(rest)
            else:
                yield path

    def open(self, mode: str = "r", *_: Any, **__: Any) -> io.BufferedReader:  # type: ignore[override]
        """Only for reading bytes. Raises FileNotFoundError, TargetError."""
        if mode != "rb":
            raise OSError(errno.EROFS, "what lies at another place is only read, as bytes", self.url)
        return io.BufferedReader(_GrowingSpans(self.stat().st_size, self.span), _FIRST_BYTES)

    def is_symlink(self) -> bool:
        return False

    def resolve(self, strict: bool = False) -> Self:
        """The path itself: there are no links."""
        return self

    def absolute(self) -> Self:
        """The path itself."""
        return self

    def span(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` to before ``end``."""
        data = self._asked(lambda files: files.cat_file(self.url, start=start, end=end))
        return bytes(data)

    def _asked(self, question: Any) -> Any:
        with target_errors(self.url, passed=(FileNotFoundError, NotADirectoryError)):
            try:
                return question(_files(self.url.partition("://")[0]))
            except FileNotFoundError:  # of fsspec without a number, by which pathlib knows it
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.url) from None


class DistantCrawl(DistantPath, CrawlDir):
    """A crawl's folder there."""

    __slots__ = ()
    is_here = False

    def part(self, *names: str) -> Path:
        return DistantPath(self, *names)


class _GrowingSpans(SpanFile):
    """Asks for spans that grow while they follow each other."""

    _start = 0
    _data = b""
    _next_bytes = _FIRST_BYTES

    def _some(self, length: int) -> bytes:
        held = self._at - self._start
        if not 0 <= held < len(self._data):
            follows = bool(self._data) and held == len(self._data)
            self._next_bytes = min(2 * self._next_bytes, _MOST_BYTES) if follows else _FIRST_BYTES
            end = min(self._size, self._at + max(length, self._next_bytes))
            self._data, self._start, held = self._span(self._at, end), self._at, 0
            if len(self._data) != end - self._at:
                raise OSError(errno.EIO, "the other side gave another number of bytes than it says")
        return self._data[held : held + length]


def distant_crawl(url: str) -> CrawlDir:
    """The folder of an address, as an argument or as CRAWL_DIR. Raises OperatorError."""
    checked = checked_url(url, "The folder")
    return CrawlDir(local_folder(checked)) if checked.startswith("file:") else DistantCrawl(checked)


def only_there(folder: CrawlDir) -> list[Path]:
    """The files of a folder that were removed here, as they lie at the other place."""
    if not folder.has_removed():
        return []
    journal = Journal(folder)
    there: Path = CrawlDir(local_folder(journal.url)) if journal.url.startswith("file:") else DistantPath(journal.url)
    return [there / name for name in journal.removed() if not (folder / name).exists()]


@cache
def _files(scheme: str) -> Any:
    return filesystem(f"{scheme}://", use_listings_cache=True, listings_expiry_time=_LISTED_SECONDS)
