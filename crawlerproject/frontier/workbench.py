"""Which host may be asked next: hosts and IP addresses ordered by their next free moment.

Pure: no clock, no network, no store. A host with work is always in exactly one place: waiting for its
own moment (in the heap), waiting for another port of its name (in that name's line), waiting at its address
(in that address's line), being looked up or waiting for that (``domains``), aside while places in flight are short and
its domain has its share of them (``Places``), or in flight. An address serves one
request at a time and rests ``ip_pause_seconds`` between two (BUbiNG's workbench, WWW 2014: an address is ready when
it and its first host are). The ports of one name are hosts of their own with one clock: one of them has the turn.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple

from crawlerproject.frontier.hosts.domain_turns import DomainTurns
from crawlerproject.frontier.hosts.host import Host, PortsClock, Stage
from crawlerproject.frontier.hosts.ip_clocks import IN_LINE, IpClocks, TimerHeap
from crawlerproject.rules.politeness.address_turns import LONG_SECONDS

# Entries of the heap that one question may go through without finding a turn: some 10 ms.
_LOOKED_THROUGH = 2_000


SLOW = "…"
"""Stands for the domains of all hosts whose requests take long."""
# Hosts that take long have most places in any crawl (ours: as many slow ones as a broad crawl has in flight).
_SLOW_SHARE = 3
# Domains that are looked at when a place is free: those who wait come in turn (ours).
_LOOKED_AT = 8


class Turn(NamedTuple):
    """A host that may act now: fetch from ``address``, or look its name up when that is empty."""

    host: Host
    address: str


class Workbench:
    """All hosts that have work, and the addresses they live at."""

    def __init__(
        self,
        *,
        per_ip: bool = True,
        ip_pause_seconds: float = 0.5,
        ips_free_from: float = 0.0,
        domain_of: Callable[[str], str] = str,
        payer_of: Callable[[Host], str] | None = None,
        places: int = 0,
    ) -> None:
        """``domain_of`` gives the registered domain of a host key; by default each host is one of its own.

        ``places`` in flight are shared by the domains that pay for the requests, by default their own; 0: no end of
        them.
        """
        self.hosts: dict[str, Host] = {}
        self.names: dict[str, PortsClock] = {}  # by host name: those of which other ports are known
        self.in_flight = 0
        self.waiting: TimerHeap[Host] = TimerHeap()  # for their own moments
        # Addresses wait in a heap of their own: behind hosts that are long overdue they would neither be served nor
        # forgotten. What an earlier process asked of one is unknown: after a start every address rests once.
        self.ips = IpClocks(ip_pause_seconds if per_ip else None, ips_free_from, domain_of)
        self.domains = DomainTurns(domain_of)
        self.places = Places(places)
        self._payer_of = payer_of or (lambda host: host.domain or domain_of(host.name))
        self.waited: deque[Host] | None = None  # hosts that began to wait, the last last; None: they are not recorded

    def add(self, host: Host) -> None:
        """Take in a host (or learn that a known one has work again)."""
        self.hosts.setdefault(host.name, host)
        host.work = True
        if host.stage == Stage.IDLE:
            host.stage = Stage.WAITING
            if not host.serial:
                self.waiting.push(host, host.next_free)

    def take(self, now: float) -> Turn | None:
        """The next host that is free now, already marked as looked up or in flight; None when none is.

        None as well when very many were looked through in vain: ``wake_at`` is not in the future then.
        """
        waiting, ips = self.waiting, self.ips
        for _ in range(_LOOKED_THROUGH):
            turn = None
            of_ips, of_hosts = ips.waiting.heap, waiting.heap
            if of_ips and of_ips[0][0] <= now:
                if (host := ips.serve(now)) is not None:
                    self._step_on(host)
                    turn = self._start(host, now)
            elif not (of_hosts and of_hosts[0][0] <= now):
                return None
            elif (host := waiting.pop()) is not None:
                turn = self._free(host, now)
            if turn is not None:
                return turn
        return None

    def found(self, host: Host, address: str, address_until: float, now: float) -> Turn | None:
        """The resolver's answer. A turn when the address is free at once, else the host stands in its line."""
        host.address, host.address_until = address, address_until
        turn = self._line_up(host, now)
        if host.stage != Stage.IN_LINE:
            self._step_on(host)
        return turn

    def ended(self, host: Host, now: float, next_free: float, *, work: bool, is_page: bool = True) -> float | None:
        """The answer (or failure) of the host's request has ended: start its clock and its address's.

        How long it took; None for a robots.txt that came quickly, which says nothing of the host's pages.
        """
        pause = self.ips.pause_seconds
        took_seconds = now - host.asked_at
        host.took_seconds = max(took_seconds, host.took_seconds / 2)
        if says := is_page or took_seconds > LONG_SECONDS:
            self.ips.took(host, took_seconds, now)
        self.release(host, now, next_free, work=work, ip_free=None if pause is None else now + pause)
        return took_seconds if says else None

    def wait(self, host: Host, next_free: float, *, work: bool) -> None:
        """Let a host that was handed out (or is waiting) wait until ``next_free``."""
        host.next_free = next_free
        host.work = work = work or host.subrequests > 0
        host.stage = Stage.WAITING if work else Stage.IDLE
        if host.ports is not None:
            host.ports.turn_over(host)
        self.waiting.push(host, next_free)
        if self.waited is not None:
            self.waited.append(host)

    def share(self, host: Host, name: str) -> PortsClock:
        """Let a host share the clock of its name's ports from now on."""
        clock = self.names.get(name)
        if clock is None:
            clock = self.names[name] = PortsClock(name, self.waiting)
        host.ports = clock
        clock.hosts.setdefault(host, 0.0)
        if host.stage not in (Stage.IDLE, Stage.WAITING, Stage.BEHIND):
            clock.turn = host
        return clock

    def turn_away(self, host: Host, now: float) -> None:
        """End a turn whose look-up is not made: the host is held."""
        self.wait(host, now, work=False)
        self._step_on(host)

    def release(self, host: Host, now: float, next_free: float, *, work: bool, ip_free: float | None = None) -> None:
        """A turn is over. ``ip_free``: when its address may be asked again; None: nothing was sent, so at once."""
        self.ips.ended(host.address, ip_free, now)
        self._leave_place(host)
        self.wait(host, next_free, work=work)

    def refused(self, host: Host, now: float, until: float, *, gives_way: bool) -> None:
        """Another worker has the turn at the host's address: nothing was sent; see ``IpClocks.refused``."""
        self._leave_place(host)
        self._stand(host, self.ips.refused(host, now, until=until, gives_way=gives_way))
        if host.stage == Stage.IN_LINE:
            self.domains.stands(host)

    def _leave_place(self, host: Host) -> None:
        self.in_flight -= 1
        for other in self.places.leave(host.payer, self.in_flight):
            other.stage = Stage.WAITING
            self.waiting.push(other, other.next_free)

    def drop(self, host: Host) -> None:
        """Forget a host that is not in flight: it waits on disk, or for another worker."""
        del self.hosts[host.name]
        self.waiting.drop(host)
        host.work = False
        if host.stage == Stage.IN_LINE:
            self.ips.leave(host)
        if host.stage in (Stage.IN_LINE, Stage.LOOKED_UP):
            self._step_on(host)
        elif host.stage == Stage.BEHIND:
            self.domains.forget(host)
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

    def _free(self, host: Host, now: float) -> Turn | None:
        if not host.work:
            # Only now may it be forgotten: dropping it earlier would forget its delay (NUTCH-2947).
            if not host.rendering:
                del self.hosts[host.name]
                self._leave(host)
            return None
        if self.in_flight >= self.places.short_from:
            host.payer = SLOW if host.took_seconds > LONG_SECONDS else self._payer_of(host)
            if not self.places.room(host.payer, self.in_flight):
                host.stage = Stage.ASIDE
                self.places.wait(host.payer, host)
                return None
        if host.ports is not None and not host.ports.takes_turn(host, now):
            return None
        if not host.address or host.address_until <= now:
            return self._look_up(host, now)
        turn = self._line_up(host, now)
        if host.stage == Stage.IN_LINE:
            self.domains.stands(host)
        return turn

    def _look_up(self, host: Host, now: float) -> Turn | None:
        """A look-up, unless enough hosts of the domain are at it or wait for their address."""
        domains, again = self.domains, bool(host.domain)
        if domains.admits(host):
            host.stage = Stage.LOOKED_UP
            return Turn(host, "")
        host.stage = Stage.BEHIND
        back_at = domains.waits(host, now, again=again)
        if back_at:
            self._come_back(host, back_at)
        elif host.ports is not None:
            host.ports.turn_over(host)
        return None

    def _step_on(self, host: Host) -> None:
        """A host is neither looked up nor in line any more: others of its domain may be looked up."""
        for following in self.domains.leaves(host):
            following.stage = Stage.WAITING
            if following.serial:
                self.waiting.drop(following)
            self.waiting.push(following, following.next_free)

    def _come_back(self, host: Host, at: float) -> None:
        """Put a host back that found no place, until ``at``."""
        host.stage = Stage.WAITING
        host.next_free = max(host.next_free, at)
        if host.ports is not None:
            host.ports.turn_over(host)
        self.waiting.push(host, host.next_free)
        if self.waited is not None:
            self.waited.append(host)

    def _leave(self, host: Host) -> None:
        """Remove a host from its domain's line and its name's clock; the last one removes the clock."""
        if host.domain:
            self.domains.comes_no_more(host)
        clock, host.ports = host.ports, None
        if clock is None:
            return
        clock.hosts.pop(host, None)
        clock.turn_over(host)
        if not clock.hosts:
            del self.names[clock.name]

    def _line_up(self, host: Host, now: float) -> Turn | None:
        if (place := self.ips.line_up(host, now)) is None:
            return self._start(host, now)
        self._stand(host, place)
        return None

    def _stand(self, host: Host, place: float | None) -> None:
        """Let a host wait where its address's line has found it a place, and those come back that have lost theirs."""
        while self.ips.displaced:
            other, back_at = self.ips.displaced.pop()
            self._step_on(other)
            self._come_back(other, back_at)
        if place == IN_LINE:
            host.stage = Stage.IN_LINE
        elif place is not None:
            self._come_back(host, place)

    def _start(self, host: Host, now: float) -> Turn:
        host.stage = Stage.IN_FLIGHT
        host.asked_at = now
        self.in_flight += 1
        payer = host.payer = SLOW if host.took_seconds > LONG_SECONDS else self._payer_of(host)
        self.places.take(payer)
        return Turn(host, host.address)


class Places:
    """Shared by the registered domains while they are short: each domain may have as many as are left.

    So one domain has half of them at most, two have a third each, and any other has its turn. What counts is what is in
    flight at the moment: a domain's share of the places is its share of their time. Hosts whose requests take long
    count as one domain together, which may have three times as many as are left: three quarters. ``in_flight`` is how
    many are taken.
    """

    def __init__(self, places: int) -> None:
        """0: there is no end of them."""
        self._places = places
        self.short_from = places // 2 if places else float("inf")
        self._taken: dict[str, int] = {}
        self._aside: OrderedDict[str, deque[Host]] = OrderedDict()

    def room(self, domain: str, in_flight: int) -> bool:
        """Whether the domain may have one more while they are short."""
        left = self._places - in_flight
        return self._taken.get(domain, 0) < (_SLOW_SHARE * left if domain == SLOW else left)

    def wait(self, domain: str, host: Host) -> None:
        """A host waits until ``leave`` returns it."""
        self._aside.setdefault(domain, deque()).append(host)

    def forget(self, domain: str, host: Host) -> None:
        """A host waits no more."""
        hosts = self._aside[domain]
        hosts.remove(host)
        if not hosts:
            del self._aside[domain]

    def take(self, domain: str) -> None:
        """One more of the domain's is in flight."""
        self._taken[domain] = self._taken.get(domain, 0) + 1

    def leave(self, domain: str, in_flight: int) -> list[Host]:
        """One of the domain's has ended, which leaves ``in_flight``; the hosts that may be asked now."""
        taken = self._taken
        if (left := taken[domain] - 1) > 0:
            taken[domain] = left
        else:
            del taken[domain]
        return self._come_back(in_flight) if self._aside else []

    def _come_back(self, in_flight: int) -> list[Host]:
        if in_flight < self.short_from:
            back = [host for hosts in self._aside.values() for host in hosts]
            self._aside.clear()
            return back
        for _ in range(min(_LOOKED_AT, len(self._aside))):
            domain, hosts = self._aside.popitem(last=False)
            host = hosts.popleft() if self.room(domain, in_flight) else None
            if hosts:
                self._aside[domain] = hosts
            if host is not None:
                return [host]
        return []
