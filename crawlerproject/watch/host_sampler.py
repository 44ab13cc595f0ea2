"""Looks through the hosts in memory while a crawl is watched: how many are in which state, the first of each order.

A crawl may have a hundred thousand hosts in memory, and the event loop has a millisecond to spare: it looks at some
hundred hosts at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.inspection.host_table import HostRow, host_row

if TYPE_CHECKING:
    from crawlerproject.crawl.scheduler import FrontierScheduler

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
