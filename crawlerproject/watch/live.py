"""What the live page shows, as plain values: this moment, and the last hour, a row each few seconds.

The rows are kept in the crawl's folder.

Looks through the hosts in memory while a crawl is watched: how many are in which state, the first of each order.

A crawl may have a hundred thousand hosts in memory, and the event loop has a millisecond to spare: it looks at some
hundred hosts at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import islice, takewhile
from math import isfinite
from typing import Any, NamedTuple

from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.inspection.crawl_progress import upload_text, uploads_together
from crawlerproject.inspection.host_table import HostRow, host_row
from crawlerproject.reasons import ANSWERED
from crawlerproject.rules.politeness.bottleneck import bound_by, load_of

FIRST_ROWS = 50
"""Of each order (ours): what a person reads; all hosts: ``scrapy hosts``."""
_MOMENT_SECONDS = 0.001
SLICE_HOSTS = 150
"""Looked at in one go: about a millisecond."""
# A whole look may take a hundredth of the processor, and need not be newer than a row of the last hour.
_COST_SHARE = 0.01
_LEAST_SECONDS = 2.0


def _left(row: HostRow) -> float:
    """Seconds; one whose only URL may be asked for at once has a moment left."""
    return 0.0 if row.eta_seconds is None else max(row.eta_seconds, _MOMENT_SECONDS)


ORDERS: dict[str, Callable[[HostRow], float]] = {
    "left": _left,
    "slowest": lambda row: row.pace_seconds if row.queued else 0.0,
    "largest": lambda row: float(row.queued),
    "done": lambda row: float(row.done),
    "failing": lambda row: float(row.failures),
}
"""By what a table of hosts can be ordered, the largest first; a host with nothing of it is left out."""


class Surveyed(NamedTuple):
    """One whole look."""

    at: float  # epoch seconds, its end
    hosts: Counter[str]  # by state
    first: dict[str, list[HostRow]]  # by the names of ORDERS


class Survey:
    """One look, from its first slice to its ``result``."""

    def __init__(self) -> None:
        self._states: Counter[str] = Counter()
        self._first: dict[str, list[HostRow]] = {name: [] for name in ORDERS}

    def look(self, hosts: Iterable[Host], now: float, leased: Collection[str]) -> None:
        """The next slice."""
        rows = []
        for host in hosts:
            row = host_row(host, now, leased=host.name in leased)
            self._states[row.state] += 1
            rows.append(row)
        for name, key in ORDERS.items():
            first = self._first[name]
            least = key(first[-1]) if len(first) == FIRST_ROWS else 0.0
            better = [row for row in rows if key(row) > least]
            if better:
                self._first[name] = nlargest(FIRST_ROWS, (*first, *better), key=key)

    def result(self, now: float) -> Surveyed:
        """What was seen."""
        return Surveyed(now, self._states, self._first)


class HostSampler:
    """``last`` is the last whole look; None before the first has ended."""

    def __init__(self, scheduler: FrontierScheduler) -> None:
        self.last: Surveyed | None = None
        self._scheduler = scheduler
        self._timer: asyncio.TimerHandle | None = None
        self._spent = 0.0  # seconds of the processor in this look

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def start(self) -> None:
        """Begin a look."""
        self._spent = 0.0
        began = time.thread_time()
        # A copy: it changes while it is looked through.
        hosts = iter(list(self._scheduler.crawl.session.frontier.workbench.hosts.values()))
        self._spent += time.thread_time() - began
        self._go_on(Survey(), hosts)

    def _go_on(self, survey: Survey, hosts: Iterator[Host]) -> None:
        run = self._scheduler.crawl.run
        if run.closed:
            return
        began = time.thread_time()
        some = list(islice(hosts, SLICE_HOSTS))
        survey.look(some, run.now(), self._scheduler.in_flight.by_host)
        self._spent += time.thread_time() - began
        loop = asyncio.get_running_loop()
        if len(some) == SLICE_HOSTS:
            self._timer = loop.call_later(0, self._go_on, survey, hosts)
            return
        self.last = survey.result(run.now())
        self._timer = loop.call_later(max(_LEAST_SECONDS, self._spent / _COST_SHARE), self.start)


STEP_SECONDS = 5.0
"""Between two rows (ours): a chart of an hour has some hundred places, one of the first minute still has a dozen."""
SPAN_SECONDS = 3600.0
_MOST_ROWS = int(SPAN_SECONDS / STEP_SECONDS)
_FORMAT = 1
_DIGITS = 3  # of a rate in the file
# What binds a crawl, in the word that its page begins with.
_STATES = {"rests": "resting", "nothing": "idle", "start": "starting"}
# Of a status, what the page shows as it is.
_AS_THEY_ARE = (
    *("time", "progress", "totals", "pages_per_second", "bytes_per_second", "cpu_share", "lag_seconds", "machine"),
    *("build", "statuses", "short_pauses"),
)


class Totals(NamedTuple):
    """Counts that only grow, of one process."""

    pages: int
    bytes: int
    errors: int


class Levels(NamedTuple):
    """What was so at the moment itself."""

    allowed: float | None  # answers a second that politeness allows; None: not known yet
    queued: int
    in_flight: int
    rss_bytes: int


class Sample(NamedTuple):
    """One moment; rates are means since the row before."""

    at: float  # epoch seconds, the end of its interval
    seconds: float  # how long that was
    pages: float  # a second
    bytes: float  # a second
    errors: float  # a second
    allowed: float | None
    queued: int
    in_flight: int
    rss_bytes: int


class LastHour:
    """A ring of rows. ``now`` is epoch seconds."""

    def __init__(self, rows: Iterable[Sample] = ()) -> None:
        self._rows: deque[Sample] = deque(rows, maxlen=_MOST_ROWS)
        self._before: tuple[float, Totals] | None = None

    def add(self, now: float, totals: Totals, levels: Levels) -> None:
        """The first call of a process only begins to count; one that comes too soon after the last does nothing."""
        before = self._before
        if before is not None and now - before[0] < STEP_SECONDS / 2:
            return
        self._before = now, totals
        if before is None:
            return
        seconds = now - before[0]
        pages, received, errors = (
            round(max(0, new - old) / seconds, _DIGITS) for new, old in zip(totals, before[1], strict=True)
        )
        self._rows.append(Sample(round(now, _DIGITS), round(seconds, _DIGITS), pages, received, errors, *levels))

    def since(self, moment: float, now: float) -> list[Sample]:
        """The rows after ``moment`` that are not older than an hour, oldest first."""
        first = max(moment, now - SPAN_SECONDS)
        return [*takewhile(lambda row: row.at > first, reversed(self._rows))][::-1]

    def as_dict(self, now: float) -> dict[str, Any]:
        """For the file."""
        return {"format": _FORMAT, "columns": Sample._fields, "rows": [list(row) for row in self.since(0.0, now)]}


def read_last_hour(facts: Mapping[str, Any], now: float) -> LastHour:
    """What an earlier process kept, if this version can read it and it is not of a time to come."""
    if facts.get("format") != _FORMAT or facts.get("columns") != list(Sample._fields):
        return LastHour()
    rows = facts.get("rows")
    kept = [Sample(*row) for row in rows if _is_row(row)] if isinstance(rows, list) else []
    return LastHour(sorted(row for row in kept if now - SPAN_SECONDS < row.at <= now))


def _is_row(row: Any) -> bool:
    if not isinstance(row, list) or len(row) != len(Sample._fields):
        return False
    values = [value for name, value in zip(Sample._fields, row, strict=True) if name != "allowed" or value is not None]
    return all(isinstance(value, int | float) and isfinite(value) for value in values)


def live_facts(
    status: Mapping[str, Any], run: Mapping[str, Any], surveyed: Surveyed | None, rows: Sequence[Sample]
) -> dict[str, Any]:
    """For ``/live.json``; ``run`` is how the crawl was started. Empty lists before the first second is over."""
    facts: dict[str, Any] = {**run, "columns": Sample._fields, "rows": [list(row) for row in rows]}
    if not status:
        return {**facts, "state": "starting"}
    bound, stats, uploads = bound_by(load_of(status)), status["stats"], status.get("uploads")
    return {
        **facts,
        **{name: status[name] for name in _AS_THEY_ARE},
        "state": state_of(status),
        "bound": bound._asdict(),
        "errors": errors_by_reason(stats),
        "refused": _by_reason(stats, "refused/"),
        "hosts": hosts_by_state(status, surveyed),
        "allowed": status["progress"]["ceiling_per_second"],
        # Where the archive goes and how far it is; empty when it stays.
        "uploads": f"The archive goes {upload_text(uploads_together([uploads]), status['time'])}." if uploads else "",
    }


def state_of(status: Mapping[str, Any]) -> str:
    """The word that a running crawl's page begins with."""
    return "paused" if status["progress"]["paused"] else _STATES.get(bound_by(load_of(status)).what, "crawling")


def errors_by_reason(stats: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Attempts without an answer, the commonest first."""
    return [(reason, count) for reason, count in _by_reason(stats, "pages/") if reason not in ANSWERED]


def hosts_by_state(status: Mapping[str, Any], surveyed: Surveyed | None) -> dict[str, int]:
    """In memory as surveyed, in that of other workers as these say; on disk with work; given up or held, which may have
    left memory.
    """
    hosts = Counter(surveyed.hosts if surveyed is not None else {}) + Counter(status.get("hosts_beside", {}))
    apart = {"on-disk": status["progress"].get("hosts_on_disk", 0), "parked": status["given_up_hosts"]}
    apart |= status.get("held_hosts", {})
    return dict(hosts) | {state: max(count, hosts.get(state, 0)) for state, count in apart.items() if count}


def host_table(surveyed: Surveyed | None, order: str, most: int) -> dict[str, Any]:
    """For ``/hosts.json``: the first hosts of an order (a name of ORDERS)."""
    rows: Sequence[HostRow] = surveyed.first[order][:most] if surveyed is not None else ()
    return {
        "order": order,
        "time": surveyed.at if surveyed is not None else None,
        "of": surveyed.hosts.total() if surveyed is not None else 0,
        "hosts": [row._asdict() for row in rows],
    }


def _by_reason(stats: Mapping[str, Any], prefix: str) -> list[tuple[str, int]]:
    found = [(key.removeprefix(prefix), count) for key, count in stats.items() if key.startswith(prefix)]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))
