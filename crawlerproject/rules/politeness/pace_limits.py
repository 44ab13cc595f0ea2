"""Decides how fast a crawl may be, and when it can end at the earliest, if pauses alone count.

Three clocks bound a queue: the host's own, that of its name (its ports are asked in turn), and that of the IP address,
which serves one request at a time and rests between two. The slowest of the three wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from crawlerproject.rules.url.urls import host_name


class Queue(NamedTuple):
    """One host with work."""

    host: str  # key
    address: str  # IP address; "" when it is not known
    urls: int
    delay_seconds: float  # between an answer's end and the next request
    response_seconds: float  # mean of its last answers; 0.0 when there were none
    free_in_seconds: float  # until it may be asked


class Limits(NamedTuple):
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


def limits(queues: Iterable[Queue], ip_pause_seconds: float | None) -> Limits:
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
            _take_port(names, name, Queue(host, address, urls, delay, response, free_in))
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
    return Limits(None if rate == inf else rate, seconds, len(names) + alone, len(addresses))


def _take_port(names: dict[str, _Clock], name: str, port: Queue) -> None:
    """One port more of a name: they are asked in turn."""
    clock = names.get(name)
    if clock is None:
        clock = names[name] = _Clock(port.free_in_seconds)
    clock.free_in = min(clock.free_in, port.free_in_seconds)
    clock.urls += port.urls
    clock.work_seconds += port.urls * (port.response_seconds + port.delay_seconds)
    clock.address = clock.address or port.address
