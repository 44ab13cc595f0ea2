"""A frontier that was made again from the archives of all workers: one process holds everything in it."""

from __future__ import annotations

import shutil
from contextlib import closing, suppress
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.fleet.moves import journal
from crawlerproject.stores.atomic_files import storage_errors, sync_folder
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import ALONE, alone, read_plan, write_plan
from crawlerproject.stores.rocks.frontier_folder import moved_aside, put_in_place


def adopt_recovered(crawl: CrawlDir) -> list[Path]:
    """Make a frontier that ``scrapy recover`` has made whole the crawl's; where old ones are kept now.

    Does nothing when there is none. Those of workers are kept in their folders, and a move that was under way is over.
    May be done again after a crash at any point of it. The crawl's lock is held. Raises OperatorError, StorageError.
    """
    if not crawl.frontier_recovered.is_dir():
        return []
    plan = read_plan(crawl)
    holders = [CrawlDir(crawl / worker) for worker in sorted(_workers(crawl) - {ALONE})]
    kept = [old for folder in holders if folder.has_frontier() and (old := moved_aside(folder)) is not None]
    if journal.under_way(crawl):
        with storage_errors(crawl.fleet_moving):
            shutil.rmtree(crawl.fleet_moving)
            sync_folder(crawl)
    if plan is not None and not plan.alone:
        write_plan(crawl, alone(plan.partitions))
    if (own := put_in_place(crawl)) is not None:
        kept.append(own)
    return kept


def _workers(crawl: CrawlDir) -> set[str]:
    """Those that may have frontiers: by the plan, and by a move that is under way."""
    plan = read_plan(crawl)
    found = set(plan.workers) if plan is not None else set[str]()
    if journal.under_way(crawl):
        with suppress(OperatorError), closing(journal.Journal(crawl)) as written:
            shift = written.shift
            found |= {*shift.before.workers, *shift.after.workers}
    return found
