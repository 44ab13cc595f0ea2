"""The folders that the workers of one crawl have on this machine, and what all of them say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from crawlerproject.stores.fleet_plan import FleetPlan

_SUMS = ("pages", "bytes", "errors")
_SUMS_NOW = ("hosts_in_flight", "hosts_ready", "hosts_waiting", "hosts_resting")  # a fleet has none on disk

# Also sums of those at work; a status of an earlier version has none of them.
_SUMS_LATER = ("hosts_in_line", "hosts_looked_up", "queued_urls", "ceiling_per_second")


class WorkerLook(NamedTuple):
    """One worker's folder, how it was started, and what it said last."""

    folder: CrawlDir
    run: dict[str, Any]
    status: dict[str, Any]
    running: bool


def workers_below(folder: CrawlDir, plan: FleetPlan | None = None) -> list[WorkerLook]:
    """The workers whose folders are in ``folder``, by name; those of the ``plan`` where there is one."""
    return list(map(_look, folder.started_below() if plan is None else plan.folders(folder)))


def _look(worker: CrawlDir) -> WorkerLook:
    status = read_facts(worker.status)
    return WorkerLook(worker, read_facts(worker.run), status, worker.running(status))


def together(workers: Sequence[WorkerLook]) -> dict[str, Any]:
    """A status of all of them: what was done is summed up, of loads the heaviest counts."""
    said = [worker.status for worker in workers if worker.status]
    at_work = [worker.status for worker in workers if worker.running]
    if not said:
        return {}
    last = max(said, key=lambda status: status.get("ended") or 0.0)
    progress = {name: sum(status["progress"][name] for status in said) for name in _SUMS}
    progress |= {name: sum(status["progress"][name] for status in at_work) for name in _SUMS_NOW}
    for name in _SUMS_LATER:
        progress[name] = sum(status["progress"].get(name) or 0 for status in at_work)
    progress["paused"] = next((text for status in at_work if (text := status["progress"]["paused"])), "")
    ends = [eta for status in at_work if (eta := status["progress"].get("eta_seconds")) is not None]
    progress["eta_seconds"] = max(ends, default=None)
    counted = [status["totals"] for status in said if "totals" in status]
    totals = {name: sum(totals[name] for totals in counted) for name in _SUMS}
    return {
        "totals": totals | {"since": min(one["since"] for one in counted)} if counted else {},
        "ended": None if at_work else last.get("ended"),
        "finish_reason": last.get("finish_reason"),
        "limit": next((limit for status in said if (limit := status.get("limit"))), ""),
        "build": last.get("build", {}),
        "progress": progress,
        "pages_per_second": sum(status["pages_per_second"] for status in at_work),
        "bytes_per_second": sum(status["bytes_per_second"] for status in at_work),
        "cpu_share": max((status["cpu_share"] for status in at_work), default=0.0),
        "lag_seconds": max((status["lag_seconds"] for status in at_work), default=0.0),
        "max_in_flight": sum(status["max_in_flight"] for status in at_work),
        "leases": [lease for status in at_work for lease in status.get("leases", [])],
    }
