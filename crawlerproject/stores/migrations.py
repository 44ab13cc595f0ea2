"""Brings a folder from the formats that an earlier version wrote to today's, one migration after the other.

A migration is a list of moves, computed from what lies there: after a kill at any point the same call does the rest.
It is recorded in ``format.json`` when all of it is durable, and not before. Nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import orjson

from crawlerproject.rules.printable import counted, human_bytes
from crawlerproject.stores.archive.recovery import TORN_SUFFIX
from crawlerproject.stores.atomic_files import replace_file, storage_errors, sync_path, unused
from crawlerproject.stores.crawl_dir import FORMATS, CrawlDir, read_facts

Say = Callable[[str], None]


class Move(NamedTuple):
    """A file that gets another place."""

    source: Path
    into: Path  # the folder
    size_bytes: int


class Migration(NamedTuple):
    """One step of a part's version."""

    part: str
    version: int  # that it leads to
    what: str
    moves: Callable[[CrawlDir], list[Move]]  # what is left to be done; changes nothing


def _tails(crawl: CrawlDir) -> list[Move]:
    return [Move(path, crawl.torn, path.stat().st_size) for path in sorted(crawl.warc.glob(f"*{TORN_SUFFIX}"))]


MIGRATIONS = (Migration("layout", 2, "tails that a crash left lie apart from the archive", _tails),)
"""In the order in which they are done."""


def pending(crawl: CrawlDir) -> list[Migration]:
    """What a folder has not yet behind it. Nothing of a new folder."""
    written = read_facts(crawl.formats)
    if not written and not crawl.is_begun():
        return []
    return [each for each in MIGRATIONS if _version(written, each.part) < each.version]


def migrate(crawl: CrawlDir, say: Say) -> None:
    """Do what is pending. The caller holds the folder's lock. StorageError; then the next call does the rest."""
    for migration in pending(crawl):
        moves = migration.moves(crawl)
        with storage_errors(crawl):
            for move in moves:
                move.into.mkdir(exist_ok=True)
                move.source.rename(unused(move.into / move.source.name))
            for folder in sorted({folder for move in moves for folder in (move.into, move.source.parent, crawl)}):
                sync_path(folder)
        written = {**read_facts(crawl.formats), migration.part: migration.version}
        replace_file(crawl.formats, orjson.dumps(written))
        if moves:
            say(f"{crawl}: {migration.part} {migration.version}, {migration.what}: {counted(len(moves), 'file')} moved")


def described(crawl: CrawlDir) -> list[str]:
    """Which formats a folder has, in one line; then one for each migration that is left, with what it moves."""
    written = read_facts(crawl.formats)
    versions = ", ".join(f"{part} {written.get(part, 'not recorded')}" for part in FORMATS)
    by = written.get("version", "1.4.0 or earlier" if crawl.is_begun() else "none")
    lines = [f"{crawl}: written by version {by} ({versions})"]
    for migration in pending(crawl):
        moves = migration.moves(crawl)
        size = human_bytes(sum(move.size_bytes for move in moves))
        to = f"{migration.part} {_version(written, migration.part)} to {migration.version}"
        lines.append(f"  {to}: {migration.what}: {counted(len(moves), 'file')} to move, {size}")
    return lines


def _version(written: dict[str, object], part: str) -> int:
    """What is recorded; the first version where nothing is."""
    version = written.get(part)
    return version if isinstance(version, int) else 1
