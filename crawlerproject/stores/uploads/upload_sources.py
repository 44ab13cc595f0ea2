"""What of a crawl's folder goes to another place: what is closed, under the name that it has in the folder.

A closed WARC file goes with its indexes once it has both, its CDXJ file last: where that is, the others are. Of the
request log go the days that are over, as they are compressed; today's when the crawl has ended, compressed for it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from crawlerproject.rules.archive.uploads import Here
from crawlerproject.stores.atomic_files import new_file
from crawlerproject.stores.crawl_dir import CrawlDir, stem_of
from crawlerproject.stores.index.index_files import ParquetFiles
from crawlerproject.stores.logs.request_log import compress_into, day_of
from crawlerproject.stores.operator_files.withdrawn_list import list_of
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
        index = folder.index / f"{stem_of(warc.name)}.cdxj"
        if index.exists():
            yield Group(_sources(folder, [*parquet.parts_of(warc.name), warc, index]), removable=True)
    listed = list_of(folder)  # of a worker's folder that of its crawl
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
