"""The start of a local fleet: the crawl's folder is locked, an earlier fleet's workers have ended, the plan is made."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from types import TracebackType

from crawlerproject.errors import OperatorError
from crawlerproject.fleet.repartition.repartition import move
from crawlerproject.runtime.unix_sockets import connected
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock
from crawlerproject.stores.crawl_folders import FleetPlan, is_alone, read_plan, refuse_moved

logger = logging.getLogger(__name__)

LOCAL_NAME = "worker"
"""Workers are called worker-1, worker-2 …"""
_LOOK_SECONDS = 0.2
# A worker that was started just before its supervisor died has the lock of the crawl, and that of its own folder within
# this time; a busy machine may take longer, and the operator starts again.
_STARTING_SECONDS = 5.0


class WholeCrawl:
    """Owns the crawl's folder. The lock's descriptor goes to every worker, so it holds until the last one has ended."""

    def __init__(self, folder: CrawlDir, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait for what a killed supervisor left running. Raises OperatorError: another process is at work here."""
        self.folder = folder
        self._sleep = sleep
        self.lock = self._locked()
        self.is_new = False

    def __enter__(self) -> WholeCrawl:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.lock)

    def plan(self, name: str, workers: int | None, partitions: int) -> FleetPlan:
        """Who holds what in this run, durable in the folder; ``workers`` None: as before, or one a core.

        Where others had the hosts before, these move first. ``partitions``: how many a new crawl has.
        Raises OperatorError, StorageError.
        """
        refuse_moved(self.folder)
        folder, before = self.folder, read_plan(self.folder)
        self.is_new = is_alone(folder) and not folder.has_frontier()
        had = before.workers if before is not None and not before.alone else ()
        count = workers or len(had) or os.cpu_count() or 1
        if not name and count == len(had):
            return move(folder, had, logger.info, partitions)
        names = [f"{name or LOCAL_NAME}-{number}" for number in range(1, count + 1)]
        return move(folder, names, logger.info, partitions)

    def _locked(self) -> int:
        said, left = False, _STARTING_SECONDS
        while True:
            try:
                return take_lock(self.folder)
            except OperatorError:
                if self._supervised() or not self.folder.locked():
                    raise
                plan = read_plan(self.folder)
                folders = plan.folders(self.folder) if plan is not None and not plan.alone else []
                at_work = [folder.name for folder in folders if folder.locked()]
                if not at_work and left <= 0:
                    raise
            if at_work and not said:
                said = True
                logger.warning("Waiting for workers of an earlier start to end: %s", ", ".join(at_work))
            left -= _LOOK_SECONDS
            self._sleep(_LOOK_SECONDS)

    def _supervised(self) -> bool:
        """Whether another supervisor is at work here."""
        try:
            connected(self.folder.supervisor_socket).close()
        except OSError:
            return False
        return True
