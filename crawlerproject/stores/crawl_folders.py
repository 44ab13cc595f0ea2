"""Where one crawl has its archives, indexes and logs: in its own folder, in those of its workers, or in both.

What is archived never moves. So a crawl that was a fleet and is one process again, or that has fewer workers now, has
files in folders in which nothing runs any more. Which folder holds which partitions of a crawl on one machine stands in
``fleet.json`` in the crawl's folder; a crawl of one process has no such file: its own folder holds everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import orjson

from crawlerproject.errors import OperatorError
from crawlerproject.rules.fleet_shares import partition_of, partitions_wanted
from crawlerproject.stores.atomic_files import SECRET_FILE, replace_file
from crawlerproject.stores.crawl_dir import ARCHIVE_SUFFIXES, CrawlDir

ALONE = ""
"""Holds partitions in the crawl's own folder: the process of ``scrapy crawl``."""
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """Partitions and their holders. ``partitions`` never changes once the file is written."""

    workers: tuple[str, ...]  # names of folders in the crawl's; ALONE: that folder itself
    holders: tuple[int, ...]  # by partition: place in ``workers``

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self.holders)

    @property
    def alone(self) -> bool:
        """Whether one process in the crawl's own folder holds everything."""
        return self.workers == (ALONE,)

    def holder(self, host: str) -> str:
        """The worker that decides about a host key."""
        return self.workers[self.holders[partition_of(host, len(self.holders))]]

    def held(self, worker: str) -> frozenset[int]:
        """The partitions of a worker."""
        place = self.workers.index(worker)
        return frozenset(number for number, holder in enumerate(self.holders) if holder == place)

    def folders(self, crawl: CrawlDir) -> list[CrawlDir]:
        """Those of the workers, in the order of ``workers``."""
        return [CrawlDir(crawl / worker) for worker in self.workers]


def alone(partitions: int) -> FleetPlan:
    """The plan of a crawl of one process."""
    return FleetPlan((ALONE,), (0,) * partitions)


def shared_out(plan: FleetPlan, workers: Sequence[str]) -> FleetPlan:
    """The same partitions in the hands of these workers, each with its share; as few as possible change hands.

    The order of ``workers`` decides who has one more. Raises ValueError without workers, or with one twice.
    """
    if not workers or len(set(workers)) != len(workers):
        raise ValueError("workers must be named, each once")
    names = tuple(workers)
    room = [partitions_wanted(plan.partitions, len(names), rank) for rank in range(len(names))]
    place = {name: number for number, name in enumerate(names)}
    holders, homeless = [-1] * plan.partitions, []
    for partition, holder in enumerate(plan.holders):
        there = place.get(plan.workers[holder], -1)
        if there >= 0 and room[there]:
            room[there] -= 1
            holders[partition] = there
        else:
            homeless.append(partition)
    free = [number for number, left in enumerate(room) for _ in range(left)]
    for partition, there in zip(homeless, free, strict=True):
        holders[partition] = there
    return FleetPlan(names, tuple(holders))


def read_plan(crawl: CrawlDir) -> FleetPlan | None:
    """The plan that counts; None for a crawl that one process has always had. Raises OperatorError."""
    try:
        written = orjson.loads(crawl.fleet_plan.read_bytes())
        if written["format"] != _FORMAT:
            raise OperatorError(
                f"{crawl.fleet_plan} has format {written['format']}; a newer version made it: use that."
            )
        plan = FleetPlan(tuple(written["workers"]), tuple(written["holders"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OperatorError(f"{crawl.fleet_plan} cannot be read ({error}); restore it from a backup.") from error
    if not plan.holders or any(not 0 <= holder < len(plan.workers) for holder in plan.holders):
        raise OperatorError(f"{crawl.fleet_plan} names holders that are no workers; restore it from a backup.")
    return plan


def is_alone(crawl: CrawlDir) -> bool:
    """Whether one process has everything in the crawl's own folder, and no move is under way. Raises OperatorError."""
    plan = read_plan(crawl)
    return (plan is None or plan.alone) and not crawl.fleet_moving.is_dir()


def write_plan(crawl: CrawlDir, plan: FleetPlan) -> None:
    """Put the plan in place, whole and durable. StorageError when the disk refuses."""
    facts = {"format": _FORMAT, "workers": plan.workers, "holders": plan.holders}
    replace_file(crawl.fleet_plan, orjson.dumps(facts), SECRET_FILE)


# --- where its files are ---------------------------------------------------------------------------


def workers_of(crawl: CrawlDir) -> list[CrawlDir]:
    """The folders in ``crawl`` of its workers, those of former ones included, by name. Raises OperatorError.

    A folder below that of a crawl of one process may as well be another crawl's.
    """
    plan = read_plan(crawl)
    started = crawl.started_below()
    if plan is None and crawl.run.exists():
        return [folder for folder in started if folder.worker.exists()]
    planned = [] if plan is None else [CrawlDir(crawl / name) for name in plan.workers if name != ALONE]
    return sorted({*started, *(folder for folder in planned if folder.is_dir())})


class Archives(NamedTuple):
    """What a crawl has archived, wherever that lies. What is made of all of it goes into the crawl's own folder."""

    crawl: CrawlDir
    folders: list[CrawlDir]  # every one with something of the crawl, its own first
    elsewhere: tuple[Path, ...] = ()  # what was removed here, since another place has it

    def closed_warcs(self) -> list[Path]:
        """The WARC files that are not written any more, by folder and in the order of writing; then those elsewhere."""
        there = [path for path in self.elsewhere if path.name.endswith(ARCHIVE_SUFFIXES)]
        return [*(warc for folder in self.folders for warc in folder.closed_warcs()), *there]

    def open_warcs(self) -> list[Path]:
        """Those that are being written, or that a process left open when it died."""
        return [warc for folder in self.folders for warc in folder.open_warcs()]

    def has_archive(self) -> bool:
        """Whether something was ever archived."""
        return any(folder.has_archive() for folder in self.folders)

    def to_lock(self) -> list[CrawlDir]:
        """Whose locks keep every process of the crawl away."""
        return list(dict.fromkeys([self.crawl, *self.folders]))


def refuse_moving(crawl: CrawlDir) -> None:
    """Raise OperatorError while hosts are on their way from worker to worker: no folder has all of them then."""
    if crawl.fleet_moving.is_dir():
        raise OperatorError(
            f"The hosts of the crawl in {crawl} are on their way to other workers; look again when scrapy fleet, or "
            "scrapy crawl, has begun to crawl (the same command finishes a move that was interrupted)."
        )


def missing_workers(crawl: CrawlDir) -> list[CrawlDir]:
    """The folders of workers that are not there any more, or are empty as where a disk is not mounted.

    The plan is written when each has its lock. What others gave them is nowhere else. Raises OperatorError.
    """
    plan = read_plan(crawl)
    folders = [] if plan is None or plan.alone else plan.folders(crawl)
    return [folder for folder in folders if not (folder.has_frontier() or folder.lock_file.exists())]


def refuse_missing(crawl: CrawlDir) -> None:
    """Raise OperatorError where a worker's folder is missing: it would begin anew, without what others gave it."""
    if missing := missing_workers(crawl):
        raise OperatorError(
            f"{missing[0]} is missing, and with it a worker's part of the crawl: put it back (its disk may not be "
            f"mounted). If it is lost, scrapy recover {crawl} makes the frontier again from what the others archived."
        )


def refuse_part(folder: CrawlDir) -> None:
    """Raise OperatorError for the folder of one of several workers: what it has is a part of the crawl."""
    whole = CrawlDir(folder.parent)
    if folder.worker.exists() or ((plan := read_plan(whole)) is not None and folder.name in plan.workers):
        raise OperatorError(f"{folder} is the folder of one worker; name that of its crawl: {whole}.")


def refuse_moved(crawl: CrawlDir, place: str = "") -> None:
    """Raise OperatorError when the crawl goes on elsewhere, but for ``place``: both would ask for the same pages."""
    if not crawl.moved.exists() or (there := crawl.moved.read_text().strip()) == place:
        return
    raise OperatorError(
        f"The crawl in {crawl} was copied to {there} and goes on there; start it with that STATE_URL, or copy it back. "
        f"If that copy is given up, remove {crawl.moved}."
    )


def archives_of(crawl: CrawlDir) -> Archives:
    """What the crawl in this folder has archived. Raises OperatorError."""
    folders = folders_of(crawl)
    return Archives(crawl, folders, tuple(path for folder in folders for path in removed_from(folder)))


def removed_from(folder: CrawlDir) -> list[Path]:
    """What a folder has no more, since another place has confirmed it: the files there."""
    if not (folder.is_here and folder.has_removed()):
        return []
    from crawlerproject.stores.uploads.distant import only_there  # no other crawl's folder needs it

    return only_there(folder)


def folders_of(crawl: CrawlDir) -> list[CrawlDir]:
    """Every folder with something of the crawl, its own first. Raises OperatorError."""
    if not crawl.is_here:
        return _folders_there(crawl)
    workers = workers_of(crawl)
    own = not workers or crawl.log.is_dir() or crawl.warc.is_dir()
    return [*([crawl] if own else []), *workers]


def _folders_there(crawl: CrawlDir) -> list[CrawlDir]:
    """Of a crawl at another place: its own folder, and those of workers below their names, where an archive is."""
    own = {crawl.warc.name, crawl.index.name, crawl.log.name}
    below = [CrawlDir(path) for path in crawl.iterdir() if path.name not in own and path.is_dir()]
    return [folder for folder in (crawl, *below) if folder.has_archive()]
