"""A worker's part of a local fleet: what it reports to its supervisor, and how it knows that the crawl is done."""

from __future__ import annotations

import asyncio

from crawlerproject.errors import StorageError
from crawlerproject.fleet.local.agreement import WorkerReport
from crawlerproject.fleet.local.counts import Counts
from crawlerproject.fleet.local.questions import REPORT
from crawlerproject.fleet.local.supervisor_link import SupervisorLink


class WorkerReports:
    """For one event loop."""

    def __init__(self, link: SupervisorLink) -> None:
        self.link = link
        self.done = False  # nothing is left to do in the whole crawl
        self._activity = 0
        self._asking: asyncio.Task[None] | None = None

    def report(self, unread: list[str], counts: Counts, *, quiet: bool) -> None:
        """Say how it stands, unless the answer to the report before is still to come: a supervisor may be stopped.

        ``quiet``: there is nothing to do, and nothing came since the call before. ``unread``: as in ``WorkerReport``.
        """
        self._activity += not quiet
        if self._asking is None:
            report = WorkerReport(quiet, self._activity, unread)
            self._asking = asyncio.get_running_loop().create_task(self._ask(report, counts))

    async def _ask(self, report: WorkerReport, counts: Counts) -> None:
        try:
            self.done = await self.link.ask(REPORT, *report, list(counts)) or self.done
        except StorageError:
            return  # the commit loop sees that the supervisor is gone
        finally:
            self._asking = None

    def close(self) -> None:
        """Ask no more; the addresses that were reserved rest and are free."""
        if self._asking is not None:
            self._asking.cancel()
        self.link.close()
