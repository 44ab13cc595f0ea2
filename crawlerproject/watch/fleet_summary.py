"""What all workers of a crawl on this machine say, as the status of one: for the page of the worker that shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from crawlerproject.inspection.crawl_progress import WorkerLook, uploads_together, worker_row, workers_below
from crawlerproject.stores.crawl_dir import CrawlDir

Status = Mapping[str, Any]

_SUMS = ("pages_per_second", "bytes_per_second", "max_in_flight", "given_up_hosts", "short_pauses")
_SUMS_LATER = ("promised_pause_seconds", "commit_failures", "uncommitted")  # an earlier version has none of them
_MOST = ("cpu_share", "lag_seconds")  # of loads the heaviest counts
_COUNTED = ("stats", "statuses", "held_hosts")
_LONGEST = "loop/longest_"  # statistics that begin so have no sum
_CLASSES = ("first_byte_seconds", "pause_excess_seconds")
_SUMS_OF_PROGRESS = (
    *("pages", "bytes", "errors", "queued_urls"),
    *(f"hosts_{state}" for state in ("in_flight", "ready", "waiting", "resting", "on_disk", "in_line", "looked_up")),
)
# What a host in the memory of another worker does, in the words of a survey.
_STATES = {
    "hosts_in_flight": "in-flight",
    "hosts_ready": "free",
    "hosts_waiting": "waiting",
    "hosts_resting": "resting",
}
_LOOK_SECONDS = 1.0
"""Statuses are written once a second."""


class Beside:
    """The other workers at work, by their latest statuses. A look reads a file of some kilobytes of each."""

    def __init__(self, crawl: CrawlDir, own: CrawlDir) -> None:
        self._crawl = crawl
        self._own = own
        self._seen: list[WorkerLook] = []
        self._next_look = 0.0

    def statuses(self, now: float) -> list[Status]:
        """None in a crawl of one process; ``now`` in monotonic seconds."""
        return [worker.status for worker in self._workers(now) if worker.running]

    def each(self, now: float, own: Status) -> dict[str, Status]:
        """By name what each worker at work says, this one by its ``own`` status; empty for one process."""
        if self._crawl == self._own:
            return {}
        return {self._own.name: own} | {one.folder.name: one.status for one in self._workers(now) if one.running}

    def rows(self, now: float, own: Status) -> list[dict[str, Any]]:
        """What is known of each worker on this machine, this one by its ``own`` status; empty for one process."""
        others = self._workers(now)
        if self._crawl == self._own:
            return []
        looks = [WorkerLook(self._own, {}, dict(own), running=True), *others]
        return [worker_row(look, own["time"]) for look in sorted(looks, key=lambda look: look.folder.name)]

    def _workers(self, now: float) -> list[WorkerLook]:
        if self._crawl != self._own and now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            every = workers_below(self._crawl)
            self._seen = [worker for worker in every if worker.folder.name != self._own.name]
        return self._seen


def of_all(own: Status, others: Sequence[Status]) -> dict[str, Any]:
    """One status of all: what was done is summed up; what has no sum is this worker's own word."""
    every = [own, *others]
    whole = dict(own)
    whole |= {name: sum(status[name] for status in every) for name in _SUMS}
    whole |= {name: max(status[name] for status in every) for name in _MOST}
    whole |= {name: _added([status[name] for status in every]) for name in _COUNTED}
    longest = {name for status in every for name in status["stats"] if name.startswith(_LONGEST)}
    whole["stats"] |= {name: max(status["stats"].get(name, 0.0) for status in every) for name in longest}
    whole |= {name: _classes([status[name] for status in every]) for name in _CLASSES}
    whole |= _later(every)
    totals = [status["totals"] for status in every]
    whole["totals"] = {name: sum(one[name] for one in totals) for name in ("pages", "bytes", "errors")}
    whole["totals"]["since"] = min(one["since"] for one in totals)
    whole["progress"] = _progress([status["progress"] for status in every])
    whole["machine"] = own["machine"] | {"rss_bytes": sum(status["machine"]["rss_bytes"] for status in every)}
    if states := [status["uploads"] for status in every if status.get("uploads")]:
        whole["uploads"] = uploads_together(states)
    whole["leases"] = [lease for status in every for lease in status["leases"]]
    whole["hosts_beside"] = {
        state: sum(status["progress"][name] for status in others) for name, state in _STATES.items()
    }
    return whole


def _later(every: Sequence[Status]) -> dict[str, Any]:
    """What an earlier version, whose worker is still at work, does not report."""
    margins = [margin for one in every if (margin := one.get("least_pause_margin_seconds")) is not None]
    commits = [one["commit_seconds"] for one in every if "commit_seconds" in one]
    asked = [one["dns"] for one in every if "dns" in one]
    places = [one["fleet"] for one in every if "fleet" in one]
    return {
        **{name: sum(one.get(name, 0) for one in every) for name in _SUMS_LATER},
        **({"fleet": places[0] | {"held": sum(place["held"] for place in places)}} if places else {}),
        "commit_lag_seconds": max(one.get("commit_lag_seconds", 0.0) for one in every),
        "least_pause_margin_seconds": min(margins, default=None),
        **({"commit_seconds": _classes(commits)} if commits else {}),
        "stores": _added([one.get("stores", {}) for one in every]),
        "dns": {
            **{name: sum(one[name] for one in asked) for name in ("questions", "names")},
            "failures": _added([one["failures"] for one in asked]),
        },
    }


def _added(every: Sequence[Mapping[str, float]]) -> dict[str, float]:
    counts: Counter[str] = Counter()
    for one in every:
        counts.update(one)
    return dict(counts)


def _progress(every: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    whole = {**every[0], **{name: sum(one[name] for one in every) for name in _SUMS_OF_PROGRESS}}
    ceilings = _known(every, "ceiling_per_second")
    return whole | {
        "next_free_seconds": min(_known(every, "next_free_seconds"), default=None),
        "eta_seconds": max(_known(every, "eta_seconds"), default=None),
        "ceiling_per_second": sum(ceilings) if ceilings else None,
        "paused": next((one["paused"] for one in every if one["paused"]), ""),
    }


def _known(every: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [one[name] for one in every if one[name] is not None]


def _classes(every: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    counts = [sum(counts) for counts in zip(*(one["counts"] for one in every), strict=True)]
    return {"bounds": every[0]["bounds"], "counts": counts, "sum": sum(one["sum"] for one in every)}
