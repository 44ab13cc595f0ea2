"""Which folder holds which partitions of a crawl on one machine: ``fleet.json`` in the crawl's folder.

A crawl of one process has no such file: its own folder holds everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from crawlerproject.errors import OperatorError
from crawlerproject.rules.fleet_shares import partition_of, partitions_wanted
from crawlerproject.stores.atomic_files import SECRET_FILE, replace_file
from crawlerproject.stores.crawl_dir import CrawlDir

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


def write_plan(crawl: CrawlDir, plan: FleetPlan) -> None:
    """Put the plan in place, whole and durable. StorageError when the disk refuses."""
    facts = {"format": _FORMAT, "workers": plan.workers, "holders": plan.holders}
    replace_file(crawl.fleet_plan, orjson.dumps(facts), SECRET_FILE)
