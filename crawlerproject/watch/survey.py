"""The hosts in memory, looked at some hundred at a time: how many are in which state, and the first ones of each order.

A crawl may have a hundred thousand hosts in memory, and the event loop has a millisecond to spare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from heapq import nlargest
from typing import NamedTuple

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.inspection.host_table import HostRow, host_row

FIRST_ROWS = 50
"""Of each order (ours): what a person reads; all hosts: ``scrapy hosts``."""

_MOMENT_SECONDS = 0.001


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
