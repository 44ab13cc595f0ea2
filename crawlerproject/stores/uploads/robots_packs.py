"""Copies of robots.txt on their way to another place: a file each is too small to go alone, so many go in one.

``log/robots-TIME.tar.gz`` there, unpacked in ``log/``, gives ``log/robots/`` again. Each copy is in exactly one pack:
which ones were packed is kept as 8 bytes a copy, and of packs that still wait it is read from themselves.
"""

from __future__ import annotations

import os
import tarfile
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from xxhash import xxh3_64_intdigest

from crawlerproject.stores.atomic_files import new_file, replace_file, storage_errors, sync_folder
from crawlerproject.stores.crawl_dir import CrawlDir

DAY_SECONDS = 86400
_SUFFIX = ".tar.gz"
_PACKED = "robots.packed"
_MOST_COPIES = 100_000
"""In one pack: some 100 MB of the usual files."""


def packs(folder: CrawlDir) -> list[Path]:
    """The packs that wait to be sent, oldest first."""
    return sorted((folder.upload_staged / folder.log.name).glob(f"robots-*{_SUFFIX}"))


def pack(folder: CrawlDir, now: float) -> list[Path]:
    """Pack the copies that are in no pack yet; the new packs. Raises StorageError."""
    known = _known(folder)
    made: list[Path] = []
    waiting: list[Path] = []
    for path in _copies(folder.robots_copies):
        if _print(folder, path) not in known:
            waiting.append(path)
        if len(waiting) == _MOST_COPIES:
            made.append(_write(folder, waiting, now + len(made)))
            waiting = []
    if waiting:
        made.append(_write(folder, waiting, now + len(made)))
    _known(folder)
    return made


def _copies(root: Path) -> Iterator[Path]:
    """Every copy; one that is just being written has another suffix."""
    for shard in sorted(root.glob("*/")):
        for home in sorted(shard.glob("*/")):
            if not home.is_symlink():
                yield from (path for path in sorted(home.glob("*.txt")) if not path.is_symlink())


def _write(folder: CrawlDir, copies: list[Path], now: float) -> Path:
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%S%f")[:18]
    target = folder.upload_staged / folder.log.name / f"robots-{moment}Z{_SUFFIX}"
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        with new_file(part) as file:
            with tarfile.open(fileobj=file, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
                for path in copies:
                    tar.add(path, arcname=str(path.relative_to(folder.log)), recursive=False)
            file.flush()
            os.fsync(file.fileno())
        part.rename(target)
        sync_folder(target.parent)
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
