"""Every host of a crawl as one row: its state in one word, what it has, what it owes, where its pace comes from.

And all of them summed up: how long politeness alone will still take, and the first of them in an order. A million
hosts, row by row, take half a minute: the native reader counts their packed states some thousand at a time
(``census.c``), and rows are made of those that are shown and of the few whose state is not plain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import nsmallest
from itertools import islice
from math import inf
from operator import attrgetter
from typing import Any, NamedTuple

from crawlerproject import native
from crawlerproject.frontier.hosts.host import HELD, Host, HostState
from crawlerproject.frontier.passage import caused_externally
from crawlerproject.inspection.url_state import Fact
from crawlerproject.rules.politeness.bottleneck import Queue, pace_limits
from crawlerproject.rules.politeness.pauses import LEAVE_ALONE_SECONDS
from crawlerproject.rules.printable import LATEST
from crawlerproject.stores.protocols import QueuedPage

LEFT_ALONE = f"robots.txt asks for a pause beyond {LEAVE_ALONE_SECONDS / 86_400:.0f} days, that is to be left alone"
UNDONE = frozenset({"in-flight", "waiting", "free"})
"""States of hosts whose queues the end of a crawl waits for."""
_NOT_TO_COME = frozenset({HostState.PARKED, *HELD})


class HostRow(NamedTuple):
    """One host at one moment."""

    host: str
    state: str
    queued: int
    done: int  # answers ever received, robots.txt included
    known: int  # URLs ever accepted
    pace_seconds: float
    response_seconds: float | None  # mean of the last answers
    free_in_seconds: float
    rests_seconds: float  # left of a rest that the host asked for or that a failure brought
    failures: int  # in a row
    eta_seconds: float | None  # its queue at its pace; None when nothing is queued, or it is parked or held
    address: str = ""  # where it was asked last in this run; "" when that is not known here


class Outlook(NamedTuple):
    """What is left of a crawl. Rests are counted apart: what follows a rest is not known."""

    hosts: Counter[str]  # by state
    queued: int  # of hosts that are neither resting nor parked
    eta_seconds: float | None  # until the last of those is done, if nothing new is found
    slowest: list[HostRow]  # what the end waits for, the longest first
    resting_queued: int
    rests_end_in_seconds: float | None  # the last of them
    parked_queued: int
    ceiling: float  # answers a second that politeness allows now, over all hosts with work


def host_state(host: Host, now: float, *, leased: bool = False) -> str:
    """``in-flight``, ``paused``, ``limited``, ``parked``, ``left-alone``, ``resting``, ``waiting`` (for its pace),
    ``free`` or ``done``.
    """
    if leased:
        return "in-flight"
    if host.state in HELD and host.rows:
        return host.state.value
    if host.state is HostState.PARKED:
        return "parked"
    if host.left_alone:
        return "left-alone"
    if not host.rows:
        return "done"
    if host.rests_until(now):
        return "resting"
    return "waiting" if host.next_free > now else "free"


def stand_at_door(host: Host, first: QueuedPage | None, now: float) -> None:
    """Show a copy of a stored host as what it is: at its door, when the ``first`` row of its queue waits for that."""
    if first is not None and host.door.until > now and caused_externally(first):
        host.at_door = True


def pace_source(host: Host) -> Fact:
    """Where the pause between two requests to the host comes from; for programs one word and its numbers."""
    samples = host.samples
    if host.left_alone:
        return Fact(LEFT_ALONE, pace_source="left-alone", robots_pause_seconds=host.floor_seconds)
    if host.floor_seconds and host.delay_seconds <= host.floor_seconds:
        text = f"robots.txt asks for {host.floor_seconds:g} s"
        return Fact(text, pace_source="robots", robots_pause_seconds=host.floor_seconds)
    if not samples:
        return Fact("PACE_START_SECONDS: no response time is known yet", pace_source="start")
    mean = sum(samples) / len(samples)
    text = f"mean response time {mean * 1000:.0f} ms of the last {len(samples)} answers, within PACE_MIN and PACE_MAX"
    return Fact(text, pace_source="response-time", response_mean_seconds=round(mean, 4), response_answers=len(samples))


def host_rows(
    hosts: Iterable[tuple[str, bytes]],
    now: float,
    leased: Collection[str] = (),
    head: Callable[[str, int], list[QueuedPage]] | None = None,
) -> Iterator[HostRow]:
    """Rows from the store's packed hosts, in its order; ``head`` gives the first rows of a host's queue."""
    for name, packed in hosts:
        host = Host.unpack(name, packed)
        if head is not None and host.rows and host.door.until > now:
            stand_at_door(host, next(iter(head(name, 1)), None), now)
        if host.known or host.fetched or host.rows or not host.other_ports:  # else it only names its other ports
            yield host_row(host, now, leased=name in leased)


def host_row(host: Host, now: float, *, leased: bool = False) -> HostRow:
    """One host's row."""
    state = host_state(host, now, leased=leased)
    mean = sum(host.samples) / len(host.samples) if host.samples else None
    free_in = max(0.0, max(host.next_free, host.rests_until(now)) - now)
    issuer = host.rows * (host.delay_seconds + (mean or 0.0)) - host.delay_seconds
    return HostRow(
        host.name,
        state,
        host.rows,
        host.fetched,
        host.known,
        host.delay_seconds,
        mean,
        free_in,
        max(0.0, host.rests_until(now) - now),
        host.failures,
        free_in + max(0.0, issuer) if host.rows and state not in _NOT_TO_COME else None,
        host.address,
    )


def queue_of(host: Host, urls: int, now: float) -> Queue:
    """What of a host bounds a crawl: ``urls`` are those that are left to ask for."""
    samples = host.samples
    response_seconds = sum(samples) / len(samples) if samples else 0.0
    # Another host that is to answer for its robots.txt may do so at any moment.
    held = host.held_until > now and not host.at_door
    free_in = (host.pace_free if held else host.next_free) - now
    return Queue(host.name, host.address, urls, host.delay_seconds, response_seconds, free_in if free_in > 0.0 else 0.0)


def outlook(rows: Iterable[HostRow], slowest: int = 3, *, ip_pause_seconds: float | None = None) -> Outlook:
    """Sum the rows up; ``ip_pause_seconds`` counts where the rows' addresses are known."""
    states: Counter[str] = Counter()
    queued = resting_queued = parked_queued = 0
    active: list[HostRow] = []
    rests_end: float | None = None
    for row in rows:
        states[row.state] += 1
        if row.state == "parked":
            parked_queued += row.queued
        elif row.state == "resting":
            resting_queued += row.queued
            rests_end = max(rests_end or 0.0, row.rests_seconds)
        elif row.state in UNDONE and row.queued:
            queued += row.queued
            active.append(row)
    active.sort(key=lambda row: -(row.eta_seconds or 0.0))
    allowed = pace_limits(map(_queue, active), ip_pause_seconds)
    return Outlook(
        states,
        queued,
        allowed.seconds if active else None,
        active[:slowest],
        resting_queued,
        rests_end,
        parked_queued,
        allowed.per_second or 0.0,
    )


def with_addresses(ahead: Outlook, status: Mapping[str, Any]) -> Outlook:
    """The same with what the running process says of its own (``progress`` in ``status.json``): it knows addresses."""
    ceiling, eta = status.get("ceiling_per_second"), status.get("eta_seconds")
    if ceiling is not None and ceiling < ahead.ceiling:
        ahead = ahead._replace(ceiling=ceiling)
    if eta is not None and ahead.eta_seconds is not None and eta > ahead.eta_seconds:
        ahead = ahead._replace(eta_seconds=eta)
    return ahead


def _queue(row: HostRow) -> Queue:
    response_seconds = row.response_seconds or 0.0
    return Queue(row.host, row.address, row.queued, row.pace_seconds, response_seconds, row.free_in_seconds)


_AT_ONCE = 20_000  # of hosts: some 4 MB (ours)
_SLOWEST = 3
TEXTS = ("host", "state", "address")
"""Columns of a HostRow that are ordered from a to z; numbers from the largest, what is not known last."""
_WORDS = ("done", "free", "in-flight", "left-alone", "limited", "parked", "paused", "resting", "waiting")
Packed = tuple[str, bytes]
Head = Callable[[str, int], list[QueuedPage]]


class Census(NamedTuple):
    """``ahead`` is of all hosts; ``chosen`` are in the state that was asked for, ``rows`` are the first of these."""

    ahead: Outlook
    chosen: int
    rows: list[HostRow]


def census(
    hosts: Iterable[Packed],
    now: float,
    leased: Collection[str],
    head: Head,
    *,
    column: str = "host",
    limit: int = 0,
    state: str | None = None,
    queued: bool = False,
) -> Census:
    """Look at each host of a store once; ``limit`` rows by a ``column`` of HostRow, then by name.

    Of those in a ``state``, if one is given; or of those with ``queued`` URLs.
    """
    counted = _Counted(now, frozenset(leased), head, column, limit, state, queued=queued)
    stream = iter(hosts)
    while some := list(islice(stream, _AT_ONCE)):
        counted.add(some)
    return counted.result()


def _rank(row: HostRow, column: str) -> float:
    """The least comes first."""
    if column in TEXTS:
        return _WORDS.index(row.state) if column == "state" else 0.0  # by name, which stands behind each rank
    value = attrgetter(column)(row)
    return inf if value is None else -value


class _First:
    """The hosts of the least ranks."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: list[tuple[float, str, bytes]] = []

    def add(self, found: Iterable[tuple[float, str, bytes]]) -> None:
        self._kept = sorted([*self._kept, *found])[: self._limit]  # two runs in order, nearly

    @property
    def limit(self) -> tuple[float, str | None]:
        """What comes before this rank and name is among the first; without a name, anything is."""
        if len(self._kept) < self._limit:
            return inf, None
        return self._kept[-1][:2] if self._kept else (-inf, "")

    def hosts(self) -> list[Packed]:
        """From the first on."""
        return [(name, packed) for _, name, packed in self._kept]


class _Counted:
    """What was seen so far."""

    def __init__(
        self,
        now: float,
        leased: frozenset[str],
        head: Head,
        column: str,
        limit: int,
        state: str | None,
        *,
        queued: bool,
    ) -> None:
        self._now, self._leased, self._head, self._column = now, leased, head, column
        self._state = state
        self._queued_only = queued
        self._first, self._slowest = _First(limit), _First(_SLOWEST)
        self._states: Counter[str] = Counter()
        self._queued = self._resting_queued = self._parked_queued = self._count = 0
        self._rests_seconds = self._eta_seconds = -1.0  # none yet
        self._ceiling = 0.0
        self._of_ports: list[HostRow] = []  # names share a clock with their ports: summed up together

    def add(self, hosts: list[Packed]) -> None:
        """The next ones."""
        if (page := native.reader) is None:
            self._add_rows(hosts)
            return
        odd, first, slowest, chosen, states, queued, eta_seconds, *others = page.census(
            *(hosts, self._leased, self._now, LATEST, LEAVE_ALONE_SECONDS, HostRow._fields.index(self._column)),
            *(-1 if self._state is None else _WORDS.index(self._state), self._queued_only),
            *(self._first.limit, self._slowest.limit),
        )
        self._count += chosen
        self._sum(Outlook(Counter(dict(zip(_WORDS, states, strict=True))), queued, eta_seconds, [], *others))
        self._first.add(first)
        self._slowest.add(slowest)
        self._add_rows(odd)

    def _add_rows(self, hosts: list[Packed]) -> None:
        """Those of which a row is made."""
        packed, alone = dict(hosts), []
        for row in host_rows(hosts, self._now, self._leased, self._head):
            if self._state in (None, row.state) and (row.queued or not self._queued_only):
                self._count += 1
                self._first.add([(_rank(row, self._column), row.host, packed[row.host])])
            if row.queued and (":" in row.host or Host.unpack(row.host, packed[row.host]).other_ports):
                self._of_ports.append(row)
            else:
                alone.append(row)
        self._sum(outlook(alone))
        self._slowest.add((-(row.eta_seconds or 0.0), row.host, packed[row.host]) for row in alone if _waits(row))

    def _sum(self, ahead: Outlook) -> None:
        self._states += ahead.hosts
        self._queued += ahead.queued
        self._resting_queued += ahead.resting_queued
        self._parked_queued += ahead.parked_queued
        self._rests_seconds = max(self._rests_seconds, _known(ahead.rests_end_in_seconds))
        self._eta_seconds = max(self._eta_seconds, _known(ahead.eta_seconds))
        self._ceiling += ahead.ceiling

    def result(self) -> Census:
        """Of all that were added."""
        self._sum(outlook(self._of_ports))
        slowest = [*self._rows(self._slowest), *filter(_waits, self._of_ports)]
        ahead = Outlook(
            self._states,
            self._queued,
            None if self._eta_seconds < 0 else self._eta_seconds,
            nsmallest(_SLOWEST, slowest, key=lambda row: -(row.eta_seconds or 0.0)),
            self._resting_queued,
            None if self._rests_seconds < 0 else self._rests_seconds,
            self._parked_queued,
            self._ceiling if self._ceiling < inf else 0.0,
        )
        return Census(ahead, self._count, self._rows(self._first))

    def _rows(self, first: _First) -> list[HostRow]:
        return list(host_rows(first.hosts(), self._now, self._leased, self._head))


def _waits(row: HostRow) -> bool:
    """Whether the end of a crawl waits for it."""
    return row.state in UNDONE and row.queued > 0


def _known(seconds: float | None) -> float:
    return -1.0 if seconds is None else seconds
