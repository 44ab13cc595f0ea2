"""Which host may be asked next: hosts and IP addresses ordered by their next free moment.

Pure: no clock, no network, no store. A host with work is always in exactly one place: waiting for its
own moment (in the heap), waiting for another port of its name (in that name's line), waiting at its address
(in that address's line), being looked up or waiting for that (``domains``), or in flight. An address serves one
request at a time and rests ``ip_pause_seconds`` between two (BUbiNG's workbench, WWW 2014: an address is ready when
it and its first host are). The ports of one name are hosts of their own with one clock: one of them has the turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from crawlerproject.frontier.hosts.domain_turns import BACK_AFTER_SECONDS, LINE, DomainTurns

# Entries of the heap that one question may go through without finding a turn: some 10 ms.
_LOOKED_THROUGH = 2_000
# Entries among which the latest are looked for at a time: 5 ms.
_LOOKED_AT = 25_000
# How far apart hosts that find no place in an address's line come back at least, where addresses have no pause.
_LEAST_PAUSE_SECONDS = 0.01


class Stage(IntEnum):
    """Where a host stands."""

    IDLE = 0  # no work and its clock still runs; dropped when it is free
    WAITING = 1  # for its own clock
    LOOKED_UP = 2  # its name is with the resolver
    IN_LINE = 3  # its own clock is free, its address's is not
    IN_FLIGHT = 4
    BEHIND = 5  # its name is to be looked up, after others of its domain


class HostClock:
    """One host's place in time. Epoch seconds throughout."""

    __slots__ = (
        "address",
        "address_until",
        "delay_seconds",
        "domain",
        "embeds",
        "name",
        "next_free",
        "ports",
        "rendering",
        "serial",
        "stage",
        "work",
    )

    def __init__(self, name: str, next_free: float = 0.0, delay_seconds: float = 0.0) -> None:
        self.name = name
        self.next_free = next_free
        self.delay_seconds = delay_seconds  # promised between an answer's end and the next request
        self.ports: PortsClock[Any] | None = None  # shared with the name's other ports; None: it has none
        self.work = False
        self.stage = Stage.IDLE
        self.serial = 0  # of its entry in the heap; any other entry is stale
        self.address = ""
        self.address_until = 0.0
        self.domain = ""  # the registered one, known from the first look-up on
        self.embeds = 0  # sub-requests of pages in the browser that wait for its turns: work, whatever its queue holds
        self.rendering = False  # a page of its is in the browser: not to be forgotten meanwhile


H = TypeVar("H", bound=HostClock)
"""What a frontier knows of a host besides its clock is its own business."""


class PortsClock(Generic[H]):
    """The clock that all ports of one name share: one of them is asked at a time, at the pace of the name."""

    __slots__ = (
        "ended",
        "hosts",
        "known",
        "last",
        "line",
        "name",
        "next_free",
        "numbers",
        "promised_seconds",
        "rest_until",
        "turn",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.hosts: dict[H, float] = {}  # those in memory, and when each was asked last
        self.numbers: set[int] = set()  # every other port than the default that was ever taken up
        self.known = 0  # URLs ever accepted, of all ports
        self.turn: H | None = None  # whose turn it is, from its look-up to its answer's end
        self.line: deque[H] = deque()  # free but for another's turn
        self.ended = 0.0  # the last answer of any port
        self.next_free = 0.0  # none is asked before this
        self.last: H | None = None  # that was asked
        self.promised_seconds = 0.0  # after its answer's end
        self.rest_until = 0.0  # the end of the last rest that a port asked for

    def free_at(self, host: H) -> float:
        """From when the host may be asked, as far as the others are concerned: never sooner than its own pause."""
        return max(self.next_free, self.ended + host.delay_seconds)

    def goes_before(self, host: H, now: float) -> bool:
        """Whether another port may be asked now that has waited for longer since it was asked."""
        asked = self.hosts[host]
        return any(
            at < asked and other.work and other.stage == Stage.WAITING and other.serial
            and max(other.next_free, self.free_at(other)) <= now
            for other, at in self.hosts.items()
        )  # fmt: skip

    def charge(self, host: H, ended: float, next_free: float) -> None:
        """The host's answer has ended: no port is asked before ``next_free``."""
        self.ended = max(self.ended, ended)
        self.hosts[host] = ended
        self.next_free = max(self.next_free, next_free)
        self.last = host
        self.promised_seconds = next_free - ended


class _IpClock(Generic[H]):
    __slots__ = ("back_at", "busy", "line", "name", "next_free", "serial")

    def __init__(self, name: str, next_free: float) -> None:
        self.name = name
        self.next_free = next_free
        self.busy = False
        self.line: deque[H] = deque()
        self.serial = 0
        self.back_at = 0.0  # when the last of those comes back that found no place in the line


class Turn(NamedTuple, Generic[H]):
    """A host that may act now: fetch from ``address``, or look its name up when that is empty."""

    host: H
    address: str


class Workbench(Generic[H]):
    """All hosts that have work, and the addresses they live at."""

    def __init__(
        self,
        *,
        per_ip: bool = True,
        ip_pause_seconds: float = 0.5,
        ips_free_from: float = 0.0,
        domain_of: Callable[[str], str] | None = None,
    ) -> None:
        """``domain_of`` gives the registered domain of a host key; None: every host is looked up when it is free."""
        self.hosts: dict[str, H] = {}
        self.names: dict[str, PortsClock[H]] = {}  # by host name: those of which other ports are known
        self.in_flight = 0
        self._per_ip = per_ip
        self._ip_pause_seconds = ip_pause_seconds
        # What an earlier process asked of an address is unknown: after a start every address rests once.
        self._ips_free_from = ips_free_from
        self._ips: dict[str, _IpClock[H]] = {}
        self._domains: DomainTurns[H] | None = DomainTurns(domain_of) if domain_of is not None else None
        self._heap: list[tuple[float, int, H]] = []
        # Of their own: behind hosts that are long overdue, addresses would neither be served nor forgotten.
        self._ip_heap: list[tuple[float, int, _IpClock[H]]] = []
        self._serial = 0
        self.waited: deque[H] | None = None  # hosts that began to wait, the last last; None: they are not recorded
        self._looked_to = 0  # in the heap, by ``latest``
        self._dropped = 0  # since the heap was rid of what is stale

    @property
    def ip_pause_seconds(self) -> float | None:
        """Between two requests to an address; None when addresses have no clock."""
        return self._ip_pause_seconds if self._per_ip else None

    def add(self, host: H) -> None:
        """Take in a host (or learn that a known one has work again)."""
        self.hosts.setdefault(host.name, host)
        host.work = True
        if host.stage == Stage.IDLE:
            host.stage = Stage.WAITING
            if not host.serial:
                self._push(host, host.next_free)

    def take(self, now: float) -> Turn[H] | None:
        """The next host that is free now, already marked as looked up or in flight; None when none is.

        None as well when very many were looked through in vain: ``wake_at`` is not in the future then.
        """
        heap, ips = self._heap, self._ip_heap
        for _ in range(_LOOKED_THROUGH):
            if ips and ips[0][0] <= now:
                _, serial, ip = heappop(ips)
                if ip.serial != serial:
                    continue
                ip.serial = 0
                turn = self._serve(ip, now)
            elif heap and heap[0][0] <= now:
                _, serial, host = heappop(heap)
                if host.serial != serial:
                    continue
                host.serial = 0
                turn = self._free(host, now)
            else:
                return None
            if turn is not None:
                return turn
        return None

    def first_turn(self, host: H, now: float) -> float:
        """When a new host for which memory has no room is due."""
        return now if self._domains is None else self._domains.first_turn(host, now)

    def least_busy(self, addresses: Sequence[str], current: str, now: float) -> str:
        """The address with the fewest hosts in its line, then the one that is free first; ``current`` when equal."""

        def load(address: str) -> tuple[int, float, bool]:
            ip = self._ips.get(address)
            if ip is None:
                return 0, now, address != current
            return len(ip.line) + ip.busy, max(ip.next_free, now), address != current

        return min(addresses, key=load) if len(addresses) > 1 else addresses[0]

    def found(self, host: H, address: str, address_until: float, now: float) -> Turn[H] | None:
        """The resolver's answer. A turn when the address is free at once, else the host stands in its line."""
        host.address, host.address_until = address, address_until
        turn = self._line_up(host, now)
        if host.stage != Stage.IN_LINE:
            self._step_on(host)
        return turn

    def ended(self, host: H, now: float, next_free: float, *, work: bool) -> None:
        """The answer (or failure) of the host's request has ended: start its clock and its address's."""
        self.in_flight -= 1
        if self._per_ip and (ip := self._ips.get(host.address)) is not None:
            ip.busy = False
            ip.next_free = now + self._ip_pause_seconds
            self._push_ip(ip, ip.next_free)
        self.wait(host, next_free, work=work)

    def wait(self, host: H, next_free: float, *, work: bool) -> None:
        """Let a host that was handed out (or is waiting) wait until ``next_free``."""
        host.next_free = next_free
        host.work = work = work or host.embeds > 0
        host.stage = Stage.WAITING if work else Stage.IDLE
        if host.ports is not None:
            self._turn_over(host, host.ports)
        self._push(host, next_free)
        if self.waited is not None:
            self.waited.append(host)

    def share(self, host: H, name: str) -> PortsClock[H]:
        """Let a host share the clock of its name's ports from now on."""
        clock = self.names.get(name)
        if clock is None:
            clock = self.names[name] = PortsClock(name)
        host.ports = clock
        clock.hosts.setdefault(host, 0.0)
        if host.stage not in (Stage.IDLE, Stage.WAITING, Stage.BEHIND):
            clock.turn = host
        return clock

    def turn_away(self, host: H, now: float) -> None:
        """A turn that led to a look-up which is not made: the host is to be left alone."""
        self.wait(host, now, work=False)
        self._step_on(host)

    def release(self, host: H, now: float, next_free: float, *, work: bool) -> None:
        """A turn that was taken but sent nothing: its address is free again at once."""
        self.in_flight -= 1
        if self._per_ip and (ip := self._ips.get(host.address)) is not None:
            ip.busy = False
            self._push_ip(ip, max(now, ip.next_free))
        self.wait(host, next_free, work=work)

    def defer(self, host: H, now: float, until: float, *, work: bool) -> None:
        """A turn that was taken but sent nothing, since someone else asks its address, ``until`` then at least."""
        self.in_flight -= 1
        if self._per_ip and (ip := self._ips.get(host.address)) is not None:
            ip.busy = False
            ip.next_free = until
            self._push_ip(ip, until)
        self.wait(host, max(now, until), work=work)

    def drop(self, host: H) -> None:
        """Forget a host that is not in flight: it is somebody else's from now on."""
        del self.hosts[host.name]
        self._dropped += 1
        host.serial = 0
        host.work = False
        if host.stage == Stage.IN_LINE:
            self._ips[host.address].line.remove(host)
        if host.stage in (Stage.IN_LINE, Stage.LOOKED_UP):
            self._step_on(host)
        elif host.stage == Stage.BEHIND and self._domains is not None:
            self._domains.forget(host)
        host.stage = Stage.IDLE
        self._leave(host)

    def tidy(self) -> None:
        """Forget what the heap holds of hosts that were dropped, once that is half of it."""
        if self._dropped > len(self._heap) // 2:
            self._dropped = 0
            self._heap = [entry for entry in self._heap if entry[2].serial == entry[1]]
            heapify(self._heap)

    def latest(self, count: int, later_than: float) -> list[H]:
        """Some ``count`` hosts that wait for their own moment, later than ``later_than``.

        They are the latest of a part of all, another part each time: empty while there may be some in other parts.
        """
        start = self._looked_to if self._looked_to < len(self._heap) else 0
        self._looked_to = start + _LOOKED_AT
        found = [
            entry
            for entry in self._heap[start : start + _LOOKED_AT]
            if entry[0] > later_than and entry[2].serial == entry[1]
        ]
        found.sort(key=itemgetter(0), reverse=True)
        return [host for _, _, host in found[:count]]

    def wake_at(self) -> float | None:
        """The next moment at which ``take`` may have something; None when nothing waits for time."""
        heap, ips = self._heap, self._ip_heap
        while heap and heap[0][2].serial != heap[0][1]:
            heappop(heap)
        while ips and ips[0][2].serial != ips[0][1]:
            heappop(ips)
        if not heap or not ips:
            return heap[0][0] if heap else ips[0][0] if ips else None
        return min(heap[0][0], ips[0][0])

    def _push(self, host: H, at: float) -> None:
        self._serial += 1
        host.serial = self._serial
        heappush(self._heap, (at, self._serial, host))

    def _push_ip(self, ip: _IpClock[H], at: float) -> None:
        self._serial += 1
        ip.serial = self._serial
        heappush(self._ip_heap, (at, self._serial, ip))

    def _free(self, host: H, now: float) -> Turn[H] | None:
        if not host.work:
            # Only now may it be forgotten: dropping it earlier would forget its delay (NUTCH-2947).
            if not host.rendering:
                del self.hosts[host.name]
                self._leave(host)
            return None
        if host.ports is not None and not self._takes_turn(host, host.ports, now):
            return None
        if not host.address or host.address_until <= now:
            return self._look_up(host, now)
        turn = self._line_up(host, now)
        if host.stage == Stage.IN_LINE and self._domains is not None:
            self._domains.stands(host)
        return turn

    def _look_up(self, host: H, now: float) -> Turn[H] | None:
        """A look-up, unless enough hosts of the domain are at it or wait for their address."""
        domains, again = self._domains, bool(host.domain)
        if domains is None or domains.admits(host):
            host.stage = Stage.LOOKED_UP
            return Turn(host, "")
        host.stage = Stage.BEHIND
        back_at = domains.waits(host, now, again=again)
        if back_at:
            self._come_back(host, back_at)
        elif host.ports is not None:
            self._turn_over(host, host.ports)
        return None

    def _step_on(self, host: H) -> None:
        """A host is neither looked up nor in line any more: others of its domain may be looked up."""
        if self._domains is None:
            return
        for following in self._domains.leaves(host):
            following.stage = Stage.WAITING
            self._push(following, following.next_free)

    def _come_back(self, host: H, at: float) -> None:
        """There is no place for the host now."""
        host.stage = Stage.WAITING
        host.next_free = max(host.next_free, at)
        if host.ports is not None:
            self._turn_over(host, host.ports)
        self._push(host, host.next_free)
        if self.waited is not None:
            self.waited.append(host)

    def _takes_turn(self, host: H, clock: PortsClock[H], now: float) -> bool:
        """Whether no other port of the name is asked now; else the host waits for that one's end or the name's pace."""
        if clock.turn is not None:
            clock.line.append(host)
            return False
        if (free_at := clock.free_at(host)) > now:
            host.next_free = free_at
            self._push(host, free_at)
            return False
        if clock.goes_before(host, now):
            clock.line.append(host)
            return False
        clock.turn = host
        return True

    def _turn_over(self, host: H, clock: PortsClock[H]) -> None:
        """Those who waited for this turn go before the host itself, in the order in which they came."""
        if clock.turn is host:
            clock.turn = None
        while clock.line and clock.turn is None:
            other = clock.line.popleft()
            if other.stage == Stage.WAITING and not other.serial:
                other.next_free = max(other.next_free, clock.free_at(other))
                self._push(other, other.next_free)

    def _leave(self, host: H) -> None:
        """A host that is forgotten shares no clock; the last one takes it along."""
        clock, host.ports = host.ports, None
        if clock is None:
            return
        clock.hosts.pop(host, None)
        self._turn_over(host, clock)
        if not clock.hosts:
            del self.names[clock.name]

    def _line_up(self, host: H, now: float) -> Turn[H] | None:
        if not self._per_ip:
            return self._start(host)
        ip = self._ips.get(host.address)
        if ip is None:
            ip = self._ips[host.address] = _IpClock(host.address, self._ips_free_from)
        if len(ip.line) >= LINE:
            # No sooner than the address could serve them, and before its line is empty.
            pause = max(self._ip_pause_seconds, _LEAST_PAUSE_SECONDS)
            ip.back_at = max(ip.back_at, now + max(LINE // 2 * pause, BACK_AFTER_SECONDS)) + pause
            self._come_back(host, ip.back_at)
            return None
        if ip.busy or ip.next_free > now or ip.line:
            host.stage = Stage.IN_LINE
            ip.line.append(host)
            if not ip.busy and not ip.serial:
                self._push_ip(ip, ip.next_free)
            return None
        ip.busy = True
        ip.serial = 0
        return self._start(host)

    def _serve(self, ip: _IpClock[H], now: float) -> Turn[H] | None:
        if not ip.line:
            del self._ips[ip.name]
            return None
        ip.busy = True
        host = ip.line.popleft()
        self._step_on(host)
        return self._start(host)

    def _start(self, host: H) -> Turn[H]:
        host.stage = Stage.IN_FLIGHT
        self.in_flight += 1
        return Turn(host, host.address)
