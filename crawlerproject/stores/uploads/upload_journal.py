"""How far each file of a crawl's folder has come on its way to another place: one JSON line a change, made durable.

The last line of a file counts; a torn one is passed over. One process writes, others may read.

What of a crawl's folder goes to another place: what is closed, under the name that it has in the folder.

A closed WARC file goes with its indexes once it has both, its CDXJ file last: where that is, the others are. Of the
request log go the days that are over, as they are compressed; today's when the crawl has ended, compressed for it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import orjson

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.upload_rules import Here, Measured, Stage, Upload
from crawlerproject.rules.printable import counted
from crawlerproject.stores.atomic_files import new_file, replace_file, storage_errors
from crawlerproject.stores.crawl_dir import WARC_SUFFIX, CrawlDir, facts_in
from crawlerproject.stores.index.index_files import ParquetFiles
from crawlerproject.stores.logs.request_log import compress_into, day_of
from crawlerproject.stores.operator_files.watched_lists import withdrawn_path
from crawlerproject.stores.uploads.upload_target import here

# Copies of robots.txt that a version before 1.8 has packed and not sent.
_PACKS = "robots-*.tar.gz"


class Source(NamedTuple):
    """One file to be sent. ``plain``: a day of the log that is not compressed yet, of which ``path`` is the rest."""

    name: str
    path: Path
    found: Here
    plain: Path | None = None
    passing: bool = False  # made for the upload, and deleted when that is confirmed

    def ready(self, folder: CrawlDir) -> Path:
        """The file to send, which may have to be made. Raises OSError."""
        if self.plain is None:
            return self.path
        folder.upload_staged.mkdir(parents=True, exist_ok=True)
        target = folder.upload_staged / f"{self.plain.name}.gz"
        with new_file(target) as file:
            if self.path.exists():  # the part of the day that is compressed
                with self.path.open("rb") as packed:
                    shutil.copyfileobj(packed, file)
            compress_into(file, self.plain)
        return target


class Group(NamedTuple):
    """Files that are sent in this order, and removed together where they may be."""

    sources: list[Source]
    removable: bool = False


def groups(folder: CrawlDir, *, ended: bool) -> Iterator[Group]:
    """What may be sent now; with ``ended`` also what a running crawl still writes to."""
    parquet = ParquetFiles(folder.parquet, "")
    for warc in folder.closed_warcs():
        index = folder.index / f"{warc.name.removesuffix(WARC_SUFFIX)}.cdxj"
        if index.exists():
            yield Group(_sources(folder, [*parquet.parts_of(warc.name), warc, index]), removable=True)
    listed = withdrawn_path(folder)  # of a worker's folder that of its crawl
    if (found := here(listed)) is not None:
        yield Group([Source(listed.name, listed, found)])
    yield Group(list(_log(folder, ended=ended)))
    packs = sorted((folder.upload_staged / folder.log.name).glob(_PACKS))
    yield Group([source._replace(passing=True) for source in _sources(folder.upload_staged, packs)])


def _sources(folder: Path, paths: list[Path]) -> list[Source]:
    looked = ((path, here(path)) for path in paths)
    return [Source(str(path.relative_to(folder)), path, found) for path, found in looked if found is not None]


def _log(folder: CrawlDir, *, ended: bool) -> Iterator[Source]:
    plain = {day_of(path): path for path in folder.log.glob("requests-*.jsonl")}
    for path in sorted(folder.log.glob("requests-*.jsonl.gz")):
        if day_of(path) not in plain:
            yield from _sources(folder, [path])
    yield from _sources(folder, sorted(folder.log.glob("requests-*.parquet")))
    if not ended:
        return
    for path in plain.values():
        packed = path.with_name(f"{path.name}.gz")
        both = [found for found in (here(path), here(packed)) if found is not None]
        together = Here(sum(found.size for found in both), max(found.mtime_ns for found in both))
        yield Source(str(packed.relative_to(folder)), packed, together, plain=path)


_WORTH_PACKING_LINES = 1000
"""Lines that count no more, from which on a start rewrites the others."""


class Journal:
    """What is known of each file, by its path in the folder. ``identity`` marks what this folder has sent."""

    def __init__(self, folder: CrawlDir) -> None:
        self._path = folder.upload_journal
        self.url = ""  # where to
        self.identity = ""
        self._uploads: dict[str, Upload] = {}
        self._descriptor = -1
        self._lines = 0
        self._read()

    def __iter__(self) -> Iterator[tuple[str, Upload]]:
        return iter(sorted(self._uploads.items()))

    def get(self, name: str) -> Upload | None:
        """What is known of a file."""
        return self._uploads.get(name)

    def removed(self) -> list[str]:
        """The files that only the other side has."""
        return [name for name, known in self if known.stage is Stage.REMOVED]

    def open(self, url: str) -> None:
        """Begin to write, of what goes to ``url``; what went to another place is not there, so all of it is sent again.

        Raises StorageError, and OperatorError when another place has what this folder has not.
        """
        with storage_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        moved = url != self.url
        if moved and (only_there := self.removed()):
            raise OperatorError(
                f"Of this archive {counted(len(only_there), 'file is', 'files are')} at {self.url} alone; leave "
                "ARCHIVE_URL as it was, or copy what is there into the folder first."
            )
        if moved:
            self.url, self.identity, self._uploads = url, uuid4().hex, {}
        if moved or self._lines - len(self._uploads) > _WORTH_PACKING_LINES or not self._whole():
            head = {"url": self.url, "id": self.identity}
            lines = [orjson.dumps(head), *(_packed(name, known) for name, known in self)]
            replace_file(self._path, b"\n".join(lines) + b"\n")
            self._lines = len(lines)
        with storage_errors(self._path):
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)

    def set(self, name: str, known: Upload) -> None:
        """Remember, durably. Raises StorageError, and then nothing has changed."""
        self._append(_packed(name, known))
        self._uploads[name] = known

    def forget(self, name: str) -> None:
        """Forget what is known of the file."""
        self._append(orjson.dumps({"file": name}))
        self._uploads.pop(name, None)

    def close(self) -> None:
        """Stop writing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _append(self, line: bytes) -> None:
        with storage_errors(self._path):
            size = os.fstat(self._descriptor).st_size
            try:
                if os.write(self._descriptor, line + b"\n") != len(line) + 1:
                    raise OSError(0, "the disk took only a part")
                os.fdatasync(self._descriptor)
            except OSError:
                os.ftruncate(self._descriptor, size)
                raise
        self._lines += 1

    def _whole(self) -> bool:
        """Whether the file ends with a whole line."""
        try:
            with self._path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read() == b"\n"
        except OSError:
            return False

    def _read(self) -> None:
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        for line in lines:
            fields = facts_in(line)
            self._lines += bool(line)
            if "url" in fields:
                self.url, self.identity = str(fields["url"]), str(fields.get("id", ""))
            elif "file" in fields:
                name = str(fields["file"])
                try:
                    here, sent = Here(*fields["here"]), Measured(*fields["sent"])
                    self._uploads[name] = Upload(Stage(fields["stage"]), here, sent, fields.get("token", ""))
                except (KeyError, TypeError, ValueError):  # ``forget``
                    self._uploads.pop(name, None)


def _packed(name: str, known: Upload) -> bytes:
    fields = {"file": name, "stage": known.stage, "here": tuple(known.here), "sent": tuple(known.measured)}
    return orjson.dumps(fields | ({"token": known.token} if known.token else {}))
