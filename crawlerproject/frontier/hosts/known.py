"""Hosts as they are in memory or in the store, and requests that the store may not know of."""

from __future__ import annotations

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.set_back_clock import SetBackClock
from crawlerproject.frontier.ownership import HostOwnership
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.stores.protocols import FrontierStore


class KnownHosts:
    """Finds a host without taking it up."""

    def __init__(
        self,
        store: FrontierStore,
        workbench: Workbench[Host],
        ownership: HostOwnership,
        clock: SetBackClock,
        start_delay_seconds: float,
    ) -> None:
        """``start_delay_seconds``: the pause of a host that has not been asked yet."""
        self.store = store
        self.workbench = workbench
        self.ownership = ownership
        self.clock = clock
        self.dirty: dict[str, Host] = {}  # their states go with the next commit
        self.copies: dict[str, Host] = {}  # of hosts that are not in memory, while rows for them are queued
        self._start_delay_seconds = start_delay_seconds

    def find(self, name: str) -> Host:
        """The host in memory or as it is stored, without taking it up."""
        host = self.workbench.hosts.get(name) or self.dirty.get(name) or self.copies.get(name)
        if host is None:
            host = self.unpacked(name, self.store.host(name))
        return host

    def unpacked(self, name: str, packed: bytes | None) -> Host:
        """A host as the store has it, or a new one; moments too far ahead are cut."""
        if packed is None:
            return Host(name, self._start_delay_seconds)
        host = Host.unpack(name, packed)
        if not host.on_disk:  # where it stands there is its moment as it is stored
            self.clock.bring_back(host)
        return host

    def doubt(self, host: Host, *, stored: bool) -> None:
        """Delay a host from the store for requests that the store may not know of."""
        if unsure_until := self.ownership.unsure_until(host.name):
            host.next_free = max(host.next_free, unsure_until + host.delay_seconds)
            host.pace_free = max(host.pace_free, unsure_until + host.delay_seconds)
        if stored:
            host.next_free += self.ownership.doubt_seconds
