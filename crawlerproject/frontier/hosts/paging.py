"""Hosts on their way between memory and disk: taken up in the order in which they are due, put away the latest first.

Politeness lies in a host's state, which is stored as it is; the clocks of addresses stay in memory. A host that is put
away is never asked earlier for it: it is taken up when it is due, and waits for its moment like any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from math import inf

from crawlerproject.errors import StorageError
from crawlerproject.frontier.hosts.host import Host, HostState, Stage
from crawlerproject.frontier.hosts.on_disk import Counts, HostsOnDisk, place_of
from crawlerproject.frontier.hosts.table import HostTable
from crawlerproject.stores.protocols import IN_MEMORY, Changes

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


class HostPaging:
    """Keeps memory within its bound. ``now`` is epoch seconds."""

    def __init__(self, hosts: HostTable, on_disk: HostsOnDisk) -> None:
        self._hosts = hosts
        self._on_disk = on_disk
        self._at_a_time = min(_AT_A_TIME, max(on_disk.max_in_memory // 4, 1))
        self._over = int(on_disk.max_in_memory * _OVER_SHARE)
        self._not_before = 0.0
        self._latest: list[Host] = []  # to be put away, the latest last
        self._names: Iterator[str] | None = None  # of every host with work, while all are looked at
        self._loaded_to = ""
        self._looked_at: list[str] = []  # of them, now
        self._look_at_all = False

    def wake_at(self) -> float:
        """When ``tend`` may have something to do; infinity when nothing is on disk."""
        return max(self._on_disk.first_due, self._not_before)

    def tend(self, now: float) -> None:
        """Load hosts that are due, and unload others to make room. On StorageError nothing has changed."""
        bench, on_disk = self._hosts.workbench, self._on_disk
        over = len(bench.hosts) - on_disk.max_in_memory
        if (on_disk.first_due > now and over <= self._over) or now < self._not_before:
            return
        self._not_before = now + _EVERY_SECONDS
        if bench.waited is None:
            bench.waited = deque(maxlen=on_disk.max_in_memory)
        if on_disk.first_due > now:
            self._put_away(min(over, _AT_A_TIME), now, now)
            return
        if over + self._at_a_time > 0:
            self._put_away(min(over + self._at_a_time, _AT_A_TIME), on_disk.first_due, now)
        room = on_disk.max_in_memory - len(bench.hosts)
        if room > 0:
            self._take_up(min(room, self._at_a_time), now)
        else:
            self._not_before = now + _AGAIN_SECONDS

    # --- from memory to disk --------------------------------------------------------------------

    def _put_away(self, count: int, later_than: float, now: float) -> None:
        """Hosts that wait for a moment later than ``later_than``; as many as are found, ``count`` at most.

        Those that began to wait last are such hosts as a rule; only where none is, others are looked for.
        """
        gone = self._of_the_waiting(count, later_than)
        if not (gone or self._latest):
            self._latest = self._hosts.workbench.waiting.latest(_FOUND_AT_A_TIME, later_than)
            self._latest.reverse()
        while self._latest and len(gone) < count:
            host = self._latest.pop()
            if host.next_free > later_than and self._may_go(host):
                gone[host.name] = host
        if gone:
            self._store_away(list(gone.values()), now)

    def _of_the_waiting(self, count: int, later_than: float) -> dict[str, Host]:
        """The latest of some hosts that began to wait; those whose state is not stored yet stay in line."""
        waited, dirty = self._hosts.workbench.waited, self._hosts.dirty
        if not waited:
            return {}
        some = [waited.popleft() for _ in range(min(len(waited), _LOOKED_AT_A_TIME))]
        fit = {host.name: host for host in some if host.next_free > later_than and self._may_go(host)}
        latest = sorted(fit.values(), key=_next_free)[-count:]
        gone = {host.name: host for host in latest}
        waited.extendleft(
            [host for host in reversed(some) if host.name not in gone and (host.name in fit or host.name in dirty)]
        )
        return gone

    def _may_go(self, host: Host) -> bool:
        """Whether the store can hold all that is known of the host."""
        if self._hosts.workbench.hosts.get(host.name) is not host or host.name in self._hosts.dirty:
            return False
        if host.taken or host.unstored or host.robots_unstored or host.embeds or host.rendering:
            return False
        return host.stage in (Stage.WAITING, Stage.IDLE)

    def _store_away(self, hosts: list[Host], now: float) -> None:
        on_disk = self._on_disk
        changes, counts = Changes(), on_disk.counted()
        for host in hosts:
            if host.stage == Stage.WAITING and host.rows > 0:
                on_disk.put(host, changes, counts, now)
            elif host.known or host.fetched:  # without work: its clock alone is kept
                changes.hosts.append((host.name, host.pack()))
        try:
            on_disk.apply(changes, counts, [host for host in hosts if host.on_disk])
        except StorageError:
            for host in hosts:
                host.on_disk = host.rests_on_disk = False
            raise
        for host in hosts:
            if host.on_disk:  # rows that are kept for a later run are counted anew when the host comes back
                self._hosts.waits(host, host.kept)
                host.kept = 0
            self._hosts.workbench.drop(host)
        self._hosts.workbench.waiting.tidy()

    # --- from disk to memory --------------------------------------------------------------------

    def _take_up(self, count: int, now: float) -> None:
        """The first ``count`` that are due."""
        hosts, on_disk = self._hosts, self._on_disk
        places = on_disk.due(count + 1)
        due = [place for place in places[:count] if place.at <= now * 1e6]
        changes, counts = Changes(), on_disk.counted()
        come: list[Host] = []
        for place, packed in zip(due, on_disk.store.packed_hosts([place.host for place in due]), strict=True):
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
        on_disk.apply(changes, counts, ())
        for host in come:
            hosts.comes_off_disk(host)
            host.listed = True
        on_disk.first_due = places[len(due)].at / 1e6 if len(places) > len(due) else inf
        for host in come:
            hosts.begin(host)
        if len(places) == len(due) and on_disk.counts.hosts:  # no host is listed: the counts were wrong
            hosts.waiting_urls -= on_disk.counts.rows
            on_disk.counts, on_disk.unstored = Counts(whole=on_disk.counts.whole), True

    def _has_rows(self, host: Host) -> bool:
        """Whether the host has rows in the store, whatever its state says."""
        if not host.rows and self._hosts.store.head(host.name, 1):
            host.rows = 1
        return host.rows > 0

    # --- at the start ---------------------------------------------------------------------------

    def begin_loading(self) -> None:
        """Hosts that were in memory are taken up by ``load_some``; after a crash every queue is looked at."""
        clock = self._hosts.clock
        self._hosts.loaded_early = set()
        self._look_at_all = not (clock.start.clean and self._on_disk.counts.whole) or clock.suspected

    def load_some(self, count: int) -> bool:
        """Take up so many more of them, or look at as many queues; whether there may be others."""
        now = self._hosts.clock.start.at
        if self._hosts.loaded_early is None:
            return False
        if self._names is None:
            names = self._on_disk.in_memory(count, self._loaded_to)
            self._load(names, now)
            if names:
                self._loaded_to = names[-1]
                return True
            if not self._look_at_all:
                self._loaded()
                return False
            self._names = iter(self._on_disk.store.hosts_with_work())
        self._looked_at = self._looked_at or list(islice(self._names, count))
        self._look_at(self._looked_at, now)
        more, self._looked_at = len(self._looked_at) == count, []
        if more:
            return True
        self._all_listed()
        self._loaded()
        return False

    def _loaded(self) -> None:
        self._hosts.loaded_early = None
        self._hosts.clock.warn()

    def _load(self, names: list[str], now: float) -> None:
        """Hosts that are listed as being in memory."""
        self._place(
            [name for name in names if name not in self._hosts.workbench.hosts and name not in self._loaded_early()],
            now,
        )

    def _look_at(self, names: list[str], now: float) -> None:
        """List hosts with rows that no list has."""
        hosts = self._hosts
        unlisted = [
            host
            for name in names
            if (host := hosts.workbench.hosts.get(name) or hosts.dirty.get(name)) and host.rows > 0 and not host.listed
        ]
        if unlisted:
            changes = Changes(due=[(host.name, None, IN_MEMORY) for host in unlisted])
            self._on_disk.apply(changes, self._on_disk.counts, unlisted)
        self._place(
            [
                name
                for name in names
                if not (name in hosts.workbench.hosts or name in hosts.dirty or name in self._loaded_early())
            ],
            now,
        )

    def _place(self, names: list[str], now: float) -> None:
        """Put hosts that are neither in memory nor on a list into memory while it has room, else on disk."""
        hosts, on_disk = self._hosts, self._on_disk
        changes, counts = Changes(), on_disk.counted()
        room = on_disk.max_in_memory - len(hosts.workbench.hosts)
        come: list[Host] = []
        away: list[Host] = []
        for name, packed in zip(names, on_disk.store.packed_hosts(names), strict=True):
            host = hosts.stored(name, packed)
            if host.on_disk:
                self._clamp_to_now(host, changes)
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
                on_disk.put(host, changes, counts, now)
                away.append(host)
        if not changes and not come:
            return
        on_disk.apply(changes, counts, [*come, *away])
        for host in away:
            hosts.waits(host, host.rows)
        for host in come:
            hosts.waits(host, host.waiting_urls)
            hosts.begin(host)

    def _clamp_to_now(self, host: Host, changes: Changes) -> None:
        """A host on disk waits no longer than anything lasts, though the clock was set back."""
        before = place_of(host).at
        if self._hosts.clock.clamp_to_now(host):
            changes.due.append((host.name, before, place_of(host).at))
            changes.hosts.append((host.name, host.pack()))

    def _all_listed(self) -> None:
        on_disk = self._on_disk
        if not on_disk.counts.whole:
            changes, counts = Changes(), on_disk.counted()
            counts.whole = True
            on_disk.apply(changes, counts, ())

    def _loaded_early(self) -> set[str]:
        assert self._hosts.loaded_early is not None
        return self._hosts.loaded_early


def _next_free(host: Host) -> float:
    return host.next_free
