"""How far a move of partitions is, in a database of its own: ``fleet.moving`` in the crawl's folder.

It is there from the moment when the first row may be written elsewhere until the last one is removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import orjson
from rocksdict import Options, Rdict

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.stores.atomic_files import storage_errors, sync_path
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import FleetPlan
from crawlerproject.stores.rocks.rocks_tables import MIB, make_folder

_FORMAT = 2
# Of versions up to 1.7: which rows are copied stands there in another way, so all are copied again.
_BEFORE_PARTITIONS = 1
_MOVE, _PHASE, _COPIED = b"move", b"phase", b"copied/"
_PLACES, _FACTS = "places", "facts"  # the former is of format 1: all tables of a database must be opened
_UNFINISHED_SUFFIX = ".part"
_BUFFER_BYTES = 16 * MIB


class Phase(StrEnum):
    """What is being done; each may be done again from its beginning."""

    RENAMING = "handing"  # whole frontiers get the folders of other workers
    GATHERING = "gathering"  # what becomes of facts of the crawl is written here; givers list their hosts
    COPYING = "copying"  # partitions are put into the frontiers of their new holders
    SWITCHING = "switching"  # so are the facts; then the new plan is written
    CLEARING = "clearing"  # rows are removed where they were


class PlanChange(NamedTuple):
    """Who holds what before and after; ``before`` names frontiers by the folders that they get."""

    before: FleetPlan
    after: FleetPlan
    renamed: tuple[tuple[str, str], ...]  # worker whose frontier becomes another one's, as it is

    def moving(self) -> dict[str, dict[int, str]]:
        """By worker, its partitions that others will hold, each with the next holder."""
        found: dict[str, dict[int, str]] = {}
        for partition, (old, new) in enumerate(self._holders()):
            if old != new:
                found.setdefault(old, {})[partition] = new
        return found

    def givers_of(self, worker: str) -> list[str]:
        """The workers, this one included, of whose hosts it will have any."""
        return sorted({old for old, new in self._holders() if new == worker})

    def _holders(self) -> Iterator[tuple[str, str]]:
        """Of each partition, before and after."""
        before, after = self.before, self.after
        pairs = zip(before.holders, after.holders, strict=True)
        return ((before.workers[old], after.workers[new]) for old, new in pairs)


class Journal:
    """Open until ``close``; ``end`` removes it."""

    def __init__(self, crawl: CrawlDir) -> None:
        """Open the one of a move that is under way. Raises OperatorError."""
        self._crawl = crawl
        self._database: Rdict | None = _opened(crawl.fleet_moving)
        self._facts = self._database.get_column_family(_FACTS)
        written = orjson.loads(self._get(_MOVE))
        self.of_rows = written["format"] == _BEFORE_PARTITIONS
        if written["format"] > _FORMAT:
            self.close()
            raise OperatorError(f"A newer version began the move of partitions in {crawl.fleet_moving}; use that.")
        before, after = (FleetPlan(tuple(plan[0]), tuple(plan[1])) for plan in (written["before"], written["after"]))
        self.change = PlanChange(before, after, tuple((old, new) for old, new in written["handed"]))

    # --- how far it is --------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """What is being done."""
        phase = Phase(self._get(_PHASE).decode())
        return Phase.GATHERING if self.of_rows and phase is Phase.COPYING else phase

    def enter(self, phase: Phase) -> None:
        """The one before is done and safe from a power loss; so is this note of it."""
        self._put([(None, _PHASE, phase.encode())])
        self.sync()

    def is_copied(self, partition: int) -> bool:
        """Whether all rows of a partition are safe where they go to."""
        return bool(self._get(_COPIED + b"%d" % partition))

    def copied(self, partition: int) -> None:
        """They are."""
        self._put([(None, _COPIED + b"%d" % partition, b"1")])

    # --- facts of the crawl ---------------------------------------------------------------------

    def put_facts(self, worker: str, facts: Iterable[tuple[bytes, bytes]]) -> None:
        """What a worker's frontier will hold; in place of what was put before under these names."""
        self._put([(self._facts, worker.encode() + b"\0" + name, value) for name, value in facts])

    def facts_of(self, worker: str) -> Iterator[tuple[bytes, bytes]]:
        """All of it, in order of name."""
        prefix = worker.encode() + b"\0"
        found = self._facts.iter()
        found.seek(prefix)
        while found.valid() and (key := found.key()).startswith(prefix):
            yield key.removeprefix(prefix), found.value()
            found.next()
        found.status()

    # --- the database ---------------------------------------------------------------------------

    def _get(self, key: bytes) -> bytes:
        assert self._database is not None
        return self._database.get(key) or b""

    def _put(self, rows: Iterable[tuple[Rdict | None, bytes, bytes]]) -> None:
        assert self._database is not None
        try:
            for table, key, value in rows:
                (table or self._database).put(key, value)
        except Exception as error:  # rocksdict raises no narrower class
            raise StorageError(f"{self._crawl.fleet_moving} cannot be written: {error}") from error

    def sync(self) -> None:
        """Make everything written so far survive a power loss. StorageError."""
        assert self._database is not None
        try:
            self._database.flush_wal(sync=True)
        except Exception as error:
            raise StorageError(f"{self._crawl.fleet_moving} cannot be made durable: {error}") from error

    def close(self) -> None:
        """Let go; the move goes on another time. Harmless when done twice."""
        if (database := self._database) is not None:
            self._database = None
            self._facts.close()
            database.close()

    def end(self) -> None:
        """The move is done: nothing is left of this."""
        self.close()
        removed = _unfinished(self._crawl)
        with storage_errors(removed):
            shutil.rmtree(removed, ignore_errors=True)
            self._crawl.fleet_moving.rename(removed)
            sync_path(self._crawl)
            shutil.rmtree(removed, ignore_errors=True)


def under_way(crawl: CrawlDir) -> bool:
    """Whether a move was begun and is not done."""
    return crawl.fleet_moving.is_dir()


def begin(crawl: CrawlDir, change: PlanChange) -> Journal:
    """Write down durably what will be moved: from now on it is under way. Raises OperatorError, StorageError."""
    made = _unfinished(crawl)
    shutil.rmtree(made, ignore_errors=True)
    database = _opened(made)
    facts = {
        "format": _FORMAT,
        "before": (change.before.workers, change.before.holders),
        "after": (change.after.workers, change.after.holders),
        "handed": change.renamed,
    }
    try:
        database.put(_MOVE, orjson.dumps(facts))
        database.put(_PHASE, Phase.RENAMING.encode())
        database.flush_wal(sync=True)
    except Exception as error:  # rocksdict raises no narrower class
        raise StorageError(f"{made} cannot be written: {error}") from error
    finally:
        database.close()
        del database
    with storage_errors(made):
        sync_path(made)
        made.rename(crawl.fleet_moving)
        sync_path(crawl)
    return Journal(crawl)


def _unfinished(crawl: CrawlDir) -> Path:
    return crawl.fleet_moving.with_name(crawl.fleet_moving.name + _UNFINISHED_SUFFIX)


def _opened(folder: Path) -> Rdict:
    make_folder(str(folder))
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_write_buffer_size(_BUFFER_BYTES)
    try:
        return Rdict(str(folder), options, {_PLACES: options, _FACTS: options})
    except Exception as error:
        raise OperatorError(f"{folder} cannot be opened ({error}); it says which partitions move.") from error
