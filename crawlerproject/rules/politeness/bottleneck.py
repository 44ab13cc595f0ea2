"""Decides what bounds a crawl: how fast its pauses let it be and when it can end, and what it is bound by right now.

Three clocks bound a queue: the host's own, that of its name (its ports take turns), and that of the IP address, which
serves one request at a time and rests between two. The slowest of the three wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, NamedTuple

from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.urls import host_name

# A process that computes for this share of the time has no room left (one core; the rest is the system's share).
CPU_SHARE = 0.85
# A tick that comes this late shows the same: the loop was busy with something else.
LAG_SECONDS = 0.25
# Leases out, of those allowed.
LEASE_SHARE = 0.95


class Queue(NamedTuple):
    """One host with work."""

    host: str  # key
    address: str  # IP address; "" when it is not known
    urls: int
    delay_seconds: float  # between an answer's end and the next request
    response_seconds: float  # mean of its last answers; 0.0 when there were none
    free_in_seconds: float  # until it may be asked


class PaceLimits(NamedTuple):
    """What politeness allows to some hosts together."""

    per_second: float | None  # answers; None when no pause bounds them
    seconds: float  # until the last queue is done, if nothing new is found; at least so long
    names: int  # of hosts, their ports counted as one
    addresses: int  # that are known


class _Clock:
    """What one name or one address has to do."""

    __slots__ = ("address", "free_in", "rate", "urls", "work_seconds")

    def __init__(self, free_in: float) -> None:
        self.free_in = free_in
        self.urls = 0
        self.work_seconds = 0.0  # answers and the pauses after them
        self.rate = 0.0  # of an address: answers a second that its names allow
        self.address = ""  # of a name

    @property
    def own_rate(self) -> float:
        """Answers a second, one after the other."""
        return self.urls / self.work_seconds if self.work_seconds > 0 else inf

    def done_in(self, pause_seconds: float) -> float:
        """Seconds until the last of its answers, after which no pause is needed."""
        return self.free_in + max(0.0, self.work_seconds - pause_seconds)


def pace_limits(queues: Iterable[Queue], ip_pause_seconds: float | None) -> PaceLimits:
    """``ip_pause_seconds``: between two requests to an address; None: addresses have no clock (PACE_PER_IP off).

    Linear in the hosts, a microsecond each. A host whose address is unknown counts as the only one of its address.
    """
    queues = [queue for queue in queues if queue.urls > 0]
    with_ports = {host_name(queue.host) for queue in queues if ":" in queue.host}
    names: dict[str, _Clock] = {}  # of those that have ports only: the others have no clock but their host's
    addresses: dict[str, _Clock] = {}
    seconds, rate, alone = 0.0, 0.0, 0
    for host, address, urls, delay, response, free_in in queues:
        cycle = response + delay
        done_in = free_in + urls * cycle - delay
        seconds = max(seconds, done_in)
        at = None
        if address and ip_pause_seconds is not None:
            at = addresses.get(address) or addresses.setdefault(address, _Clock(free_in))
            at.free_in = min(at.free_in, free_in)
            at.urls += urls
            at.work_seconds += urls * (response + ip_pause_seconds)
        if with_ports and (name := host_name(host)) in with_ports:
            clock = names.get(name) or names.setdefault(name, _Clock(free_in))
            clock.free_in = min(clock.free_in, free_in)
            clock.urls += urls
            clock.work_seconds += urls * cycle
            clock.address = clock.address or address
            continue
        alone += 1
        own_rate = 1 / cycle if cycle > 0 else inf
        if at is None:
            rate += own_rate
        else:
            at.rate += own_rate
    for clock in names.values():
        seconds = max(seconds, clock.done_in(clock.work_seconds / clock.urls))
        if clock.address in addresses:
            addresses[clock.address].rate += clock.own_rate
        else:
            rate += clock.own_rate
    for at in addresses.values():
        seconds = max(seconds, at.done_in(ip_pause_seconds or 0.0))
        rate += min(at.rate, at.own_rate)
    return PaceLimits(None if rate == inf else rate, seconds, len(names) + alone, len(addresses))


class Load(NamedTuple):
    """What the running process reports of itself."""

    paused: str
    cpu_share: float  # of one core
    lag_seconds: float
    in_flight: int
    max_in_flight: int
    ready: int  # hosts that could be requested now but for a lease
    waiting: int  # hosts that keep their pause, in memory or on disk
    resting: int
    in_line: int = 0  # hosts whose own pause is over and that of their IP address or their name is not
    looked_up: int = 0  # hosts that wait for the DNS
    queued: int = 0  # URLs


class Bound(NamedTuple):
    """``what``: disk, cpu, leases, politeness, dns, network, rests, start or nothing; ``text`` for a person."""

    what: str
    text: str


def load_of(status: Mapping[str, Any]) -> Load:
    """The load in what a running crawl writes into ``status.json``."""
    progress = status["progress"]
    return Load(
        progress["paused"],
        status["cpu_share"],
        status["lag_seconds"],
        progress["hosts_in_flight"],
        status["max_in_flight"],
        progress["hosts_ready"],
        progress["hosts_waiting"] + progress.get("hosts_on_disk", 0),
        progress["hosts_resting"],
        progress.get("hosts_in_line", 0),
        progress.get("hosts_looked_up", 0),
        progress.get("queued_urls", 0),
    )


def bound_by(load: Load) -> Bound:
    """The bottleneck; what stops everything comes first."""
    if load.paused:
        return Bound("disk", f"the disk: {load.paused}")
    if load.cpu_share >= CPU_SHARE or load.lag_seconds >= LAG_SECONDS:
        return Bound(
            "cpu", f"the CPU: {load.cpu_share:.0%} of one core is in use, the loop is {load.lag_seconds:.2f} s late"
        )
    if load.in_flight >= LEASE_SHARE * load.max_in_flight and load.ready:
        ready = counted(load.ready, "host")
        return Bound("leases", f"FRONTIER_MAX_IN_FLIGHT={load.max_in_flight:,}: {ready} could be asked")
    kept = load.waiting + load.in_line
    if kept > max(load.in_flight, load.looked_up):
        return _politeness(load)
    if load.looked_up > load.in_flight:
        return Bound("dns", f"the DNS: {counted(load.looked_up, 'host')} without an address yet")
    if load.in_flight:
        return Bound("network", f"the network: {counted(load.in_flight, 'answer')} on the way")
    if kept:
        return _politeness(load)
    if load.ready:
        return Bound("network", f"the network: {counted(load.ready, 'host')} about to be asked")
    if load.resting:
        return Bound("rests", f"rests: {counted(load.resting, 'host')} with work after failures, or to be left alone")
    if load.queued:
        return Bound("start", f"the start: {counted(load.queued, 'URL')} of an earlier run to take up")
    return Bound("nothing", "nothing: no host has work")


def _politeness(load: Load) -> Bound:
    in_line = counted(
        load.in_line,
        "host waits for the pause of its IP address or name",
        "hosts wait for the pause of their IP address or name",
    )
    if load.in_line > load.waiting:
        return Bound("politeness", f"politeness: {in_line}")
    also = f", {in_line}" if load.in_line else ""
    waiting = counted(load.waiting, "host with work keeps its pause", "hosts with work keep their pause")
    return Bound("politeness", f"politeness: {waiting}{also}")
