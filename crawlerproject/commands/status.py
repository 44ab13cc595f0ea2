"""``scrapy status``: how a crawl stands, what it is bound by, and how long it will honestly take."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any

from crawlerproject.commands.pause import paused_lines
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_progress import WorkerLook, upload_text, uploads_of
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.inspection.host_table import Outlook, host_rows, outlook, with_addresses
from crawlerproject.operator_command import InspectCommand, option
from crawlerproject.rules.politeness.bottleneck import bound_by, load_of
from crawlerproject.rules.printable import counted, human_bytes, human_seconds
from crawlerproject.stores.crawl_folders import FleetPlan
from crawlerproject.stores.poison import poison_of
from crawlerproject.stores.redis.reader import ActiveWorker, RedisView
from crawlerproject.terminal import say, say_json
from crawlerproject.watch.fleet_summary import of_all, worker_row

# The process writes its status every second; with very many hosts a look may be put off for some tens of seconds.
_SILENT_SECONDS = 60.0
# Of docs/status.schema.json: another number when a name goes or changes its meaning; new names come without.
_SCHEMA = 1


class Command(InspectCommand):
    """Works while the crawl runs, and after."""

    arguments = "[--json | --metrics | --alive]"
    summary = "How the crawl stands, what it is bound by, and an honest ETA"

    example = "scrapy status"

    options = (
        option("--metrics", action="store_true", help="the same and more, as Prometheus reads it"),
        option(
            "--alive", action="store_true", help="only whether it is at work: exit status 0, or 1; reads no frontier"
        ),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise OperatorError("scrapy status takes no argument; -s CRAWL_DIR=DIR names another crawl.")
        crawl = self.look()
        if opts.alive:
            ill = ailment(crawl)
            say(f"{crawl.folder} {ill or 'is at work'}")
            self.exitcode = int(bool(ill))
            return
        with crawl.store() as store:
            ahead = outlook(host_rows(store.hosts(), crawl.now, crawl.leases(), store.head))
            if crawl.running:
                ahead = with_addresses(ahead, crawl.status.get("progress", {}))
            workers = store.workers() if isinstance(store, RedisView) else []
        facts = status_facts(crawl, ahead)
        if crawl.plan is None:
            facts |= worker_facts(crawl, workers)
        else:
            facts["workers"] = [_local_worker(worker, crawl.plan, crawl.now) for worker in crawl.workers]
        if opts.json:
            say_json(facts)
        elif opts.metrics:
            from crawlerproject.reports.metrics import crawl_metrics  # Scrapy imports every command at each start

            say(*crawl_metrics(_said(crawl), facts, crawl.now).splitlines())
        else:
            say(*status_lines(crawl, ahead, facts))


def ailment(crawl: CrawlView) -> str:
    """Why a supervisor should look after the crawl; "" for one that is at work, paused ones included."""
    if not crawl.running:
        return "is not at work"
    statuses = [worker.status for worker in crawl.workers if worker.running] or [crawl.status]
    silent_seconds = max(crawl.now - float(status.get("time", crawl.now)) for status in statuses)
    return f"has said nothing for {human_seconds(silent_seconds)}" if silent_seconds > _SILENT_SECONDS else ""


def status_facts(crawl: CrawlView, ahead: Outlook) -> dict[str, Any]:
    """What programs get with ``--json``."""
    status, progress = crawl.status, crawl.status.get("progress", {})
    now = crawl.running and not progress.get("paused") and not _stale(crawl)
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


def _said(crawl: CrawlView) -> dict[str, Any]:
    """The latest status of the processes at work on this machine, for metrics; empty when none is at work."""
    each = {worker.folder.name: worker.status for worker in crawl.workers if worker.running and worker.status}
    at_work = list(each.values())
    if not crawl.workers and crawl.running:
        at_work = [crawl.status]
    return of_all(at_work[0], at_work[1:]) | {"each": each} if at_work else {}


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


def status_lines(crawl: CrawlView, ahead: Outlook, facts: dict[str, Any]) -> list[str]:
    """A line a question."""
    lines = [f"Crawl     {crawl.folder}, {_life(crawl, facts)}"]
    by_operator = crawl.pauses
    if facts["paused"]:  # shown below
        by_operator.crawl = ""
    lines += [f"Paused    {line}" for line in paused_lines(by_operator)]
    lines += [f"Worker    {_worker(worker)}" for worker in facts.get("workers", [])]
    lines += _done(facts)
    if facts["paused"]:
        lines.append(f"Paused    {facts['paused']}")
    elif crawl.running and _stale(crawl):
        lines.append(f"Silent    its last word is {human_seconds(facts['said_seconds_ago'])} old: see its log")
    elif crawl.running:
        rate = f"{facts['pages_per_second']:.1f} pages/s, {human_bytes(int(facts['bytes_per_second']))}/s"
        lines.append(f"Rate      {rate}; politeness allows {ahead.ceiling:.1f} answers/s now")
        lines.append(f"Bound by  {bound_by(load_of(crawl.status)).text}")
    if facts["reader"]:  # of a version that said so
        lines.append(f"Reader    {facts['reader']}")
    if facts["uploads"]:
        lines.append(f"Archive   {upload_text(facts['uploads'], crawl.now)}")
        lines += [f"          {problem}" for problem in facts["uploads"]["problems"]]
    lines += _left(ahead)
    if facts["poison"]:
        lines.append(f"Poison    {facts['poison']:,} pages over which the process died are set aside: see poison.json")
    return lines


def _worker(worker: dict[str, Any]) -> str:
    """One worker's line; of a worker of a fleet in Redis no more is known than what it has reported there."""
    held = f"{worker['name']}: {worker['partitions']:,} partitions"
    if "running" not in worker:
        where = "here" if worker["here"] else f"on {worker['machine'] or 'another machine'}"
        does = f"{worker['pages']:,} pages, {worker['pages_per_second']:.1f} pages/s"
        does = f"paused: {worker['paused']}" if worker["paused"] else does
        if worker["reported_seconds_ago"] > _SILENT_SECONDS:
            silent = human_seconds(worker["reported_seconds_ago"])
            return f"{worker['name']}: {where}, silent for {silent}; after its lease others have its partitions"
        return f"{held}, {where}, {does}, reported {human_seconds(worker['reported_seconds_ago'])} ago"
    if not worker["running"]:
        return f"{held}, {_end(worker, began=worker['reported_seconds_ago'] is not None)}"
    if worker["paused"]:
        return f"{held}, paused: {worker['paused']}"
    if worker["reported_seconds_ago"] > _SILENT_SECONDS:
        ago = human_seconds(worker["reported_seconds_ago"])
        return f"{held}, silent as process {worker['pid']}: its last word is {ago} old"
    rate = f"{worker['pages']:,} pages, {worker['pages_per_second']:.1f} pages/s, {worker['queued']:,} queued"
    return f"{held}, runs as process {worker['pid']}: {rate}"


def _end(said: dict[str, Any], *, began: bool) -> str:
    """How what does not run came to its end, by what it said last, if it ever ``began``."""
    if said.get("ended"):
        ended = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(said["ended"]))
        return f"ended {ended} ({said.get('finish_reason')})"
    return "not running; its last process did not end in good order" if began else "not running"


def _done(facts: dict[str, Any]) -> Iterator[str]:
    if not facts["totals"]:  # of a version that did not count beyond a start
        yield f"Done      {_counts(facts)} since the last start"
        return
    since = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(facts["totals"]["since"]))
    yield f"Done      {_counts(facts['totals'])} since {since}"
    if any(facts["totals"][name] != facts[name] for name in ("pages", "bytes", "errors")):
        yield f"          {_counts(facts)} since the last start"


def _left(ahead: Outlook) -> list[str]:
    states = ", ".join(f"{count:,} {state}" for state, count in ahead.hosts.most_common())
    lines = [f"Hosts     {states or 'none'}"]
    eta = "nothing to do now"
    if ahead.eta_seconds is not None:
        eta = f"at least {human_seconds(ahead.eta_seconds)}, if nothing new is found"
    lines.append(f"Left      {ahead.queued:,} URLs: {eta}")
    for place, row in enumerate(ahead.slowest):
        lines.append(
            f"{'' if place else 'Slowest':10}{row.host}: {row.queued:,} URLs, "
            f"one every {human_seconds(row.pace_seconds)}, {human_seconds(row.eta_seconds or 0.0)}"
        )
    if ahead.resting_queued:
        ends = human_seconds(ahead.rests_end_in_seconds or 0.0)
        hosts = counted(ahead.hosts["resting"], "resting host")
        lines.append(f"Apart     {counted(ahead.resting_queued, 'URL')} of {hosts}; the last rest ends in {ends}")
    if ahead.parked_queued:
        hosts = counted(ahead.hosts["parked"], "parked host")
        lines.append(f"Apart     left alone: {counted(ahead.parked_queued, 'URL')} of {hosts}")
    return lines


def _life(crawl: CrawlView, facts: dict[str, Any]) -> str:
    if facts.get("workers") and crawl.plan is None:
        return f"running with {len(facts['workers']):,} workers"
    if crawl.running and "pid" not in crawl.status:
        at_work = f"{sum(worker.running for worker in crawl.workers):,}"
        return f"running with {at_work if crawl.plan is None else f'{at_work} of {len(crawl.workers):,}'} workers"
    if crawl.running:
        age = human_seconds(crawl.now - crawl.run.get("started", 0.0))
        return f"running as process {crawl.status['pid']} for {age}"
    return _end(crawl.status, began=bool(crawl.status))


def _stale(crawl: CrawlView) -> bool:
    """Whether the running crawl has said nothing for long: a stopped process, a disk that takes nothing."""
    return crawl.now - float(crawl.status.get("time", crawl.now)) > _SILENT_SECONDS


def _counts(done: dict[str, Any]) -> str:
    return f"{done['pages']:,} pages, {human_bytes(done['bytes'])}, {done['errors']:,} errors"
