"""Every host of a crawl as one row: its state in one word, what it has, what it owes, where its pace comes from.

And how long politeness alone will still take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from crawlerproject.frontier.hosts.host import HELD, Host, HostState
from crawlerproject.frontier.passage import caused_externally
from crawlerproject.inspection.url_state import Said
from crawlerproject.rules.politeness.bottleneck import Queue, pace_limits
from crawlerproject.rules.politeness.pauses import LEAVE_ALONE_SECONDS
from crawlerproject.stores.protocols import QueuedPage

LEFT_ALONE = f"robots.txt asks for a pause beyond {LEAVE_ALONE_SECONDS / 86_400:.0f} days, that is to be left alone"
UNDONE = frozenset({"in-flight", "waiting", "free"})
"""States of hosts whose queues the end of a crawl waits for."""
_NOT_TO_COME = frozenset({HostState.GIVEN_UP, *HELD})


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
    if host.state is HostState.GIVEN_UP:
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


def pace_source(host: Host) -> Said:
    """Where the pause between two requests to the host comes from; for programs one word and its numbers."""
    samples = host.samples
    if host.left_alone:
        return Said(LEFT_ALONE, pace_source="left-alone", robots_pause_seconds=host.floor_seconds)
    if host.floor_seconds and host.delay_seconds <= host.floor_seconds:
        text = f"robots.txt asks for {host.floor_seconds:g} s"
        return Said(text, pace_source="robots", robots_pause_seconds=host.floor_seconds)
    if not samples:
        return Said("PACE_START_SECONDS: no response time is known yet", pace_source="start")
    mean = sum(samples) / len(samples)
    text = f"mean response time {mean * 1000:.0f} ms of the last {len(samples)} answers, within PACE_MIN and PACE_MAX"
    return Said(text, pace_source="response-time", response_mean_seconds=round(mean, 4), response_answers=len(samples))


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


def with_addresses(ahead: Outlook, said: Mapping[str, Any]) -> Outlook:
    """The same with what the running process says of its own (``progress`` in ``status.json``): it knows addresses."""
    ceiling, eta = said.get("ceiling_per_second"), said.get("eta_seconds")
    if ceiling is not None and ceiling < ahead.ceiling:
        ahead = ahead._replace(ceiling=ceiling)
    if eta is not None and ahead.eta_seconds is not None and eta > ahead.eta_seconds:
        ahead = ahead._replace(eta_seconds=eta)
    return ahead


def _queue(row: HostRow) -> Queue:
    response_seconds = row.response_seconds or 0.0
    return Queue(row.host, row.address, row.queued, row.pace_seconds, response_seconds, row.free_in_seconds)
