"""How a crawl stands at one moment: one process, all of its workers together, and its archive on the way elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from crawlerproject.rules.politeness.quiet_hours import LONGER, SLOWER
from crawlerproject.rules.printable import counted, human_bytes, human_seconds
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from crawlerproject.stores.crawl_folders import FleetPlan

NOTHING_LEFT = "–"  # shown where a number would mean nothing
_SUMS = ("pages", "bytes", "errors")
_SUMS_NOW = ("hosts_in_flight", "hosts_ready", "hosts_waiting", "hosts_resting")  # a fleet has none on disk
# Also sums of those at work; a status of an earlier version has none of them.
_SUMS_LATER = ("hosts_in_line", "hosts_looked_up", "queued_urls", "ceiling_per_second")
_UPLOAD_SUMS = (
    "waiting_files", "waiting_bytes", "sent_files", "sent_bytes", "sent_again", "removed_files", "only_there",
)  # fmt: skip


class Progress(NamedTuple):
    """What the frontier knows of the crawl now; counts are since this process started."""

    pages: int  # answers, robots.txt left out
    bytes: int  # received on the wire
    errors: int  # attempts without a usable answer
    hosts_in_flight: int  # asked at this moment
    hosts_ready: int  # may be asked now, wait for a free lease
    hosts_waiting: int  # have work; their delay still runs
    hosts_resting: int  # back off or are parked
    queued_urls: int  # known, not yet decided
    next_free_seconds: float | None  # until a waiting host may be asked; None when none waits
    eta_seconds: float | None  # work left, at the promised pace or the machine's own if slower; None when unknown
    paused: str  # why nothing is asked at all ("" while crawling), for example a full disk
    hosts_on_disk: int = 0  # have work, wait for their turn, a pause or a rest; in none of the counts above
    hosts_in_line: int = 0  # their own pause is over, that of their IP address or of another port of their name is not
    hosts_looked_up: int = 0  # wait for an answer of the DNS
    ceiling_per_second: float | None = None  # answers that politeness allows now; None when unknown
    hosts_in_busy_hours: int = 0  # asked more slowly for that, whatever they do now
    standing: tuple[str, ...] = ()  # why nothing moves, a line each; () while something does


def render_lines(progress: Progress, previous: Progress | None, elapsed_seconds: float) -> list[str]:
    """The lines of a panel; the log joins them: what was done, by whom, what is left, and why nothing moves.

    The rate is that of the ``elapsed_seconds`` since ``previous``.
    """
    done = progress.pages - (previous.pages if previous else 0)
    rate = f"{done / elapsed_seconds if elapsed_seconds > 0 else 0.0:.1f} pages/s"
    if progress.ceiling_per_second is not None:
        rate += f" (politeness allows {progress.ceiling_per_second:.1f} now)"
    eta, free = (
        NOTHING_LEFT if seconds is None else human_seconds(seconds)
        for seconds in (progress.eta_seconds, progress.next_free_seconds)
    )
    lines = [
        f"{counted(progress.pages, 'page')} · {rate} · {human_bytes(progress.bytes)}",
        _hosts(progress),
        f"next free in {free} · {counted(progress.errors, 'error')} · {progress.queued_urls:,} queued · ETA {eta}",
    ]
    if progress.hosts_in_busy_hours:
        busy = counted(progress.hosts_in_busy_hours, "host in its", "hosts in their")
        longer = f"what takes days takes up to {LONGER - 1:.0%} longer"
        lines.append(f"{busy} busy hours, at 1/{SLOWER:g} of the pace: {longer} (QUIET_HOURS)")
    if progress.paused:
        lines.insert(0, f"PAUSED: {progress.paused}")
    return [*lines, *progress.standing]


def _hosts(progress: Progress) -> str:
    """Hosts by what they do now; those that could be asked but for a free lease are named apart."""
    counts = {
        "active": progress.hosts_in_flight,
        "ready": progress.hosts_ready,
        "looked up": progress.hosts_looked_up,
        "in line": progress.hosts_in_line,
        "waiting": progress.hosts_waiting,
        "resting": progress.hosts_resting,
        "on disk": progress.hosts_on_disk,
    }
    shown = (f"{count:,} {word}" for word, count in counts.items() if count or word in ("active", "waiting"))
    return f"hosts {', '.join(shown)}"


class WorkerLook(NamedTuple):
    """One worker's folder, how it was started, and its latest status."""

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


def worker_row(worker: WorkerLook, now: float) -> dict[str, Any]:
    """One worker on this machine as metrics show it; ``now`` in epoch seconds."""
    status = worker.status
    progress = status.get("progress", {})
    return {
        "name": worker.folder.name,
        "machine": "",
        "running": worker.running,
        "ended": status.get("ended"),
        "reported_seconds_ago": max(0.0, now - status["time"]) if "time" in status else None,
        "paused": progress.get("paused", "") if worker.running else "",
        "pages": progress.get("pages", 0),
        "pages_per_second": status.get("pages_per_second", 0.0) if worker.running else 0.0,
    }


def together(workers: Sequence[WorkerLook]) -> dict[str, Any]:
    """A status of all of them: what was done is summed up, of loads the heaviest counts."""
    statuses = [worker.status for worker in workers if worker.status]
    at_work = [worker.status for worker in workers if worker.running]
    if not statuses:
        return {}
    last = max(statuses, key=lambda status: status.get("ended") or 0.0)
    progress = {name: sum(status["progress"][name] for status in statuses) for name in _SUMS}
    progress |= {name: sum(status["progress"][name] for status in at_work) for name in _SUMS_NOW}
    for name in _SUMS_LATER:
        progress[name] = sum(status["progress"].get(name) or 0 for status in at_work)
    progress["paused"] = next((text for status in at_work if (text := status["progress"]["paused"])), "")
    ends = [eta for status in at_work if (eta := status["progress"].get("eta_seconds")) is not None]
    progress["eta_seconds"] = max(ends, default=None)
    counted = [status["totals"] for status in statuses if "totals" in status]
    totals = {name: sum(totals[name] for totals in counted) for name in _SUMS}
    return {
        "totals": totals | {"since": min(one["since"] for one in counted)} if counted else {},
        "ended": None if at_work else last.get("ended"),
        "finish_reason": last.get("finish_reason"),
        "limit": next((limit for status in statuses if (limit := status.get("limit"))), ""),
        "build": last.get("build", {}),
        "progress": progress,
        "pages_per_second": sum(status["pages_per_second"] for status in at_work),
        "bytes_per_second": sum(status["bytes_per_second"] for status in at_work),
        "cpu_share": max((status["cpu_share"] for status in at_work), default=0.0),
        "lag_seconds": max((status["lag_seconds"] for status in at_work), default=0.0),
        "max_in_flight": sum(status["max_in_flight"] for status in at_work),
        "leases": [lease for status in at_work for lease in status.get("leases", [])],
    }


def uploads_of(folders: Iterable[CrawlDir]) -> dict[str, Any]:
    """Of all folders of a crawl together; empty when nothing of it ever went anywhere."""
    return uploads_together([state for folder in folders if (state := read_facts(folder.upload_state))])


def uploads_together(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums; of what is refused the longest."""
    if not states:
        return {}
    refused = [state for state in states if state.get("error")]
    worst = min(refused, key=lambda state: state.get("failing_since") or 0.0, default=None)
    return {
        "time": min((state["time"] for state in states if "time" in state), default=None),
        "url": min((str(state.get("url", "")) for state in states), key=len),
        **{name: sum(state.get(name) or 0 for state in states) for name in _UPLOAD_SUMS},
        "error": worst["error"] if worst else "",
        "failing_since": worst.get("failing_since") if worst else None,
        "next_try": worst.get("next_try") if worst else None,
        "problems": [problem for state in states for problem in state.get("problems", [])],
    }


def upload_text(uploads: Mapping[str, Any], now: float) -> str:
    """One line; ``now`` in epoch seconds."""
    if not uploads:
        return ""
    files = counted(uploads["waiting_files"], "file")
    waiting = f"{files} ({human_bytes(int(uploads['waiting_bytes']))}) wait{'s' * (uploads['waiting_files'] == 1)}"
    done = f"{counted(uploads['sent_files'], 'file')} ({human_bytes(int(uploads['sent_bytes']))}) sent since its start"
    only = f", {counted(uploads['only_there'], 'is', 'are')} only there" if uploads["only_there"] else ""
    text = f"to {uploads['url']}: {waiting}, {done}{only}"
    if uploads["error"]:
        since = human_seconds(max(0.0, now - uploads["failing_since"])) if uploads["failing_since"] else ""
        text += f"; refused{f' for {since}' if since else ''}: {uploads['error']}"
    return text
