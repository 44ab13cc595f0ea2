"""``scrapy status``: how a crawl stands, what it is bound by, and how long it will honestly take."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from crawlerproject.commands.pause import paused_lines
from crawlerproject.errors import STORE_FORGOT, OperatorError
from crawlerproject.inspection.crawl_progress import upload_text
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.inspection.host_table import Outlook
from crawlerproject.inspection.status_facts import SILENT_SECONDS, ailment, facts_of, left_lines, stale
from crawlerproject.operator_command import InspectCommand, option
from crawlerproject.rules.politeness.bottleneck import bound_by, load_of
from crawlerproject.rules.printable import counted, human_bytes, human_seconds
from crawlerproject.terminal import say, say_json
from crawlerproject.watch.fleet_summary import of_all


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
        if opts.metrics and not crawl.running and crawl.status.get("finish_reason") == STORE_FORGOT:
            # Whatever Redis knows by now, and though it does not know the crawl: that is to be shown.
            say(*_metrics({}, {"running": False, "finish_reason": STORE_FORGOT}, crawl.now))
            return
        facts, ahead = facts_of(crawl)
        if opts.json:
            say_json(facts)
        elif opts.metrics:
            say(*_metrics(_said(crawl), facts, crawl.now))
        else:
            say(*status_lines(crawl, ahead, facts))


def _metrics(status: dict[str, Any], facts: dict[str, Any], now: float) -> list[str]:
    from crawlerproject.reports.metrics import crawl_metrics  # Scrapy imports every command at each start

    return crawl_metrics(status, facts, now).splitlines()


def _said(crawl: CrawlView) -> dict[str, Any]:
    """The latest status of the processes at work on this machine, for metrics; empty when none is at work."""
    each = {worker.folder.name: worker.status for worker in crawl.workers if worker.running and worker.status}
    at_work = list(each.values())
    if not crawl.workers and crawl.running:
        at_work = [crawl.status]
    return of_all(at_work[0], at_work[1:]) | {"each": each} if at_work else {}


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
    elif crawl.running and stale(crawl):
        lines.append(f"Silent    its last word is {human_seconds(facts['said_seconds_ago'])} old: see its log")
    elif crawl.running:
        rate = f"{facts['pages_per_second']:.1f} pages/s, {human_bytes(int(facts['bytes_per_second']))}/s"
        lines.append(f"Rate      {rate}; politeness allows {ahead.ceiling:.1f} answers/s now")
        lines.append(f"Bound by  {bound_by(load_of(crawl.status)).text}")
    if facts["reader"]:  # of a version that reports it
        lines.append(f"Reader    {facts['reader']}")
    if facts["uploads"]:
        lines.append(f"Archive   {upload_text(facts['uploads'], crawl.now)}")
        lines += [f"          {problem}" for problem in facts["uploads"]["problems"]]
    lines += _left(ahead)
    if facts["poison"]:
        lines.append(
            f"Poison    {counted(facts['poison'], 'page')} over which the process died set aside: see poison.json"
        )
    return lines


def _worker(worker: dict[str, Any]) -> str:
    """One worker's line; of a worker of a fleet over Redis no more is known than what it has reported there."""
    held = f"{worker['name']}: {counted(worker['partitions'], 'partition')}"
    if "running" not in worker:
        where = "here" if worker["here"] else f"on {worker['machine'] or 'another machine'}"
        does = f"{counted(worker['pages'], 'page')}, {worker['pages_per_second']:.1f} pages/s"
        does = f"paused: {worker['paused']}" if worker["paused"] else does
        if worker["reported_seconds_ago"] > SILENT_SECONDS:
            silent = human_seconds(worker["reported_seconds_ago"])
            return f"{worker['name']}: {where}, silent for {silent}; after its lease others have its partitions"
        return f"{held}, {where}, {does}, reported {human_seconds(worker['reported_seconds_ago'])} ago"
    if not worker["running"]:
        return f"{held}, {_end(worker, began=worker['reported_seconds_ago'] is not None)}"
    if worker["paused"]:
        return f"{held}, paused: {worker['paused']}"
    if worker["reported_seconds_ago"] > SILENT_SECONDS:
        ago = human_seconds(worker["reported_seconds_ago"])
        return f"{held}, silent as process {worker['pid']}: its last word is {ago} old"
    rate = f"{counted(worker['pages'], 'page')}, {worker['pages_per_second']:.1f} pages/s, {worker['queued']:,} queued"
    return f"{held}, runs as process {worker['pid']}: {rate}"


def _end(status: dict[str, Any], *, began: bool) -> str:
    """How what does not run came to its end, by its latest status, if it ever ``began``."""
    if status.get("ended"):
        ended = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(status["ended"]))
        return f"ended {ended} ({status.get('finish_reason')})"
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
    left, *apart = left_lines(ahead)
    lines = [f"Hosts     {states or 'none'}", left]
    for place, row in enumerate(ahead.slowest):
        lines.append(
            f"{'' if place else 'Slowest':10}{row.host}: {counted(row.queued, 'URL')}, "
            f"one every {human_seconds(row.pace_seconds)}, {human_seconds(row.eta_seconds or 0.0)}"
        )
    return lines + apart


def _life(crawl: CrawlView, facts: dict[str, Any]) -> str:
    if facts.get("workers") and crawl.plan is None:
        return f"running with {counted(len(facts['workers']), 'worker')}"
    if crawl.running and "pid" not in crawl.status:
        at_work = f"{sum(worker.running for worker in crawl.workers):,}"
        return f"running with {at_work if crawl.plan is None else f'{at_work} of {len(crawl.workers):,}'} workers"
    if crawl.running:
        age = human_seconds(crawl.now - crawl.run.get("started", 0.0))
        return f"running as process {crawl.status['pid']} for {age}"
    return _end(crawl.status, began=bool(crawl.status))


def _counts(done: dict[str, Any]) -> str:
    return f"{counted(done['pages'], 'page')}, {human_bytes(done['bytes'])}, {counted(done['errors'], 'error')}"
