"""What of a crawl's folder goes to another place: what is closed, under the name that it has in the folder.

A closed WARC file goes with its indexes once it has both, its CDXJ file last: where that is, the others are. Of the
request log go the days that are over, as they are compressed; today's when the crawl has ended, compressed for it. The
copies of robots.txt, each a file too small to go alone, go packed: ``log/robots-TIME.tar.gz`` there, unpacked in
``log/``, gives ``log/robots/`` again. Each copy is in exactly one pack: which ones were packed is kept as 8 bytes a
copy, and of packs that still wait it is read from themselves.
"""

from __future__ import annotations

import shutil
import tarfile
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from crawlerproject.rules.archive.uploads import Here
from crawlerproject.stores.atomic_files import new_file, replace_file, storage_errors, whole_file
from crawlerproject.stores.crawl_dir import CrawlDir, stem_of
from crawlerproject.stores.index.parquet import ParquetFiles
from crawlerproject.stores.logs.request_log import compress_into, day_of
from crawlerproject.stores.uploads.upload_target import here

DAY_SECONDS = 86400
_SUFFIX = ".tar.gz"
_PACKED = "robots.packed"
_MOST_COPIES = 100_000
"""In one pack: some 100 MB of the usual files."""


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
        index = folder.index / f"{stem_of(warc.name)}.cdxj"
        if index.exists():
            yield Group(_sources(folder, [*parquet.parts_of(warc.name), warc, index]), removable=True)
    yield Group(list(_log(folder, ended=ended)))
    yield Group([source._replace(passing=True) for source in _sources(folder.upload_staged, packs(folder))])


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


def packs(folder: CrawlDir) -> list[Path]:
    """The packs that wait to be sent, oldest first."""
    return sorted((folder.upload_staged / folder.log.name).glob(f"robots-*{_SUFFIX}"))


def pack(folder: CrawlDir, now: float) -> list[Path]:
    """Pack the copies that are in no pack yet; the new packs. Raises StorageError."""
    known = _known(folder)
    homes = (home for shard in sorted(folder.robots_copies.glob("*/")) for home in sorted(shard.glob("*/")))
    # One that is just being written has another suffix.
    copies = (path for home in homes if not home.is_symlink() for path in sorted(home.glob("*.txt")))
    waiting = (path for path in copies if not path.is_symlink() and _print(folder, path) not in known)
    made: list[Path] = []
    while some := list(islice(waiting, _MOST_COPIES)):
        made.append(_write(folder, some, now + len(made)))
    _known(folder)
    return made


def _write(folder: CrawlDir, copies: list[Path], now: float) -> Path:
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%S%f")[:18]
    target = folder.upload_staged / folder.log.name / f"robots-{moment}Z{_SUFFIX}"
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as file, tarfile.open(fileobj=file, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
            for path in copies:
                tar.add(path, arcname=str(path.relative_to(folder.log)), recursive=False)
    return target


def _known(folder: CrawlDir) -> set[int]:
    """The prints of all copies that are in a pack, with those of packs that a death left unrecorded; recorded now."""
    record = folder.upload_staged / _PACKED
    prints = array("Q")
    if record.exists():
        prints.frombytes(record.read_bytes())
    known = set(prints)
    before = len(known)
    for path in packs(folder):
        with tarfile.open(path) as tar:
            known.update(xxh3_64_intdigest(member.name.encode()) for member in tar)
    if len(known) > before:
        replace_file(record, array("Q", sorted(known)).tobytes())
    return known


def _print(folder: CrawlDir, path: Path) -> int:
    return xxh3_64_intdigest(str(path.relative_to(folder.log)).encode())
