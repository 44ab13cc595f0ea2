"""Hosts with work that wait on disk, and their way between memory and disk.

A host with work is listed in the store exactly once, in the same atomic change as its state: under its moment when it
is on disk, else as one in memory. So a start takes up the latter and finds the former in the order in which they are
due. The lists are but a way to find hosts: what is true of a host is its state, and what waits are its rows.

Politeness lies in that state, which is stored as it is; the clocks of addresses stay in memory. Hosts are taken up in
the order in which they are due and put away the latest first. One that is put away is never asked earlier for it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING

from crawlerproject.errors import StorageError
from crawlerproject.frontier.hosts.host import Host, HostState, Stage
from crawlerproject.frontier.passage import caused_externally
from crawlerproject.stores.protocols import DUE_FACT, IN_MEMORY, Changes, Due, FrontierStore

if TYPE_CHECKING:
    from crawlerproject.frontier.hosts.table import HostTable
    from crawlerproject.frontier.workbench import Workbench

# Hosts, rows, resting hosts, when the last of them would be done, whether every host with work is on a list.
_COUNTS = Struct("<QQQd?")
# Hosts that change places in one go: some 15 ms.
_AT_A_TIME = 250
# From one go to the next: 2,500 hosts a second are more than are asked, and others have most of the loop's time.
_EVERY_SECONDS = 0.1
# Found to be put away in one look at a part of memory, for several goes.
_FOUND_AT_A_TIME = 2_000
# Of those that began to wait: so many are compared at a time.
_LOOKED_AT_A_TIME = 1_000
# Memory may hold this share of hosts more than it should before some are put away for that alone.
_OVER_SHARE = 0.05
# When nothing could be put away, since every host is due, looked up, in line or not yet stored.
_AGAIN_SECONDS = 0.5
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
    """The counts and the lists, and what keeps memory within its bound. ``now`` is epoch seconds.

    ``apply`` changes the lists together with what it stores.
    """

    def __init__(self, table: HostTable, store: FrontierStore, max_in_memory: int) -> None:
        self._table = table
        self.store = store
        self.max_in_memory = max_in_memory
        self._at_a_time = min(_AT_A_TIME, max(max_in_memory // 4, 1))
        self._over = int(max_in_memory * _OVER_SHARE)
        self._not_before = 0.0
        self._latest: list[Host] = []  # to be put away, the latest last
        self._names: Iterator[str] | None = None  # of every host with work, while all are looked at
        self._loaded_to = ""
        self._looked_at: list[str] = []  # of them, now
        self._look_at_all = False
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
        counts = self.counts  # ``copy`` would take ten times as long
        return Counts(counts.hosts, counts.rows, counts.resting, counts.done_at, counts.whole)

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
                    host.next_free = bench.domains.first_turn(host, now)
                self.put(host, changes, counts, now)

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

    def wake_at(self) -> float:
        """When ``tend`` may have something to do; infinity when nothing is on disk."""
        return max(self.first_due, self._not_before)

    def tend(self, now: float) -> None:
        """Load hosts that are due, and unload others to make room. On StorageError nothing has changed."""
        bench = self._table.workbench
        over = len(bench.hosts) - self.max_in_memory
        if (self.first_due > now and over <= self._over) or now < self._not_before:
            return
        self._not_before = now + _EVERY_SECONDS
        if bench.waited is None:
            bench.waited = deque(maxlen=self.max_in_memory)
        if self.first_due > now:
            self._put_away(min(over, _AT_A_TIME), now, now)
            return
        if over + self._at_a_time > 0:
            self._put_away(min(over + self._at_a_time, _AT_A_TIME), self.first_due, now)
        room = self.max_in_memory - len(bench.hosts)
        if room > 0:
            self._take_up(min(room, self._at_a_time), now)
        else:
            self._not_before = now + _AGAIN_SECONDS

    # --- from memory to disk --------------------------------------------------------------------

    def _put_away(self, count: int, later_than: float, now: float) -> None:
        """Hosts that wait for a moment later than ``later_than``; as many as are found, ``count`` at most.

        Those that began to wait last are such hosts as a rule; only where none is, others are looked for. Of the former
        those whose state is not stored yet stay in line.
        """
        table, waited, leaving = self._table, self._table.workbench.waited, dict[str, Host]()
        if waited:
            some = [waited.popleft() for _ in range(min(len(waited), _LOOKED_AT_A_TIME))]
            fit = {host.name: host for host in some if host.next_free > later_than and self._may_go(host)}
            leaving = {host.name: host for host in sorted(fit.values(), key=attrgetter("next_free"))[-count:]}
            left = [host for host in reversed(some) if host.name not in leaving]
            waited.extendleft([host for host in left if host.name in fit or host.name in table.dirty])
        if not (leaving or self._latest):
            self._latest = table.workbench.waiting.latest(_FOUND_AT_A_TIME, later_than)
            self._latest.reverse()
        while self._latest and len(leaving) < count:
            host = self._latest.pop()
            if host.next_free > later_than and self._may_go(host):
                leaving[host.name] = host
        if leaving:
            self._store_away(list(leaving.values()), now)

    def _may_go(self, host: Host) -> bool:
        """Whether the store can hold all that is known of the host."""
        if self._table.workbench.hosts.get(host.name) is not host or host.name in self._table.dirty:
            return False
        if host.taken or host.unstored or host.robots_unstored or host.subrequests or host.rendering:
            return False
        return host.stage in (Stage.WAITING, Stage.IDLE)

    def _store_away(self, hosts: list[Host], now: float) -> None:
        changes, counts = Changes(), self.counted()
        for host in hosts:
            if host.stage == Stage.WAITING and host.rows > 0:
                self.put(host, changes, counts, now)
            elif host.known or host.fetched:  # without work: its clock alone is kept
                changes.hosts.append((host.name, host.pack()))
        try:
            self.apply(changes, counts, [host for host in hosts if host.on_disk])
        except StorageError:
            for host in hosts:
                host.on_disk = host.rests_on_disk = False
            raise
        for host in hosts:
            if host.on_disk:  # rows that are kept for a later run are counted again when the host comes back
                self._table.waits(host, host.kept)
                host.kept = 0
            self._table.workbench.drop(host)
        self._table.workbench.waiting.tidy()

    # --- from disk to memory --------------------------------------------------------------------

    def _take_up(self, count: int, now: float) -> None:
        """The first ``count`` that are due."""
        hosts = self._table
        places = self.due(count + 1)
        due = [place for place in places[:count] if place.at <= now * 1e6]
        changes, counts = Changes(), self.counted()
        come: list[Host] = []
        for place, packed in zip(due, self.store.packed_hosts([place.host for place in due]), strict=True):
            copy = hosts.dirty.get(place.host)
            host = Host(place.host, 0.0) if packed is None else Host.unpack(place.host, packed)
            counts.add(host, -1)
            if copy is not None and copy.on_disk:
                host = copy
            known = place.host in hosts.workbench.hosts or (copy is not None and not copy.on_disk)
            if known or not self._has_rows(host):
                changes.due.append((place.host, place.at, None))
                continue
            changes.due.append((place.host, place.at, IN_MEMORY))
            come.append(host)
        if not due:
            return
        self.apply(changes, counts, ())
        for host in come:
            hosts.comes_off_disk(host)
            host.listed = True
        self.first_due = places[len(due)].at / 1e6 if len(places) > len(due) else inf
        for host in come:
            hosts.begin(host)
        if len(places) == len(due) and self.counts.hosts:  # no host is listed: the counts were wrong
            hosts.waiting_urls -= self.counts.rows
            self.counts, self.unstored = Counts(whole=self.counts.whole), True

    def _has_rows(self, host: Host) -> bool:
        """Whether the host has rows in the store, whatever its state says."""
        if not host.rows and self._table.store.head(host.name, 1):
            host.rows = 1
        return host.rows > 0

    # --- from worker to worker ------------------------------------------------------------------

    def arrive(self, names: Sequence[str], now: float) -> None:
        """List hosts whose rows have come from another worker, or an earlier start: those with work.

        On StorageError it may be called again; what has been needed in memory meanwhile stays there.
        """
        in_memory = self._table.workbench.hosts
        names = [name for name in names if name not in in_memory and name not in self._table.dirty]
        for first in range(0, len(names), _AT_A_TIME):
            changes, counts, come = Changes(), self.counted(), list[Host]()
            some = names[first : first + _AT_A_TIME]
            for name, packed in zip(some, self.store.packed_hosts(some), strict=True):
                host = Host(name, 0.0) if packed is None else Host.unpack(name, packed)
                host.on_disk = host.rests_on_disk = False
                if self._has_rows(host):
                    host.state = HostState.ASKED
                    self._table.clock.clamp_to_now(host)
                    self.put(host, changes, counts, now)
                    come.append(host)
            self.apply(changes, counts, come)
            for host in come:
                self._table.waits(host, host.rows)

    def depart(self, names: Sequence[str]) -> None:
        """Take hosts off the lists that another worker will have; none of them is in memory. StorageError."""
        for first in range(0, len(names), _AT_A_TIME):
            changes, counts, left = Changes(), self.counted(), 0
            some = names[first : first + _AT_A_TIME]
            for name, packed in zip(some, self.store.packed_hosts(some), strict=True):
                if packed is None:
                    continue
                host = Host.unpack(name, packed)
                place = place_of(host)
                changes.due += ((name, IN_MEMORY, None), (name, place.at, None))
                if host.on_disk and self.store.is_due(place):
                    counts.add(host, -1)
                    left += host.rows
            self.apply(changes, counts, ())
            self._table.waiting_urls -= left

    # --- at the start ---------------------------------------------------------------------------

    def begin_loading(self) -> None:
        """Hosts that were in memory are taken up by ``load_some``; after a crash every queue is looked at."""
        clock = self._table.clock
        self._table.loaded_early = set()
        self._look_at_all = not (clock.start.clean and self.counts.whole) or clock.suspected

    def load_some(self, count: int) -> bool:
        """Take up so many more of them, or look at as many queues; whether there may be others."""
        table = self._table
        if table.loaded_early is None:
            return False
        if self._names is None:
            names = self.in_memory(count, self._loaded_to)
            self._place(names)
            if names:
                self._loaded_to = names[-1]
                return True
            self._names = iter(self.store.hosts_with_work()) if self._look_at_all else None
        if self._names is not None:
            names = self._looked_at = self._looked_at or list(islice(self._names, count))
            known = (table.workbench.hosts.get(name) or table.dirty.get(name) for name in names)
            if unlisted := [host for host in known if host is not None and host.rows > 0 and not host.listed]:
                changes = Changes(due=[(host.name, None, IN_MEMORY) for host in unlisted])
                self.apply(changes, self.counts, unlisted)
            self._place([name for name in names if name not in table.dirty])
            self._looked_at = []
            if len(names) == count:
                return True
            if not self.counts.whole:
                counts = self.counted()
                counts.whole = True
                self.apply(Changes(), counts, ())
        table.loaded_early = None
        table.clock.warn()
        return False

    def _place(self, names: list[str]) -> None:
        """Put hosts that are neither in memory nor on a list into memory while it has room, else on disk."""
        hosts, now = self._table, self._table.clock.start.at
        early = hosts.loaded_early or ()
        names = [name for name in names if name not in hosts.workbench.hosts and name not in early]
        changes, counts = Changes(), self.counted()
        room = self.max_in_memory - len(hosts.workbench.hosts)
        come: list[Host] = []
        away: list[Host] = []
        for name, packed in zip(names, self.store.packed_hosts(names), strict=True):
            host = hosts.stored(name, packed)
            if host.on_disk:  # it waits no longer than anything lasts, though the clock was set back
                before = place_of(host).at
                if hosts.clock.clamp_to_now(host):
                    changes.due.append((host.name, before, place_of(host).at))
                    changes.hosts.append((host.name, host.pack()))
                continue
            if not self._has_rows(host):
                changes.due.append((name, IN_MEMORY, None))
                continue
            host.state = HostState.ASKED  # it was not, until this start
            if len(come) < room:
                come.append(host)
                if not host.listed:
                    changes.due.append((name, None, IN_MEMORY))
            else:
                host.listed = True  # maybe, and then no more
                self.put(host, changes, counts, now)
                away.append(host)
        if not changes and not come:
            return
        self.apply(changes, counts, [*come, *away])
        for host in away:
            hosts.waits(host, host.rows)
        for host in come:
            hosts.waits(host, host.waiting_urls)
            hosts.begin(host)


def count_rows(store: FrontierStore, changes: Changes) -> None:
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
