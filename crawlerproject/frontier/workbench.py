"""Which host may be asked next: hosts and IP addresses ordered by their next free moment.

Pure: no clock, no network, no store. A host with work is always in exactly one place: waiting for its
own moment (in the heap), waiting for another port of its name (in that name's line), waiting at its address
(in that address's line), being looked up or waiting for that (``domains``), aside while places in flight are short and
its domain has its share of them, or in flight. An address serves one
request at a time and rests ``ip_pause_seconds`` between two (BUbiNG's workbench, WWW 2014: an address is ready when
it and its first host are). The ports of one name are hosts of their own with one clock: one of them has the turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Generic, NamedTuple, TypeVar

from crawlerproject.frontier.hosts.domain_turns import SLOW, DomainTurns, Places
from crawlerproject.frontier.hosts.ip_clocks import IN_LINE, IpClocks
from crawlerproject.frontier.hosts.timer_heap import TimerHeap
from crawlerproject.rules.politeness.address_turns import LONG_SECONDS

# Entries of the heap that one question may go through without finding a turn: some 10 ms.
_LOOKED_THROUGH = 2_000


class Stage(IntEnum):
    """Where a host stands."""

    IDLE = 0  # no work and its clock still runs; dropped when it is free
    WAITING = 1  # for its own clock
    LOOKED_UP = 2  # its name is with the resolver
    IN_LINE = 3  # its own clock is free, its address's is not
    IN_FLIGHT = 4
    BEHIND = 5  # its name is to be looked up, after others of its domain
    ASIDE = 6  # free, but its domain has as many requests in flight as places are left


class HostClock:
    """One host's place in time. Epoch seconds throughout."""

    __slots__ = (
        "address", "address_until", "asked_at", "delay_seconds", "domain", "embeds", "name", "next_free", "payer",
        "ports", "rendering", "serial", "stage", "took_seconds", "wants_address_since", "work",
    )  # fmt: skip

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
        self.wants_address_since = 0.0  # in vain so far
        self.domain = ""  # the registered one, known from the first look-up on
        self.payer = ""  # of its last turn: the domain that has the place in flight
        self.asked_at = 0.0  # when that began
        self.took_seconds = 0.0  # how long its turns take: what is quick is believed by and by
        self.embeds = 0  # sub-requests of pages in the browser that wait for its turns: work, whatever its queue holds
        self.rendering = False  # a page of its is in the browser: not to be forgotten meanwhile


H = TypeVar("H", bound=HostClock)
"""What a frontier knows of a host besides its clock is its own business."""


class PortsClock(Generic[H]):
    """The clock that all ports of one name share: one of them is asked at a time, at the pace of the name."""

    __slots__ = (
        "ended", "hosts", "known", "last", "line", "name", "next_free", "numbers", "promised_seconds", "rest_until",
        "turn", "waiting",
    )  # fmt: skip

    def __init__(self, name: str, waiting: TimerHeap[H]) -> None:
        self.name = name
        self.waiting = waiting  # hosts that wait for their own moments
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
        """From when the other ports of the name let the host be asked: never sooner than its own pause."""
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

    def takes_turn(self, host: H, now: float) -> bool:
        """Whether no other port of the name is asked now; else the host waits for that one's end or the name's pace."""
        if self.turn is not None:
            self.line.append(host)
            return False
        if (free_at := self.free_at(host)) > now:
            host.next_free = free_at
            self.waiting.push(host, free_at)
            return False
        if self.goes_before(host, now):
            self.line.append(host)
            return False
        self.turn = host
        return True

    def turn_over(self, host: H) -> None:
        """Hosts that waited for this turn go before the host itself, in the order in which they came."""
        if self.turn is host:
            self.turn = None
        while self.line and self.turn is None:
            other = self.line.popleft()
            if other.stage == Stage.WAITING and not other.serial:
                other.next_free = max(other.next_free, self.free_at(other))
                self.waiting.push(other, other.next_free)


def _own_domain(host: HostClock) -> str:
    return host.domain or host.name


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
        payer_of: Callable[[H], str] = _own_domain,
        places: int = 0,
    ) -> None:
        """``domain_of`` gives the registered domain of a host key; None: every host is looked up when it is free.

        ``places`` in flight are shared by the domains that pay for the requests (``payer_of``); 0: no end of them.
        """
        self.hosts: dict[str, H] = {}
        self.names: dict[str, PortsClock[H]] = {}  # by host name: those of which other ports are known
        self.in_flight = 0
        self.waiting: TimerHeap[H] = TimerHeap()  # for their own moments
        # Addresses wait in a heap of their own: behind hosts that are long overdue they would neither be served nor
        # forgotten. What an earlier process asked of one is unknown: after a start every address rests once.
        self.ips: IpClocks[H] = IpClocks(ip_pause_seconds if per_ip else None, ips_free_from, domain_of)
        self._domains: DomainTurns[H] | None = DomainTurns(domain_of) if domain_of is not None else None
        self.places: Places[H] = Places(places)
        self._payer_of = payer_of
        self.waited: deque[H] | None = None  # hosts that began to wait, the last last; None: they are not recorded

    def add(self, host: H) -> None:
        """Take in a host (or learn that a known one has work again)."""
        self.hosts.setdefault(host.name, host)
        host.work = True
        if host.stage == Stage.IDLE:
            host.stage = Stage.WAITING
            if not host.serial:
                self.waiting.push(host, host.next_free)

    def take(self, now: float) -> Turn[H] | None:
        """The next host that is free now, already marked as looked up or in flight; None when none is.

        None as well when very many were looked through in vain: ``wake_at`` is not in the future then.
        """
        waiting, ips = self.waiting, self.ips
        for _ in range(_LOOKED_THROUGH):
            turn = None
            if ips.waiting.due(now):
                if (host := ips.serve(now)) is not None:
                    self._step_on(host)
                    turn = self._start(host, now)
            elif not waiting.due(now):
                return None
            elif (host := waiting.pop()) is not None:
                turn = self._free(host, now)
            if turn is not None:
                return turn
        return None

    def first_turn(self, host: H, now: float) -> float:
        """When a new host for which memory has no room is due."""
        return now if self._domains is None else self._domains.first_turn(host, now)

    def found(self, host: H, address: str, address_until: float, now: float) -> Turn[H] | None:
        """The resolver's answer. A turn when the address is free at once, else the host stands in its line."""
        host.address, host.address_until = address, address_until
        turn = self._line_up(host, now)
        if host.stage != Stage.IN_LINE:
            self._step_on(host)
        return turn

    def ended(self, host: H, now: float, next_free: float, *, work: bool) -> None:
        """The answer (or failure) of the host's request has ended: start its clock and its address's."""
        pause = self.ips.pause_seconds
        took_seconds = now - host.asked_at
        host.took_seconds = max(took_seconds, host.took_seconds / 2)
        self.ips.took(host, took_seconds, now)
        self.release(host, now, next_free, work=work, ip_free=None if pause is None else now + pause)

    def wait(self, host: H, next_free: float, *, work: bool) -> None:
        """Let a host that was handed out (or is waiting) wait until ``next_free``."""
        host.next_free = next_free
        host.work = work = work or host.embeds > 0
        host.stage = Stage.WAITING if work else Stage.IDLE
        if host.ports is not None:
            host.ports.turn_over(host)
        self.waiting.push(host, next_free)
        if self.waited is not None:
            self.waited.append(host)

    def share(self, host: H, name: str) -> PortsClock[H]:
        """Let a host share the clock of its name's ports from now on."""
        clock = self.names.get(name)
        if clock is None:
            clock = self.names[name] = PortsClock(name, self.waiting)
        host.ports = clock
        clock.hosts.setdefault(host, 0.0)
        if host.stage not in (Stage.IDLE, Stage.WAITING, Stage.BEHIND):
            clock.turn = host
        return clock

    def turn_away(self, host: H, now: float) -> None:
        """End a turn whose look-up is not made: the host is held."""
        self.wait(host, now, work=False)
        self._step_on(host)

    def release(self, host: H, now: float, next_free: float, *, work: bool, ip_free: float | None = None) -> None:
        """A turn is over. ``ip_free``: when its address may be asked again; None: nothing was sent, so at once."""
        self.ips.ended(host.address, ip_free, now)
        self._leave_place(host)
        self.wait(host, next_free, work=work)

    def refused(self, host: H, now: float, until: float, *, gives_way: bool) -> None:
        """Another worker has the turn at the host's address: nothing was sent; see ``IpClocks.refused``."""
        self._leave_place(host)
        self._stand(host, self.ips.refused(host, now, until=until, gives_way=gives_way))
        if host.stage == Stage.IN_LINE and self._domains is not None:
            self._domains.stands(host)

    def _leave_place(self, host: H) -> None:
        self.in_flight -= 1
        for other in self.places.leave(host.payer, self.in_flight):
            other.stage = Stage.WAITING
            self.waiting.push(other, other.next_free)

    def drop(self, host: H) -> None:
        """Forget a host that is not in flight: it waits on disk, or for another worker."""
        del self.hosts[host.name]
        self.waiting.drop(host)
        host.work = False
        if host.stage == Stage.IN_LINE:
            self.ips.leave(host)
        if host.stage in (Stage.IN_LINE, Stage.LOOKED_UP):
            self._step_on(host)
        elif host.stage == Stage.BEHIND and self._domains is not None:
            self._domains.forget(host)
        elif host.stage == Stage.ASIDE:
            self.places.forget(host.payer, host)
        host.stage = Stage.IDLE
        self._leave(host)

    def wake_at(self) -> float | None:
        """The next moment at which ``take`` may have something; None when nothing waits for time."""
        first, ip_first = self.waiting.wake_at(), self.ips.waiting.wake_at()
        if first is None or ip_first is None:
            return ip_first if first is None else first
        return min(first, ip_first)

    def _free(self, host: H, now: float) -> Turn[H] | None:
        if not host.work:
            # Only now may it be forgotten: dropping it earlier would forget its delay (NUTCH-2947).
            if not host.rendering:
                del self.hosts[host.name]
                self._leave(host)
            return None
        if self.in_flight >= self.places.short_from:
            host.payer = self._payer(host)
            if not self.places.room(host.payer, self.in_flight):
                host.stage = Stage.ASIDE
                self.places.wait(host.payer, host)
                return None
        if host.ports is not None and not host.ports.takes_turn(host, now):
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
            host.ports.turn_over(host)
        return None

    def _step_on(self, host: H) -> None:
        """A host is neither looked up nor in line any more: others of its domain may be looked up."""
        if self._domains is None:
            return
        for following in self._domains.leaves(host):
            following.stage = Stage.WAITING
            if following.serial:
                self.waiting.drop(following)
            self.waiting.push(following, following.next_free)

    def _come_back(self, host: H, at: float) -> None:
        """Put a host back that found no place, until ``at``."""
        host.stage = Stage.WAITING
        host.next_free = max(host.next_free, at)
        if host.ports is not None:
            host.ports.turn_over(host)
        self.waiting.push(host, host.next_free)
        if self.waited is not None:
            self.waited.append(host)

    def _leave(self, host: H) -> None:
        """Remove a host from its domain's line and its name's clock; the last one removes the clock."""
        if self._domains is not None and host.domain:
            self._domains.comes_no_more(host)
        clock, host.ports = host.ports, None
        if clock is None:
            return
        clock.hosts.pop(host, None)
        clock.turn_over(host)
        if not clock.hosts:
            del self.names[clock.name]

    def _line_up(self, host: H, now: float) -> Turn[H] | None:
        place = self.ips.line_up(host, now)
        self._stand(host, place)
        return self._start(host, now) if place is None else None

    def _stand(self, host: H, place: float | None) -> None:
        """Let a host wait where its address's line has found it a place, and those come back that have lost theirs."""
        while self.ips.displaced:
            other, back_at = self.ips.displaced.pop()
            self._step_on(other)
            self._come_back(other, back_at)
        if place == IN_LINE:
            host.stage = Stage.IN_LINE
        elif place is not None:
            self._come_back(host, place)

    def _payer(self, host: H) -> str:
        return SLOW if host.took_seconds > LONG_SECONDS else self._payer_of(host)

    def _start(self, host: H, now: float) -> Turn[H]:
        host.stage = Stage.IN_FLIGHT
        host.asked_at = now
        self.in_flight += 1
        payer = host.payer = self._payer(host)
        self.places.take(payer)
        return Turn(host, host.address)
