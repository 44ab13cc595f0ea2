"""IP addresses: each serves one request at a time and rests between two; hosts stand in line at theirs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import inf
from typing import Generic, Protocol, TypeVar

from crawlerproject.frontier.hosts.domain_turns import BACK_AFTER_SECONDS, LINE
from crawlerproject.frontier.hosts.timer_heap import TimerHeap

IN_LINE = inf
UNRESOLVED = "unresolved:"
"""Begins what stands for the address of a host that has none. It has no clock: the failure must not wait in a line,
from which the host would come back as if it had been found."""
BEHIND_PROXY = "behind-proxy:"
"""The same of a host whose name a proxy resolves, and we cannot: what its address is we do not know."""
_WITHOUT_CLOCK = (UNRESOLVED, BEHIND_PROXY)
# How far apart hosts that find no place in an address's line come back at least, where addresses have no pause.
_LEAST_PAUSE_SECONDS = 0.01


class Placed(Protocol):
    """What matters of a host here."""

    address: str


H = TypeVar("H", bound=Placed)


class _IpClock(Generic[H]):
    __slots__ = ("back_at", "busy", "line", "name", "next_free", "serial")

    def __init__(self, name: str, next_free: float) -> None:
        self.name = name
        self.next_free = next_free
        self.busy = False
        self.line: deque[H] | None = None  # nearly always: 600 bytes less, and a thing less for the collector to walk
        self.serial = 0
        self.back_at = 0.0  # when the last of those comes back that found no place in the line


class IpClocks(Generic[H]):
    """Only of addresses that are busy, rest or have a line. Moments are epoch seconds."""

    def __init__(self, pause_seconds: float | None, free_from: float) -> None:
        """``pause_seconds`` between two requests to an address; None: addresses have no clock.

        What an earlier process asked of an address is unknown: each is free from ``free_from`` on.
        """
        self.pause_seconds = pause_seconds
        self._free_from = free_from
        self._clocks: dict[str, _IpClock[H]] = {}
        self.waiting: TimerHeap[_IpClock[H]] = TimerHeap()

    def least_busy(self, addresses: Sequence[str], current: str, now: float) -> str:
        """The address with the fewest hosts in its line, then the one that is free first; ``current`` when equal."""

        def load(address: str) -> tuple[int, float, bool]:
            ip = self._clocks.get(address)
            if ip is None:
                return 0, now, address != current
            return len(ip.line or ()) + ip.busy, max(ip.next_free, now), address != current

        return min(addresses, key=load) if len(addresses) > 1 else addresses[0]

    def line_up(self, host: H, now: float) -> float | None:
        """None: the host's address is free, and busy from now on. ``IN_LINE``: the host stands there.

        Any other moment: the line is full, the host comes back then.
        """
        if self.pause_seconds is None or host.address.startswith(_WITHOUT_CLOCK):
            return None
        ip = self._clocks.get(host.address)
        if ip is None:
            ip = self._clocks[host.address] = _IpClock(host.address, self._free_from)
        if ip.line is not None and len(ip.line) >= LINE:
            # No sooner than the address could serve them, and before its line is empty.
            pause = max(self.pause_seconds, _LEAST_PAUSE_SECONDS)
            ip.back_at = max(ip.back_at, now + max(LINE // 2 * pause, BACK_AFTER_SECONDS)) + pause
            return ip.back_at
        if ip.busy or ip.next_free > now or ip.line:
            if ip.line is None:
                ip.line = deque()
            ip.line.append(host)
            if not ip.busy and not ip.serial:
                self.waiting.push(ip, ip.next_free)
            return IN_LINE
        ip.busy = True
        ip.serial = 0
        return None

    def serve(self) -> H | None:
        """The first host in the line of the first address that is due; its address is busy from now on."""
        ip = self.waiting.pop()
        if ip is None:
            return None
        if not ip.line:
            del self._clocks[ip.name]
            return None
        ip.busy = True
        return ip.line.popleft()

    def ended(self, address: str, next_free: float | None, now: float) -> None:
        """A turn at the address is over; None: nothing was sent, so it is as free as it was before."""
        if (ip := self._clocks.get(address)) is not None:
            ip.busy = False
            if next_free is not None:
                ip.next_free = next_free
            self.waiting.push(ip, ip.next_free if next_free is not None else max(now, ip.next_free))

    def leave(self, host: H) -> None:
        """A host that stands in line does so no more."""
        line = self._clocks[host.address].line
        assert line is not None
        line.remove(host)
