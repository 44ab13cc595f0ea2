"""How a crawl stands, as plain values: what ``scrapy status --json`` prints, and the Python API hands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crawlerproject.inspection.crawl_progress import WorkerLook, uploads_of, worker_row
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.inspection.host_table import Outlook, census, with_addresses
from crawlerproject.rules.politeness.bottleneck import bound_by, load_of
from crawlerproject.rules.printable import counted, human_seconds
from crawlerproject.stores.crawl_folders import FleetPlan
from crawlerproject.stores.poison import poison_of
from crawlerproject.stores.redis.journal_view import JournalView
from crawlerproject.stores.redis.redis_crawl import ActiveWorker

# The process writes its status every second; with very many hosts a look may be put off for some tens of seconds.
SILENT_SECONDS = 60.0
# Of docs/status.schema.json: another number when a name goes or changes its meaning; new names come without.
_SCHEMA = 1


def facts_of(crawl: CrawlView) -> tuple[dict[str, Any], Outlook]:
    """What programs get with ``--json``, and what of it is printed line by line."""
    with crawl.store() as store:
        ahead = ahead_of(crawl, census(store.hosts(), crawl.now, crawl.leases(), store.head).ahead)
        workers = store.workers() if isinstance(store, JournalView) else []
    facts = status_facts(crawl, ahead)
    if crawl.plan is None:
        facts |= worker_facts(crawl, workers)
    else:
        facts["workers"] = [_local_worker(worker, crawl.plan, crawl.now) for worker in crawl.workers]
    return facts, ahead


def ahead_of(crawl: CrawlView, ahead: Outlook) -> Outlook:
    """What is left of the crawl by all its hosts, and by what its process knows of their addresses."""
    return with_addresses(ahead, crawl.status.get("progress", {})) if crawl.running else ahead


def left_lines(ahead: Outlook) -> list[str]:
    """What is left, and what is not counted in that: the same words wherever it is shown."""
    eta = "nothing to do now"
    if ahead.eta_seconds is not None:
        eta = f"at least {human_seconds(ahead.eta_seconds)}, if nothing new is found"
    lines = [f"Left      {counted(ahead.queued, 'URL')}: {eta}"]
    if ahead.resting_queued:
        ends = human_seconds(ahead.rests_end_in_seconds or 0.0)
        hosts = counted(ahead.hosts["resting"], "resting host")
        lines.append(f"Apart     {counted(ahead.resting_queued, 'URL')} of {hosts}; the last rest ends in {ends}")
    if ahead.parked_queued:
        hosts = counted(ahead.hosts["parked"], "parked host")
        lines.append(f"Apart     left alone: {counted(ahead.parked_queued, 'URL')} of {hosts}")
    return lines


def ailment(crawl: CrawlView) -> str:
    """Why a supervisor should look after the crawl; "" for one that is at work, paused ones included."""
    if not crawl.running:
        return "is not at work"
    statuses = [worker.status for worker in crawl.workers if worker.running] or [crawl.status]
    silent_seconds = max(crawl.now - float(status.get("time", crawl.now)) for status in statuses)
    return f"has reported nothing for {human_seconds(silent_seconds)}" if silent_seconds > SILENT_SECONDS else ""


def status_facts(crawl: CrawlView, ahead: Outlook) -> dict[str, Any]:
    """What programs get with ``--json``."""
    status, progress = crawl.status, crawl.status.get("progress", {})
    now = crawl.running and not progress.get("paused") and not stale(crawl)
    bound = bound_by(load_of(crawl.status)) if crawl.running else None
    return {
        "schema": _SCHEMA,
        "folder": str(crawl.folder),
        "running": crawl.running,
        "said_seconds_ago": round(max(0.0, crawl.now - status["time"]), 1) if "time" in status else None,
        "paused": progress.get("paused", "") if crawl.running else "",
        "finish_reason": None if crawl.running else status.get("finish_reason"),
        "pages": progress.get("pages", 0),
        "bytes": progress.get("bytes", 0),
        "errors": progress.get("errors", 0),
        "totals": status.get("totals") or None,
        "pages_per_second": status.get("pages_per_second", 0.0) if now else 0.0,
        "bytes_per_second": status.get("bytes_per_second", 0.0) if now else 0.0,
        "cpu_share": status.get("cpu_share", 0.0) if crawl.running else 0.0,
        "bound_by": bound.what if bound else None,
        "politeness_ceiling_per_second": round(ahead.ceiling, 3),
        "hosts": dict(ahead.hosts),
        "queued": ahead.queued,
        "eta_seconds": ahead.eta_seconds,
        "slowest": [{"host": row.host, "queued": row.queued, "eta_seconds": row.eta_seconds} for row in ahead.slowest],
        "resting_queued": ahead.resting_queued,
        "rests_end_in_seconds": ahead.rests_end_in_seconds,
        "parked_queued": ahead.parked_queued,
        "reader": status.get("build", {}).get("reader"),
        "paused_hosts": crawl.pauses.hosts,
        "uploads": uploads_of(crawl.folders) or None,
        "poison": sum(suspect.poison for folder in crawl.folders for suspect in poison_of(folder).values()),
    }


def worker_facts(crawl: CrawlView, workers: Sequence[ActiveWorker]) -> dict[str, Any]:
    """Of a crawl of several workers: the workers themselves, and what those of other machines add to the sums."""
    here = {worker.folder.name for worker in crawl.workers}
    if not workers and not here:
        return {}
    elsewhere = [worker.info for worker in workers if worker.name not in here]
    done = crawl.status.get("progress", {}) | {"pages_per_second": crawl.status.get("pages_per_second", 0.0)}
    sums = {
        name: done.get(name, 0) + sum(info.get(name, 0) for info in elsewhere)
        for name in ("pages", "bytes", "errors", "pages_per_second")
    }
    shown = {"partitions": 0, "machine": "", "pages": 0, "pages_per_second": 0.0, "paused": ""}
    rows = [
        {"name": worker.name, "here": worker.name in here, "reported_seconds_ago": round(worker.seconds_ago, 1)}
        | {name: worker.info.get(name, none) for name, none in shown.items()}
        for worker in workers
    ]
    known = {"totals": None} if elsewhere else {}  # what the folders here say is not all
    return {**sums, **known, "workers": rows, "running": crawl.running or bool(workers)}


def _local_worker(worker: WorkerLook, plan: FleetPlan, now: float) -> dict[str, Any]:
    """Of a crawl of several workers on this machine alone: one of them."""
    status, row = worker.status, worker_row(worker, now)
    ago = row["reported_seconds_ago"]
    return row | {
        "here": True,
        "partitions": len(plan.held(row["name"])),
        "reported_seconds_ago": None if ago is None else round(ago, 1),
        "pid": status.get("pid") if worker.running else None,
        "finish_reason": None if worker.running else status.get("finish_reason"),
        "queued": status.get("progress", {}).get("queued_urls", 0),
    }


def stale(crawl: CrawlView) -> bool:
    """Whether the running crawl has reported nothing for long: a stopped process, a disk that takes nothing."""
    return crawl.now - float(crawl.status.get("time", crawl.now)) > SILENT_SECONDS
