"""Which page is being read, known even after ``kill -9``, and the pages over which processes have died.

``reading`` in the crawl's folder is mapped into memory: a page that is marked there costs a microsecond, and the kernel
keeps the mark whatever becomes of the process. ``poison.json`` beside it is the memory of such ends.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import orjson

from crawlerproject.reasons import Reason
from crawlerproject.stores.atomic_files import SECRET_FILE, opened, replace_file, storage_errors
from crawlerproject.stores.crawl_dir import CrawlDir

if TYPE_CHECKING:
    from crawlerproject.stores.protocols import QueuedPage

logger = logging.getLogger(__name__)

_FORMAT = 1
_BYTES = 4096  # one page of memory
_HEAD = struct.Struct(">BH24s")  # format, length of the URL, key of the page
_URL_BYTES = _BYTES - _HEAD.size
# One end may be anything: the machine, the operator's kill -9, another program's memory. A second one over the same
# page, which in between was not read to its end, is the page.
POISON_ENDS = 2

Waiting = AbstractContextManager[object]
"""Entered while a disk or a store is waited for at the end of a page: ``ReadingMark.unmarked``."""
NO_MARK: Waiting = nullcontext()
"""Where nothing is marked."""


class Suspect(NamedTuple):
    """A page over which the process died."""

    url: str
    ends: int  # of processes, while it was being read
    last_at: float  # epoch seconds, when the last of them was found

    @property
    def poison(self) -> bool:
        """Whether it is set aside."""
        return self.ends >= POISON_ENDS


def after_unclean_end(before: Suspect | None, url: str, now: float) -> Suspect:
    """What is held against a page that was being read when the last process died."""
    return Suspect(url, before.ends + 1 if before is not None else 1, now)


class _Unmarked:
    """``with`` this the mark is off, and afterwards as it was."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._before = 0

    def __enter__(self) -> None:
        self._before = self._memory[0]
        self._memory[0] = 0

    def __exit__(self, *error: object) -> None:
        self._memory[0] = self._before


class ReadingMark:
    """The mapped file: at most one page at a time, since reading is one uninterrupted piece of work."""

    def __init__(self, folder: Path) -> None:
        """Open or make the file; StorageError when that fails."""
        path = CrawlDir(folder).reading_mark
        self._row: QueuedPage | None = None  # that is written there, marked or not
        with storage_errors(path), opened(path, os.O_RDWR | os.O_CREAT, SECRET_FILE) as descriptor:
            if os.fstat(descriptor).st_size != _BYTES:
                os.ftruncate(descriptor, _BYTES)
                os.posix_fallocate(descriptor, 0, _BYTES)  # a full disk is met here, not as a bus error
            self._memory = mmap.mmap(descriptor, _BYTES)
        self.unmarked = _Unmarked(self._memory)
        """For waits for a disk or a store amid such work: no page's bytes end a process there, and they may be long."""

    def left(self) -> tuple[bytes, str] | None:
        """Key and URL (its beginning, when it is very long) of the page that is marked."""
        mark, length, key = _HEAD.unpack_from(self._memory)
        if mark != _FORMAT:
            return None
        return key, self._memory[_HEAD.size : _HEAD.size + length].decode("utf-8", "replace")

    def reading(self, row: QueuedPage) -> Self:
        """Mark a page until the ``with`` is left; not for work that lets other work in between.

        The one that was marked before, which is the usual case, by its first byte alone.
        """
        if row is self._row:
            self._memory[0] = _FORMAT
            return self
        self._row = row
        url = row.url.encode("utf-8", "replace")[:_URL_BYTES]
        self._memory[1 : _HEAD.size + len(url)] = _HEAD.pack(_FORMAT, len(url), row.key)[1:] + url
        self._memory[0] = _FORMAT  # last: until then nothing is marked
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._memory[0] = 0

    def clear(self) -> None:
        """Remove the mark."""
        self._memory[0] = 0

    def close(self) -> None:
        """Unmap the file, which stays."""
        self._memory.close()


class Poison(ReadingMark):
    """Pages over which processes have died. ``with poison.reading(row):`` around whatever handles a page's bytes."""

    def __init__(self, folder: Path, now: float, *, siblings: Iterable[Path] = ()) -> None:
        """Take up what the last process left, and say so.

        ``siblings`` are folders of workers of the same crawl on this machine, whose pages may come to this one.
        """
        super().__init__(folder)
        self._path = CrawlDir(folder).poison
        self._own = read_poison(self._path)
        self.suspects = dict(self._own)
        for sibling in siblings:
            if sibling != folder:
                for key, suspect in read_poison(CrawlDir(sibling).poison).items():
                    before = self.suspects.get(key)
                    self.suspects[key] = suspect._replace(ends=suspect.ends + (before.ends if before else 0))
        if (left := self.left()) is not None:
            self._died(*left, now)
            self.clear()

    def _died(self, key: bytes, url: str, now: float) -> None:
        self._own[key] = after_unclean_end(self._own.get(key), url, now)
        self.suspects[key] = found = after_unclean_end(self.suspects.get(key), url, now)
        write_poison(self._path, self._own)
        if found.poison:
            logger.error(
                "The process has died %d times while it read %r: the page is set aside as poison and not asked for "
                "again (scrapy recover --poison gives it another chance).", found.ends, found.url,
                extra={"url": found.url, "reason": Reason.POISON},
            )  # fmt: skip
        else:
            logger.warning(
                "The last process died while it read %r; if that happens once more the page is set aside.", found.url,
                extra={"url": found.url},
            )  # fmt: skip

    def is_poison(self, key: bytes) -> bool:
        """Whether a page is not asked for any more."""
        suspect = self.suspects.get(key)
        return suspect is not None and suspect.poison

    def acquit(self, key: bytes) -> None:
        """A suspect was read to its end: whatever ended the process, it was not this page."""
        if key in self._own:
            del self._own[key]
            with self.unmarked:
                write_poison(self._path, self._own)
        self.suspects.pop(key, None)


def read_poison(path: Path) -> dict[bytes, Suspect]:
    """What is held against pages, by key; nothing when the file is missing or is not ours."""
    try:
        pages = orjson.loads(path.read_bytes())["pages"]
        return {bytes.fromhex(page["key"]): Suspect(page["url"], page["ends"], page["last_at"]) for page in pages}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("%s cannot be read (%s): what it held against pages is forgotten.", path, error)
        return {}


def poison_of(folder: Path) -> dict[bytes, Suspect]:
    """What is held against pages in a crawl's or worker's folder."""
    return read_poison(CrawlDir(folder).poison)


def write_poison(path: Path, pages: dict[bytes, Suspect]) -> None:
    """Store it, durably. StorageError."""
    rows = [{"key": key.hex(), **suspect._asdict()} for key, suspect in pages.items()]
    replace_file(path, orjson.dumps({"format": _FORMAT, "pages": rows}, option=orjson.OPT_INDENT_2))
