"""The ports of one host name: hosts of their own that share a clock, and are bounded in number."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from crawlerproject.frontier.hosts.host import Host, PortsClock
from crawlerproject.rules.url.urls import host_name, key_of, port_of

if TYPE_CHECKING:
    from crawlerproject.frontier.hosts.table import HostTable


class PortsOfNames:
    """Which ports of a name were taken up, and the clock that those in memory share."""

    def __init__(self, table: HostTable, max_ports: int) -> None:
        """``max_ports`` of one name, the default port left out."""
        self._table, self._workbench = table, table.workbench
        self._max_ports = max_ports

    def knows(self, name: str) -> bool:
        """Whether a URL of the host, or of another port of its name, was ever accepted."""
        if (clock := self._workbench.names.get(host_name(name))) is not None:
            return clock.known > 0 or any(host.ever_queued for host in clock.hosts)
        first = self._table.find(host_name(name))
        return (
            first.ever_queued
            or (":" in name and self._table.find(name).ever_queued)
            or any(number != port_of(name) for number in first.other_ports)
        )

    def is_new(self, name: str) -> bool:
        """Whether a host key has a port of its name that was not taken up."""
        if ":" not in name or name in self._workbench.hosts or name in self._table.copies:
            return False
        return (port := port_of(name)) > 0 and port not in self._taken(host_name(name))

    def left(self, name: str, given_back: int, *, external: bool) -> int:
        """How many ports more the name of a host key may have, half of them for those that other sites name.

        Those that never took a connection do not count, as far as other sites have named them: ``given_back`` at most.
        """
        first = host_name(name)
        taken = self._taken(first)
        dead = sum(self._table.find(key_of(first, number)).absent for number in taken) if given_back else 0
        return (self._max_ports // 2 if external else self._max_ports) - len(taken) + min(dead, given_back)

    def _taken(self, first: str) -> Collection[int]:
        clock = self._workbench.names.get(first)
        return clock.numbers if clock is not None else self._table.find(first).other_ports

    def add(self, host: Host) -> None:
        """Add a port to its name though its host goes to disk at once: it shares the name's clock when it is back."""
        name, port = host_name(host.name), port_of(host.name)
        if not port:
            return
        if (clock := self._workbench.names.get(name)) is not None:
            clock.numbers.add(port)
            host.next_free = max(host.next_free, clock.free_at(host))
        first = self._table.find(name)
        if port not in first.other_ports:
            first.other_ports += (port,)
            self._table.dirty[name] = first

    def share(self, host: Host) -> None:
        """Have a host share the clock of its name's other ports, in memory or stored; most names have no other."""
        name, bench = host_name(host.name), self._workbench
        clock = bench.names.get(name)
        if clock is None:
            port = port_of(host.name)
            first = self._table.find(name) if port else host
            if port and port not in first.other_ports:
                first.other_ports += (port,)
                self._table.dirty[name] = first
            if not first.other_ports:
                return
            unheard_of = name not in bench.hosts and not (first.known or first.fetched or first.name_free)
            if first.other_ports == (port,) and unheard_of:  # the only port of its name shares its clock with no other
                return
            clock = bench.share(host, name)
            clock.numbers.update(first.other_ports)
            for key in (name, *(key_of(name, number) for number in clock.numbers)):
                self._learn_clock(host if key == host.name else self._table.find(key), clock)
        elif (port := port_of(host.name)) and port not in clock.numbers:
            clock.numbers.add(port)
            first = self._table.find(name)
            first.other_ports += (port,)
            self._table.dirty[name] = first
        bench.share(host, name)
        host.next_free = max(host.next_free, clock.free_at(host))
        for each in clock.hosts:
            each.rest_until = max(each.rest_until, clock.rest_until)

    def _learn_clock(self, host: Host, clock: PortsClock) -> None:
        """Advance the name's clock by the stored state of one port."""
        free = host.name_free + self._table.ownership.doubt_seconds if host.name_free else 0.0
        if unsure_until := self._table.ownership.unsure_until(host.name):  # it may have been this port that was asked
            free = max(free, unsure_until + host.delay_seconds)
        clock.known += host.known
        if host.rest_until <= host.name_free:  # it was asked for: what fails rests a port alone
            clock.rest_until = max(clock.rest_until, host.rest_until)
        clock.next_free = max(clock.next_free, free)
        clock.ended = max(clock.ended, free - host.delay_seconds)
        if host.name in self._workbench.hosts:
            self._workbench.share(host, clock.name)
