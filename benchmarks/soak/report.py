"""A soak's report: what its samples say of memory, descriptors, store and commits, with plots, beside the verdict."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.charts import Line
from benchmarks.soak.books import Books
from benchmarks.soak.judge import Judged
from benchmarks.soak.plots import plot

_WARM_UP_SECONDS = 60.0  # of each process: it fills its caches
_LEAST_SAMPLES = 6  # of a process's life, to say anything of its slope
_MIB = 1 << 20
_GAP_SECONDS = 30.0  # between two samples: the soak was interrupted, and its time with it
_RATE_SAMPLES = 6  # a rate is a mean over so many intervals
_PER = 100_000  # requests, for slopes


class Point(NamedTuple):
    """One sample of one process."""

    requests: int
    alive_seconds: float
    memory_bytes: int
    descriptors: int


class Series:
    """The samples of a soak in order, by minutes in which it ran."""

    def __init__(self, books: Books) -> None:
        self.samples = list(books.noted("samples"))
        self.events = list(books.noted("events"))
        self.minutes: list[float] = []
        passed, last = 0.0, None
        for sample in self.samples:
            step = 0.0 if last is None else sample["time"] - last
            passed += step if step < _GAP_SECONDS else 0.0
            last = sample["time"]
            self.minutes.append(passed / 60)

    def line(self, name: str, value: Any) -> Line:
        """A series of what ``value`` finds in each sample."""
        pairs = zip(self.minutes, self.samples, strict=True)
        return Line(name, [(at, found) for at, sample in pairs if (found := value(sample)) is not None])

    def kills(self) -> list[float]:
        """The minutes of all kills."""
        times = [sample["time"] for sample in self.samples]
        moments = [event["time"] for event in self.events if event["kind"].startswith("kill")]
        return [self.minutes[min(int(np.searchsorted(times, at)), len(times) - 1)] for at in moments] if times else []

    def rate(self) -> Line:
        """Requests a second."""
        points = []
        for early, late in zip(range(len(self.samples)), range(_RATE_SAMPLES, len(self.samples)), strict=False):
            seconds = (self.minutes[late] - self.minutes[early]) * 60
            if seconds > 0:
                done = self.samples[late]["requests"] - self.samples[early]["requests"]
                points.append((self.minutes[late], done / seconds))
        return Line("all", points)

    def lives(self, name: str) -> list[list[Point]]:
        """What was seen of each process that was this worker (or the supervisor), one list a process."""
        lives: dict[int, list[Point]] = defaultdict(list)
        began: dict[int, float] = {}
        for sample in self.samples:
            if (seen := sample["processes"].get(name)) is not None:
                pid = seen["pid"]
                began.setdefault(pid, sample["time"])
                alive = sample["time"] - began[pid]
                lives[pid].append(Point(sample["requests"], alive, seen["memory_bytes"], seen["descriptors"]))
        return list(lives.values())


def slope(lives: list[list[Point]], after: int, field: str) -> dict[str, float | int | None]:
    """How a figure grows with the requests, within the lives of processes: each has its own level, all one slope.

    Left out are the first ``after`` requests and the warm-up of each process. Per 100,000 requests of the whole fleet.
    """
    x: list[float] = []
    y: list[float] = []
    for life in lives:
        kept = [point for point in life if point.alive_seconds >= _WARM_UP_SECONDS and point.requests > after]
        if len(kept) >= _LEAST_SAMPLES:
            requests = np.array([point.requests for point in kept], dtype=float)
            values = np.array([getattr(point, field) for point in kept], dtype=float)
            x += list(requests - requests.mean())
            y += list(values - values.mean())
    if not x or not np.any(x):
        return {"samples": 0, "per_100000_requests": None}
    return {"samples": len(x), "per_100000_requests": float(np.dot(x, y) / np.dot(x, x) * _PER)}


def peaks(lives: list[list[Point]], after: int) -> list[int]:
    """The most memory of each process that lived on after so many requests."""
    return [max(point.memory_bytes for point in life) for life in lives if life[-1].requests > after]


def figures(books: Books, judged: Judged) -> dict[str, Any]:
    """All numbers of the report."""
    series = Series(books)
    last = series.samples[-1]
    tenth = last["requests"] // 10
    found: dict[str, Any] = {"requests": last["requests"], "minutes": round(series.minutes[-1], 1)}
    for name in ("worker-1", "worker-2", "supervisor"):
        lives = series.lives(name)
        longest = max(lives, key=lambda life: life[-1].alive_seconds)
        found[name] = {
            "processes": len(lives),
            "longest_life_seconds": longest[-1].alive_seconds,
            "longest_life_mib": [round(point.memory_bytes / _MIB) for point in longest[:: max(1, len(longest) // 10)]],
            "peak_mib": round(max(point.memory_bytes for life in lives for point in life) / _MIB, 1),
            "peaks_mib": [round(peak / _MIB) for peak in peaks(lives, tenth)],
            "memory_slope": slope(lives, tenth, "memory_bytes"),
            "descriptor_slope": slope(lives, tenth, "descriptors"),
            "most_descriptors": max(point.descriptors for life in lives for point in life),
        }
    workers = [sample["workers"] for sample in series.samples]
    sums = {name: sum(worker[name] for worker in workers[-1].values()) for name in _SIZES}
    ages = sorted(
        max(0.0, worker["commit_age_seconds"])
        for sample in series.samples
        for name, worker in sample["workers"].items()
        if name in sample["processes"] and worker.get("queued")  # one that has nothing to do commits nothing
    )
    found |= sums
    found["frontier_bytes_per_url"] = round(sums["frontier_bytes"] / max(1, judged.numbers.get("known_urls", 0)), 1)
    found["archive_bytes_per_request"] = round(sums["archive_bytes"] / max(1, last["requests"]), 1)
    found["commit_age_seconds"] = {str(share): _quantile(ages, share) for share in (0.5, 0.9, 0.99, 1.0)}
    found["events"] = dict(Counter(event["kind"] for event in series.events))
    found["longest_interval_seconds"] = max(b["time"] - a["time"] for a, b in pairwise(series.samples))
    return found


_SIZES = ("frontier_bytes", "archive_bytes", "index_bytes", "log_bytes", "warc_files")


def _quantile(ordered: list[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3) if ordered else 0.0


def pictures(books: Books, folder: Path) -> list[str]:
    """Draw all plots into a folder; their names."""
    series, kills = Series(books), Series(books).kills()
    names = list(series.samples[-1]["workers"])

    def of_worker(name: str, field: str, share: float) -> Line:
        return series.line(name, lambda sample: max(0.0, sample["workers"][name][field] / share))

    def of_process(name: str, field: str, share: float) -> Line:
        return series.line(
            name, lambda sample: seen[field] / share if (seen := sample["processes"].get(name)) is not None else None
        )

    drawn = {
        "rate": ("Rate", "requests a second", [series.rate()]),
        "memory": ("Resident memory", "MiB", [of_process(n, "memory_bytes", _MIB) for n in (*names, "supervisor")]),
        "descriptors": ("Open descriptors", "", [of_process(n, "descriptors", 1) for n in (*names, "supervisor")]),
        "store": ("Frontier on disk", "MiB", [of_worker(name, "frontier_bytes", _MIB) for name in names]),
        "commits": ("Since the last commit", "s", [of_worker(name, "commit_age_seconds", 1) for name in names]),
        "archive": ("Archive", "MiB", [of_worker(name, "archive_bytes", _MIB) for name in names]),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, (title, unit, lines) in drawn.items():
        (folder / f"soak-{name}.svg").write_text(plot(title, unit, lines, kills))
    return list(drawn)


def write(books: Books, judged: Judged, folder: Path) -> None:
    """``soak.json``, ``soak-report.md`` and the plots, into a folder."""
    names = pictures(books, folder)
    numbers = figures(books, judged)
    report = {"measured": numbers, "judged": judged.numbers, "facts": judged.facts, "faults": judged.faults}
    (folder / "soak.json").write_text(json.dumps(report, indent=1, default=str) + "\n")
    (folder / "soak-report.md").write_text(markdown(numbers, judged, names))


def markdown(numbers: dict[str, Any], judged: Judged, plots: list[str]) -> str:
    """The report as text."""
    lines = ["# A soak", "", f"{numbers['requests']:,} requests in {numbers['minutes']:g} minutes.", ""]
    lines += [f"- {fact}" for fact in judged.facts]
    lines += ["", "| | worker-1 | worker-2 | supervisor |", "|---|---|---|---|"]
    for key in ("processes", "longest_life_seconds", "peak_mib", "most_descriptors"):
        values = " | ".join(f"{numbers[name][key]:,.0f}" for name in ("worker-1", "worker-2", "supervisor"))
        lines.append(f"| {key.replace('_', ' ')} | {values} |")
    for key, unit, share in (("memory_slope", "MiB", _MIB), ("descriptor_slope", "", 1)):
        slopes = [numbers[name][key]["per_100000_requests"] for name in ("worker-1", "worker-2", "supervisor")]
        values = " | ".join("–" if each is None else f"{each / share:+.2f} {unit}".strip() for each in slopes)
        lines.append(f"| {key.replace('_', ' ')}, a 100,000 requests | {values} |")
    lines += ["", "| fault that the server sent | what the crawl's log says of it |", "|---|---|"]
    for fault, outcomes in judged.numbers.get("faults", {}).items():
        said = ", ".join(f"{outcome}: {count:,}" for outcome, count in outcomes.items())
        lines.append(f"| {fault}: {sum(outcomes.values()):,} | {said} |")
    sizes = ", ".join(f"{name.replace('_', ' ')} {numbers[name]:,}" for name in _SIZES)
    lines += ["", f"On disk: {sizes}; {numbers['frontier_bytes_per_url']} bytes of frontier a URL.", ""]
    lines.append(f"Seconds since the last commit (median, 90 %, 99 %, most): {numbers['commit_age_seconds']}.")
    lines.append(f"Strokes of chance: {numbers['events']}.")
    lines += ["", f"{len(judged.faults)} faults", *(f"- {fault}" for fault in judged.faults), ""]
    return "\n".join([*lines, *(f"![{name}](soak-{name}.svg)" for name in plots), ""])
