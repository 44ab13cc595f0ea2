"""IP addresses: each serves one request at a time and rests between two; hosts stand in line at theirs.

In a line the registered domains take turns, however many hosts each has, slow ones by ``LongRequests``. A host that is
alone at its address meets nothing of this.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from math import inf
from operator import itemgetter
from typing import Generic, Protocol, TypeVar

from crawlerproject.frontier.hosts.domain_turns import BACK_AFTER_SECONDS, LINE
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.rules.politeness.address_turns import LONG_SECONDS, LongRequests

# Entries among which the latest are looked for at a time: 5 ms.
_LOOKED_AT = 25_000


class Timed(Protocol):
    """A thing that waits in at most one heap."""

    serial: int  # of its entry; any other entry is stale; 0: it has none


T = TypeVar("T", bound=Timed)


class TimerHeap(Generic[T]):
    """An entry is never moved: a thing that waits for another moment gets a new one. Moments are epoch seconds."""

    __slots__ = ("_dropped", "_looked_to", "_serial", "heap")

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, T]] = []
        """Moment, serial, thing; the first is the next that ``pop`` returns."""
        self._serial = 0
        self._dropped = 0  # since the heap was rid of what is stale
        self._looked_to = 0  # by ``latest``

    def push(self, item: T, at: float) -> None:
        """Let a thing wait for this moment and no other."""
        self._serial += 1
        item.serial = self._serial
        heappush(self.heap, (at, self._serial, item))

    def pop(self) -> T | None:
        """The first thing, which waits no more; None when its entry is stale."""
        _, serial, item = heappop(self.heap)
        if item.serial != serial:
            return None
        item.serial = 0
        return item

    def drop(self, item: T) -> None:
        """It waits no more."""
        self._dropped += 1
        item.serial = 0

    def tidy(self) -> None:
        """Forget stale entries of what was dropped, once they are half of all."""
        if self._dropped > len(self.heap) // 2:
            self._dropped = 0
            self.heap = [entry for entry in self.heap if entry[2].serial == entry[1]]
            heapify(self.heap)

    def wake_at(self) -> float | None:
        """The first moment; None when nothing waits."""
        heap = self.heap
        while heap and heap[0][2].serial != heap[0][1]:
            heappop(heap)
        return heap[0][0] if heap else None

    def latest(self, count: int, later_than: float) -> list[T]:
        """Some ``count`` things that wait for a moment later than ``later_than``.

        They are the latest of a part of all, another part each time: empty while there may be some in other parts.
        """
        start = self._looked_to if self._looked_to < len(self.heap) else 0
        self._looked_to = start + _LOOKED_AT
        found = [
            entry
            for entry in self.heap[start : start + _LOOKED_AT]
            if entry[0] > later_than and entry[2].serial == entry[1]
        ]
        found.sort(key=itemgetter(0), reverse=True)
        return [item for _, _, item in found[:count]]


IN_LINE = inf
UNRESOLVED = "unresolved:"
"""Begins what stands for the address of a host that has none. It has no clock: the failure must not wait in a line,
from which the host would come back as if it had been found."""
BEHIND_PROXY = "behind-proxy:"
"""The same of a host whose name a proxy resolves, and we cannot: what its address is we do not know."""
_WITHOUT_CLOCK = (UNRESOLVED, BEHIND_PROXY)
# How far apart hosts that find no place in an address's line come back at least, where addresses have no pause.
_LEAST_PAUSE_SECONDS = 0.01
# Of the places in a line those of domains with long requests.
_LONG_PLACES = LINE // 4


class _Line:
    """Hosts that wait for one address, by domain, and what is known of the domains there."""

    __slots__ = ("domains", "long", "long_back_at", "standing")

    def __init__(self) -> None:
        self.domains: OrderedDict[str, deque[Host]] = OrderedDict()  # of which hosts wait, the next to be served first
        self.standing = 0  # hosts in all of them
        self.long = LongRequests()
        self.long_back_at = 0.0  # when the last host of a slow domain comes back that found no place

    def add(self, domain: str, host: Host, *, first: bool = False) -> None:
        hosts = self.domains.setdefault(domain, deque())
        if first:
            hosts.appendleft(host)
            self.domains.move_to_end(domain, last=False)
        else:
            hosts.append(host)
        self.standing += 1

    def pop(self, domain: str, *, last: bool = False) -> Host:
        """The first (or last) host of the domain, which goes behind the others."""
        hosts = self.domains.pop(domain)
        host = hosts.pop() if last else hosts.popleft()
        if hosts:
            self.domains[domain] = hosts
        self.standing -= 1
        return host

    def least_entitled(self, among: Iterable[str], host: Host, domain: str) -> str | None:
        """The domain whose last host gives its place to ``host``; None: each is more entitled to it.

        That is a host of the domain with the most, else the one that has waited for the shortest time.
        """
        hosts = self.domains
        most = max(among, key=lambda each: (len(hosts[each]), hosts[each][-1].wants_address_since))
        own = len(hosts.get(domain, ())) + 1
        later = hosts[most][-1].wants_address_since > host.wants_address_since
        return most if len(hosts[most]) > own or (len(hosts[most]) == own and later) else None


class _IpClock:
    __slots__ = ("back_at", "busy", "line", "name", "next_free", "serial")

    def __init__(self, name: str, next_free: float) -> None:
        self.name = name
        self.next_free = next_free
        self.busy = False
        self.line: _Line | None = None  # nearly always: less memory, and a thing less for the collector to walk
        self.serial = 0
        self.back_at = 0.0  # when the last of those comes back that found no place in the line


class IpClocks:
    """Only of addresses that are busy, rest or have a line. Moments are epoch seconds."""

    def __init__(self, pause_seconds: float | None, free_from: float, domain_of: Callable[[str], str] = str) -> None:
        """``pause_seconds`` between two requests to an address; None: addresses have no clock.

        What an earlier process asked of an address is unknown: each is free from ``free_from`` on. ``domain_of`` gives
        the registered domain of a host key.
        """
        self.pause_seconds = pause_seconds
        self._free_from = free_from
        self._domain_of = domain_of
        self._clocks: dict[str, _IpClock] = {}
        self.waiting: TimerHeap[_IpClock] = TimerHeap()
        self.displaced: list[tuple[Host, float]] = []  # hosts that lost their place in a line, and when they come back

    def least_busy(self, addresses: Sequence[str], current: str, now: float) -> str:
        """The address with the fewest hosts in its line, then the one that is free first; ``current`` when equal."""

        def load(address: str) -> tuple[int, float, bool]:
            ip = self._clocks.get(address)
            if ip is None:
                return 0, now, address != current
            standing = 0 if ip.line is None else ip.line.standing
            return standing + ip.busy, max(ip.next_free, now), address != current

        return min(addresses, key=load) if len(addresses) > 1 else addresses[0]

    def line_up(self, host: Host, now: float) -> float | None:
        """None: the host's address is free, and busy from now on. ``IN_LINE``: the host stands there.

        Any other moment: there is no place in the line, the host comes back then.
        """
        if self.pause_seconds is None or host.address.startswith(_WITHOUT_CLOCK):
            return None
        ip = self._clocks.get(host.address)
        if ip is None:
            ip = self._clocks[host.address] = _IpClock(host.address, self._free_from)
        if ip.busy or ip.next_free > now or ip.line is not None:
            return self._wait(ip, host, now)
        ip.busy, ip.serial, host.wants_address_since = True, 0, 0.0
        return None

    def _wait(self, ip: _IpClock, host: Host, now: float) -> float | None:
        """Join the line of an address that another host uses or used; when it is free, or None."""
        line = ip.line
        if line is None:
            line = ip.line = _Line()
        domain = self._domain_of(host.name)
        slow = domain in line.long.used
        if not (ip.busy or ip.next_free > now or line.long.next(line.domains, now)) and not (
            slow and line.long.begin_from > now
        ):
            ip.busy, ip.serial, host.wants_address_since = True, 0, 0.0
            return None
        host.wants_address_since = host.wants_address_since or now
        among = [each for each in line.domains if each in line.long.used] if slow else list(line.domains)
        if (slow and sum(len(line.domains[each]) for each in among) >= _LONG_PLACES) or line.standing >= LINE:
            other = line.least_entitled(among, host, domain) if among else None
            if other is None:
                return self._back(ip, slow, now)
            self.displaced.append((line.pop(other, last=True), self._back(ip, slow, now)))
        line.add(domain, host)
        if not ip.busy and (not ip.serial or (line.long.used and not slow)):
            self._wake(ip, now)
        return IN_LINE

    def _back(self, ip: _IpClock, slow: bool, now: float) -> float:
        """When a host comes back that has no place: no sooner than it could be served, before the line is empty."""
        if slow and (line := ip.line) is not None:
            line.long_back_at = max(line.long_back_at, line.long.begin_from, now + BACK_AFTER_SECONDS) + LONG_SECONDS
            return line.long_back_at
        pause = max(self.pause_seconds or 0.0, _LEAST_PAUSE_SECONDS)
        ip.back_at = max(ip.back_at, now + max(LINE // 2 * pause, BACK_AFTER_SECONDS)) + pause
        return ip.back_at

    def _wake(self, ip: _IpClock, now: float) -> None:
        """Look at an address again when its line may be served, or to forget it."""
        line, at = ip.line, max(ip.next_free, now)
        if line is not None and line.long.used and not line.long.next(line.domains, at):
            at = max(at, line.long.begin_from)
        self.waiting.push(ip, at)

    def serve(self, now: float) -> Host | None:
        """The host whose turn it is at the first address that is due; its address is busy from now on."""
        ip = self.waiting.pop()
        if ip is None:
            return None
        line = ip.line
        if line is None:
            del self._clocks[ip.name]
            return None
        if (domain := line.long.next(line.domains, now)) is None:
            if line.domains or line.long.begin_from > now:
                self._wake(ip, now)
            else:
                del self._clocks[ip.name]
            return None
        host = line.pop(domain)
        ip.busy, ip.serial, host.wants_address_since = True, 0, 0.0
        return host

    def ended(self, address: str, next_free: float | None, now: float) -> None:
        """A turn at the address is over; None: nothing was sent, so it is as free as it was before."""
        if (ip := self._clocks.get(address)) is not None:
            ip.busy = False
            if next_free is not None:
                ip.next_free = next_free
            if ip.line is None:
                self.waiting.push(ip, next_free if next_free is not None else max(now, ip.next_free))
                return
            self._wake(ip, now)

    def took(self, host: Host, seconds: float, now: float) -> None:
        """A request of the host has ended that took so long: what is known where others wait, or did of late."""
        if (ip := self._clocks.get(host.address)) is not None and ip.line is not None:
            long = ip.line.long
            long.took(self._domain_of(host.name), seconds, now, quick_waits=long.quick_among(ip.line.domains))

    def refused(self, host: Host, now: float, *, until: float, gives_way: bool) -> float | None:
        """Another worker has the turn at the host's address: as ``line_up``, with the host first in its line.

        ``until`` none of ours has a turn there, unless that is of the host's domain alone, which ``gives_way``.
        """
        ip = self._clocks.get(host.address)
        if ip is None:
            return until
        ip.busy = False
        line = ip.line = ip.line or _Line()
        domain = self._domain_of(host.name)
        if gives_way:
            line.long.give_way(domain, until)
            place = self._wait(ip, host, now)
        else:
            ip.next_free = max(ip.next_free, until)
            host.wants_address_since = host.wants_address_since or now
            line.add(domain, host, first=True)
            place = IN_LINE
        self._wake(ip, now)
        return place

    def quick_waits(self, address: str) -> bool:
        """Whether a quick domain waits in the address's line."""
        ip = self._clocks.get(address)
        return ip is not None and ip.line is not None and ip.line.long.quick_among(ip.line.domains)

    def leave(self, host: Host) -> None:
        """A host that stands in line does so no more."""
        line = self._clocks[host.address].line
        assert line is not None
        domain = self._domain_of(host.name)
        hosts = line.domains[domain]
        hosts.remove(host)
        line.standing -= 1
        if not hosts:
            del line.domains[domain]
