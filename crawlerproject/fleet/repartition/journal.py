"""How far a move of partitions is, in a database of its own: ``fleet.moving`` in the crawl's folder.

It is there from the moment when the first row may be written elsewhere until the last one is removed.
"""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import orjson
from rocksdict import Options, Rdict, RdictIter

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.stores.atomic_files import storage_errors, sync_path
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import FleetPlan
from crawlerproject.stores.rocks.rocks_tables import MIB, make_folder

_FORMAT = 1
_MOVE, _PHASE, _CURSOR = b"move", b"phase", b"cursor"
_PLACES, _FACTS = "places", "facts"
_UNFINISHED_SUFFIX = ".part"
_BUFFER_BYTES = 16 * MIB

Partitions = tuple[int, ...]


class Phase(StrEnum):
    """What is being done; each may be done again from its beginning."""

    HANDING = "handing"  # whole frontiers get the folders of other workers
    GATHERING = "gathering"  # what becomes of facts of the crawl is written here
    COPYING = "copying"  # rows are put into the frontiers of their new holders
    SWITCHING = "switching"  # so are the facts; then the new plan is written
    CLEARING = "clearing"  # rows are removed where they were


class PlanChange(NamedTuple):
    """Who holds what before and after; ``before`` names frontiers by the folders that they are handed to."""

    before: FleetPlan
    after: FleetPlan
    handed: tuple[tuple[str, str], ...]  # worker whose frontier becomes another one's, as it is

    def giving(self) -> set[str]:
        """The workers with partitions that others will hold."""
        return {old for old, new in self._holders() if old != new}

    def givers_of(self, worker: str) -> list[str]:
        """The workers, this one included, of whose hosts it will have any."""
        return sorted({old for old, new in self._holders() if new == worker})

    def _holders(self) -> Iterator[tuple[str, str]]:
        """Of each partition, before and after."""
        before, after = self.before, self.after
        pairs = zip(before.holders, after.holders, strict=True)
        return ((before.workers[old], after.workers[new]) for old, new in pairs)


class Cursor(NamedTuple):
    """Behind which row of which worker's frontier the copying goes on."""

    worker: str
    step: int  # place in STEPS
    behind: bytes


class Journal:
    """Open until ``close``; ``end`` removes it."""

    def __init__(self, crawl: CrawlDir) -> None:
        """Open the one of a move that is under way. Raises OperatorError."""
        self._crawl = crawl
        self._database: Rdict | None = _opened(crawl.fleet_moving)
        self._places, self._facts = map(self._database.get_column_family, (_PLACES, _FACTS))
        written = orjson.loads(self._get(_MOVE))
        if written["format"] != _FORMAT:
            self.close()
            raise OperatorError(f"A newer version began the move of partitions in {crawl.fleet_moving}; use that.")
        before, after = (FleetPlan(tuple(plan[0]), tuple(plan[1])) for plan in (written["before"], written["after"]))
        self.shift = PlanChange(before, after, tuple((old, new) for old, new in written["handed"]))

    # --- how far it is --------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """What is being done."""
        return Phase(self._get(_PHASE).decode())

    def enter(self, phase: Phase) -> None:
        """The one before is done and safe from a power loss; so is this word of it."""
        self._put([(None, _PHASE, phase.encode())])
        self.sync()

    @property
    def cursor(self) -> Cursor | None:
        """Where copying goes on; None at the beginning."""
        packed = self._get(_CURSOR)
        if not packed:
            return None
        worker, step, behind = packed.split(b"\0", 2)
        return Cursor(worker.decode(), int(step), behind)

    def reached(self, cursor: Cursor) -> None:
        """All rows up to this one are safe where they go to."""
        self._put([(None, _CURSOR, b"\0".join((cursor.worker.encode(), b"%d" % cursor.step, cursor.behind)))])
        self.sync()

    # --- where hosts are ------------------------------------------------------------------------

    def add_places(self, found: Iterable[tuple[bytes, Partitions]]) -> None:
        """Partitions of hosts, by the hash of their names, and of pages that are not where their hosts are, by key."""
        rows = []
        for key, partitions in found:
            known = self.places_of(key)
            if not set(partitions) <= set(known):
                rows.append((self._places, key, array("H", sorted({*known, *partitions})).tobytes()))
        self._put(rows)

    def places_of(self, key: bytes) -> Partitions:
        """The partitions of one hash or page; none when it is not known."""
        return partitions_of(self._places.get(key))

    def places(self) -> RdictIter:
        """An iterator over all of them, in order of key."""
        return self._places.iter()

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
            self._places.close()
            self._facts.close()
            database.close()

    def end(self) -> None:
        """The move is done: nothing is left of this."""
        self.close()
        gone = _unfinished(self._crawl)
        with storage_errors(gone):
            shutil.rmtree(gone, ignore_errors=True)
            self._crawl.fleet_moving.rename(gone)
            sync_path(self._crawl)
            shutil.rmtree(gone, ignore_errors=True)


def under_way(crawl: CrawlDir) -> bool:
    """Whether a move was begun and is not done."""
    return crawl.fleet_moving.is_dir()


def begin(crawl: CrawlDir, shift: PlanChange) -> Journal:
    """Write down durably what will be moved: from now on it is under way. Raises OperatorError, StorageError."""
    made = _unfinished(crawl)
    shutil.rmtree(made, ignore_errors=True)
    database = _opened(made)
    facts = {
        "format": _FORMAT,
        "before": (shift.before.workers, shift.before.holders),
        "after": (shift.after.workers, shift.after.holders),
        "handed": shift.handed,
    }
    try:
        database.put(_MOVE, orjson.dumps(facts))
        database.put(_PHASE, Phase.HANDING.encode())
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


def partitions_of(packed: bytes | None) -> Partitions:
    """As ``Journal.places_of``, of an iterator's value."""
    return tuple(array("H", packed)) if packed else ()


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
