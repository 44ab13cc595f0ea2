"""The items of a run in parts, so that one that was killed goes on: a part is whole, or not there.

What is read is decided when the run begins, and written down (``plan.json``): the indexes of the WARC files that are
closed then, which never change. So the captures are the same ones in the same order at any time, and the parts that are
there say how many of them are done. A part appears in one rename, when all of its captures have been read and their
items have passed the pipelines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import orjson
from scrapy.exporters import JsonLinesItemExporter

from crawlerproject.errors import OperatorError
from crawlerproject.stores.atomic_files import opened, sync_path, write_whole
from crawlerproject.stores.crawl_dir import lock_or_refuse

PART_CAPTURES = 1000
"""Of a part (ours): some seconds of reading, which a death costs at most."""
_PLAN = "plan.json"
_PART = "items-{:06}.jsonl"
_PARTS = "items-*.jsonl"
_BEGUN = "items.part"


class Plan(NamedTuple):
    """What is read, and how: as it was when the run began."""

    asked: dict[str, Any]  # spider, arguments, callback, every
    indexes: list[Path]
    sizes: list[int]  # of these, in bytes
    part_captures: int


def planned(folder: Path, asked: dict[str, Any], indexes: list[Path], part_captures: int) -> Plan:
    """The plan of a folder, which gets one if it has none. Raises OperatorError when it is of another run."""
    absolute = [path.absolute() for path in indexes]
    plan = Plan(asked, absolute, [path.stat().st_size for path in absolute], part_captures)
    if not (folder / _PLAN).exists():
        if folder.exists() and any(path.suffix != ".part" for path in folder.iterdir()):
            raise OperatorError(f"{folder} holds other files; name a new folder with --out.")
        folder.mkdir(parents=True, exist_ok=True)
        facts = plan._asdict() | {"indexes": list(map(str, absolute))}
        write_whole(folder / _PLAN, orjson.dumps(facts, option=orjson.OPT_INDENT_2))
        return plan
    known = read_plan(folder)
    if known.asked != asked:
        raise OperatorError(f"{folder} holds the items of another spider or with other options; name another --out.")
    sizes = dict(zip(plan.indexes, plan.sizes, strict=True))
    if any(sizes.get(path) != size for path, size in zip(known.indexes, known.sizes, strict=True)):
        raise OperatorError(
            f"What {folder} was read from has changed (an index is lost, or another); name another --out to start over."
        )
    return known


def read_plan(folder: Path) -> Plan:
    """The plan that a folder has. Raises OperatorError when it cannot be read."""
    try:
        found = orjson.loads((folder / _PLAN).read_bytes())
        return Plan(found["asked"], [Path(path) for path in found["indexes"]], found["sizes"], found["part_captures"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise OperatorError(f"{folder / _PLAN} cannot be read; name another --out.") from error


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder that has a plan. Raises OperatorError when one is at work there."""
    with opened(folder / _PLAN, os.O_RDONLY) as descriptor:
        lock_or_refuse(descriptor, f"Into {folder} another process writes; name another --out.")
        yield


class Parts:
    """Writes items; ``take`` gets them when they have passed the pipelines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.plan = read_plan(folder)
        self._done = len(list(folder.glob(_PARTS)))
        self._captures = 0  # of the part that is written
        self._begin()

    def _begin(self) -> None:
        self._file: IO[bytes] = (self._folder / _BEGUN).open("wb")
        self._exporter = JsonLinesItemExporter(cast("Any", self._file), encoding="utf-8")

    @property
    def captures_done(self) -> int:
        """Captures whose items are there."""
        return self._done * self.plan.part_captures

    @property
    def full(self) -> bool:
        """Whether the next capture is of another part."""
        return self._captures >= self.plan.part_captures

    def handed_out(self) -> None:
        """One more capture is read."""
        self._captures += 1

    def take(self, item: Any) -> None:
        """Write an item."""
        self._exporter.export_item(item)

    def finish(self) -> None:
        """All captures of this part have ended: it is whole from now on, and the next one begins."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        (self._folder / _BEGUN).rename(self._folder / _PART.format(self._done))
        sync_path(self._folder)
        self._done += 1
        self._captures = 0
        self._begin()

    def close(self, *, complete: bool) -> None:
        """``complete``: nothing is left to be read."""
        if complete and self._captures:
            self.finish()
        self._file.close()
        (self._folder / _BEGUN).unlink()
