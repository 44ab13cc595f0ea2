"""Hosts with work that are on disk and not in memory: how many there are, and from when on one of them is due.

A host with work is listed in the store exactly once, in the same atomic change as its state: under its moment when it
is on disk, else as one in memory. So a start takes up the latter and finds the former in the order in which they are
due. The lists are but a way to find hosts: what is true of a host is its state, and what waits are its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from math import inf
from struct import Struct
from typing import Protocol

from crawlerproject.frontier.discovered import caused_externally
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.stores.protocols import DUE_FACT, IN_MEMORY, Changes, Due, EmbeddedStore

# Hosts, rows, resting hosts, when the last of them would be done, whether every host with work is on a list.
_COUNTS = Struct("<QQQd?")
# Sorts behind every host key.
_LAST = "\U0010ffff"

Move = tuple[str, int | None, int | None]


def place_of(host: Host) -> Due:
    """Where a host on disk is listed."""
    return Due(max(int(host.next_free * 1_000_000), IN_MEMORY + 1), host.name)


@dataclass(slots=True)
class Counts:
    """Sums over the hosts on disk."""

    hosts: int = 0
    rows: int = 0
    resting: int = 0  # of the hosts: those that wait for the end of a rest, not for their pace
    done_at: float = 0.0  # epoch seconds: at its pace none of them is done later
    whole: bool = False  # every host with work is listed; not so in the folder of an older version, for a while

    def add(self, host: Host, sign: int = 1) -> None:
        """Count a host in (``sign`` 1) or out (-1)."""
        self.hosts += sign
        self.rows += sign * host.rows
        self.resting += sign * host.rests_on_disk
        if sign > 0:
            self.done_at = max(self.done_at, host.next_free + host.rows * host.delay_seconds)
        elif self.hosts <= 0:
            self.hosts = self.rows = self.resting = 0
            self.done_at = 0.0

    def pack(self) -> bytes:
        """The bytes of DUE_FACT."""
        return _COUNTS.pack(self.hosts, max(self.rows, 0), max(self.resting, 0), self.done_at, self.whole)

    @classmethod
    def unpack(cls, packed: bytes | None) -> Counts:
        """Counts from the bytes of DUE_FACT; zero when the store has none."""
        return cls(*_COUNTS.unpack(packed)) if packed else cls()


class HostsOnDisk:
    """The counts and the lists. ``apply`` changes them together with what it stores."""

    def __init__(self, store: EmbeddedStore, max_in_memory: int) -> None:
        self.store = store
        self.max_in_memory = max_in_memory
        self.counts = Counts.unpack(store.fact(DUE_FACT))
        self.unstored = False  # of the counts
        first = store.due(1, Due(IN_MEMORY, _LAST))
        self.first_due = first[0].at / 1e6 if first else inf  # none is due earlier
        if not first:
            self.counts = Counts(whole=self.counts.whole)

    def due(self, limit: int) -> list[Due]:
        """The first hosts on disk."""
        if self.first_due == inf:
            return []
        found = self.store.due(limit, Due(max(int(self.first_due * 1e6) - 1, IN_MEMORY), _LAST))
        self.first_due = found[0].at / 1e6 if found else inf
        return found

    def in_memory(self, limit: int, after: str) -> list[str]:
        """Hosts with work that are listed as being in memory, behind ``after``, by name."""
        return [place.host for place in self.store.due(limit, Due(IN_MEMORY, after)) if place.at == IN_MEMORY]

    def counted(self) -> Counts:
        """The counts, to be changed and then given to ``apply``."""
        return copy(self.counts)

    def put(self, host: Host, changes: Changes, counts: Counts, now: float) -> None:
        """List the host as being on disk from its moment on, and store it so."""
        host.on_disk = True
        if host.held_until > now:
            host.next_free = max(host.next_free, host.held_until)
        else:
            host.held_until = 0.0
        if host.next_free <= 0.0:  # a new one stands behind those that came before
            host.next_free = now
        host.rests_on_disk = host.last_rest >= host.next_free
        changes.due.append((host.name, IN_MEMORY if host.listed else None, place_of(host).at))
        changes.hosts.append((host.name, host.pack()))
        counts.add(host)

    def more_rows(self, hosts: Iterable[Host], bench: Workbench, changes: Changes, counts: Counts, now: float) -> None:
        """Store and list hosts that have got rows; of those that are not in memory ``hosts`` has copies."""
        for host in hosts:
            if bench.hosts.get(host.name) is host or host.state:
                changes.hosts.append((host.name, host.pack()))
                if not host.listed:
                    changes.due.append((host.name, None, IN_MEMORY))
            elif host.on_disk:
                rows = (row for row in changes.queued if row.host == host.name) if host.at_door else ()
                if not all(map(caused_externally, rows)):
                    before = place_of(host).at
                    host.held_until, host.at_door = 0.0, False
                    host.next_free = max(host.pace_free, host.rest_until)
                    host.rests_on_disk = host.rest_until >= host.next_free
                    changes.due.append((host.name, before, place_of(host).at))
                changes.hosts.append((host.name, host.pack()))
                counts.add(host)
            else:
                if host.next_free <= now:
                    host.next_free = bench.first_turn(host, now)
                self.put(host, changes, counts, now)

    def lists(self, hosts: Iterable[Host]) -> list[Move]:
        """The changes of the lists that these hosts' states require."""
        return [
            (host.name, IN_MEMORY if host.listed else None, IN_MEMORY if host.rows > 0 else None)
            for host in hosts
            if host.listed != (host.rows > 0) and not host.on_disk
        ]

    def apply(self, changes: Changes, counts: Counts, hosts: Iterable[Host]) -> None:
        """Store a change together with the new counts. ``hosts``: those that it lists. Raises StorageError."""
        if self.unstored or counts != self.counts:
            changes.facts = [*changes.facts, (DUE_FACT, counts.pack())]
        if changes:
            self.store.apply(changes)
        for _, _, at in changes.due:
            if at:
                self.first_due = min(self.first_due, at / 1e6)
        for host in hosts:
            host.listed = host.rows > 0 and not host.on_disk
        self.counts, self.unstored = counts, False


class _States(Protocol):
    def host(self, host: str) -> bytes | None: ...

    def fact(self, name: str) -> bytes | None: ...


def count_rows(store: _States, changes: Changes) -> None:
    """Add to ``changes``, which queue rows before the frontier opens, the states and lists of the rows' hosts."""
    packed_counts = store.fact(DUE_FACT)
    counts = Counts.unpack(packed_counts)
    for name, more in Counter(row.host for row in changes.queued).items():
        packed = store.host(name)
        host = Host(name, 0.0) if packed is None else Host.unpack(name, packed)
        if host.on_disk:
            counts.add(host, -1)
        host.rows += more
        if host.on_disk:
            counts.add(host)
        elif packed_counts is not None and host.rows == more:
            changes.due.append((name, None, IN_MEMORY))
        if packed is not None:
            changes.hosts.append((name, host.pack()))
    if packed_counts is not None:
        changes.facts.append((DUE_FACT, counts.pack()))
