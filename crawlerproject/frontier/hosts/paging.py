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
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import Counts, Shelf, place_of
from crawlerproject.frontier.state import Books
from crawlerproject.frontier.workbench import Stage
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
# When nothing could be put away, since everybody is due, looked up, in line or not yet stored.
_AGAIN_SECONDS = 0.5


class Shelving:
    """Keeps memory within its bound. ``now`` is epoch seconds."""

    def __init__(self, books: Books, shelf: Shelf) -> None:
        self._books = books
        self._shelf = shelf
        self._at_a_time = min(_AT_A_TIME, max(shelf.max_in_memory // 4, 1))
        self._over = int(shelf.max_in_memory * _OVER_SHARE)
        self._not_before = 0.0
        self._latest: list[Host] = []  # to be put away, the latest last
        self._names: Iterator[str] | None = None  # of every host with work, while all are looked at
        self._loaded_to = ""
        self._looked_at: list[str] = []  # of them, now
        self._look_at_all = False

    def wake_at(self) -> float:
        """When ``tend`` may have something to do; infinity when nothing is on disk."""
        return max(self._shelf.first_due, self._not_before)

    def tend(self, now: float) -> None:
        """Take up what is due, and put away what must give way. StorageError: nothing has changed."""
        bench, shelf = self._books.workbench, self._shelf
        over = len(bench.hosts) - shelf.max_in_memory
        if (shelf.first_due > now and over <= self._over) or now < self._not_before:
            return
        self._not_before = now + _EVERY_SECONDS
        if bench.waited is None:
            bench.waited = deque(maxlen=shelf.max_in_memory)
        if shelf.first_due > now:
            self._put_away(min(over, _AT_A_TIME), now, now)
            return
        if over + self._at_a_time > 0:
            self._put_away(min(over + self._at_a_time, _AT_A_TIME), shelf.first_due, now)
        room = shelf.max_in_memory - len(bench.hosts)
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
            self._latest = self._books.workbench.latest(_FOUND_AT_A_TIME, later_than)
            self._latest.reverse()
        while self._latest and len(gone) < count:
            host = self._latest.pop()
            if host.next_free > later_than and self._may_go(host):
                gone[host.name] = host
        if gone:
            self._store_away(list(gone.values()), now)

    def _of_the_waiting(self, count: int, later_than: float) -> dict[str, Host]:
        """The latest of some that began to wait; what is not stored yet is looked at again another time."""
        waited, dirty = self._books.workbench.waited, self._books.dirty
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
        if self._books.workbench.hosts.get(host.name) is not host or host.name in self._books.dirty:
            return False
        if host.taken or host.unstored or host.robots_unstored or host.embeds or host.rendering:
            return False
        return host.stage in (Stage.WAITING, Stage.IDLE)

    def _store_away(self, hosts: list[Host], now: float) -> None:
        shelf = self._shelf
        changes, counts = Changes(), shelf.counted()
        for host in hosts:
            if host.stage == Stage.WAITING and host.rows > 0:
                shelf.put(host, changes, counts, now)
            elif host.known or host.fetched:  # without work: its clock alone is kept
                changes.hosts.append((host.name, host.pack()))
        shelf.ready(changes, counts)
        try:
            if changes:
                self._books.store.apply(changes)
        except StorageError:
            for host in hosts:
                host.on_disk = host.rests_on_disk = False
            raise
        waiting = [host for host in hosts if host.on_disk]
        shelf.stored(changes, counts, waiting)
        for host in hosts:
            if host.on_disk:  # what a later run shall have is met anew when the host comes back
                self._books.waits(host, host.kept)
                host.kept = 0
            self._books.workbench.drop(host)
        self._books.workbench.tidy()

    # --- from disk to memory --------------------------------------------------------------------

    def _take_up(self, count: int, now: float) -> None:
        """The first ``count`` that are due."""
        books, shelf = self._books, self._shelf
        places = shelf.due(count + 1)
        due = [place for place in places[:count] if place.at <= now * 1e6]
        changes, counts = Changes(), shelf.counted()
        come: list[Host] = []
        for place, packed in zip(due, shelf.store.packed_hosts([place.host for place in due]), strict=True):
            copy = books.dirty.get(place.host)
            host = Host(place.host, 0.0) if packed is None else Host.unpack(place.host, packed)
            counts.add(host, -1)
            if copy is not None and copy.on_disk:
                host = copy
            known = place.host in books.workbench.hosts or (copy is not None and not copy.on_disk)
            if known or not self._has_rows(host):
                changes.due.append((place.host, place.at, None))
                continue
            changes.due.append((place.host, place.at, IN_MEMORY))
            come.append(host)
        if not due:
            return
        shelf.ready(changes, counts)
        books.store.apply(changes)
        for host in come:
            host.on_disk = host.rests_on_disk = False
            books.bring_back(host)
            books.doubt(host, stored=True)
        shelf.stored(changes, counts, come)
        shelf.first_due = places[len(due)].at / 1e6 if len(places) > len(due) else inf
        for host in come:
            books.begin(host)
        if len(places) == len(due) and shelf.counts.hosts:  # nobody is there to be counted
            books.waiting_urls -= shelf.counts.rows
            shelf.counts, shelf.unstored = Counts(whole=shelf.counts.whole), True

    def _has_rows(self, host: Host) -> bool:
        """The rows are the truth."""
        if not host.rows and self._books.store.head(host.name, 1):
            host.rows = 1
        return host.rows > 0

    # --- at the start ---------------------------------------------------------------------------

    def begin_loading(self, *, look_at_all: bool) -> None:
        """Hosts that were in memory are taken up by ``load_some``; ``look_at_all``: after a crash, every queue."""
        self._books.met = set()
        self._look_at_all = look_at_all or not self._shelf.counts.whole or self._books.longest is not None

    def load_some(self, count: int, now: float) -> bool:
        """Take up so many more of them, or look at as many queues; whether there may be others."""
        if self._books.met is None:
            return False
        if self._names is None:
            names = self._shelf.in_memory(count, self._loaded_to)
            self._load(names, now)
            if names:
                self._loaded_to = names[-1]
                return True
            if not self._look_at_all:
                self._loaded()
                return False
            self._names = iter(self._shelf.store.hosts_with_work())
        self._looked_at = self._looked_at or list(islice(self._names, count))
        self._look_at(self._looked_at, now)
        more, self._looked_at = len(self._looked_at) == count, []
        if more:
            return True
        self._all_listed()
        self._loaded()
        return False

    def _loaded(self) -> None:
        self._books.met = None
        self._books.warn_of_set_back()

    def _load(self, names: list[str], now: float) -> None:
        """Hosts that are listed as being in memory."""
        self._place(
            [name for name in names if name not in self._books.workbench.hosts and name not in self._met()], now
        )

    def _look_at(self, names: list[str], now: float) -> None:
        """Hosts that have rows: are they where a start finds them?"""
        books = self._books
        unlisted = [
            host
            for name in names
            if (host := books.workbench.hosts.get(name) or books.dirty.get(name)) and host.rows > 0 and not host.listed
        ]
        if unlisted:
            changes = Changes(due=[(host.name, None, IN_MEMORY) for host in unlisted])
            self._shelf.ready(changes, self._shelf.counts)
            books.store.apply(changes)
            self._shelf.stored(changes, self._shelf.counts, unlisted)
        self._place(
            [
                name
                for name in names
                if not (name in books.workbench.hosts or name in books.dirty or name in self._met())
            ],
            now,
        )

    def _place(self, names: list[str], now: float) -> None:
        """Hosts that wait nowhere yet: in memory while it has room, else on disk."""
        books, shelf = self._books, self._shelf
        changes, counts = Changes(), shelf.counted()
        room = shelf.max_in_memory - len(books.workbench.hosts)
        come: list[Host] = []
        away: list[Host] = []
        for name, packed in zip(names, shelf.store.packed_hosts(names), strict=True):
            host = books.stored(name, packed)
            if host.on_disk:
                self._bring_back(host, changes)
                continue
            if not self._has_rows(host):
                changes.due.append((name, IN_MEMORY, None))
                continue
            host.given_up, host.held = False, ""  # it was, until this start
            if len(come) < room:
                come.append(host)
                if not host.listed:
                    changes.due.append((name, None, IN_MEMORY))
            else:
                host.listed = True  # maybe, and then no more
                shelf.put(host, changes, counts, now)
                away.append(host)
        if not changes and not come:
            return
        shelf.ready(changes, counts)
        if changes:
            books.store.apply(changes)
        shelf.stored(changes, counts, [*come, *away])
        for host in away:
            books.waits(host, host.rows)
        for host in come:
            books.waits(host, host.waiting_urls)
            books.begin(host)

    def _bring_back(self, host: Host, changes: Changes) -> None:
        """A clock that was set back makes nobody on disk wait for longer than anything lasts."""
        before = place_of(host).at
        if self._books.bring_back(host):
            changes.due.append((host.name, before, place_of(host).at))
            changes.hosts.append((host.name, host.pack()))

    def _all_listed(self) -> None:
        shelf = self._shelf
        if not shelf.counts.whole:
            changes, counts = Changes(), shelf.counted()
            counts.whole = True
            shelf.ready(changes, counts)
            shelf.store.apply(changes)
            shelf.stored(changes, counts, [])

    def _met(self) -> set[str]:
        assert self._books.met is not None
        return self._books.met


def _next_free(host: Host) -> float:
    return host.next_free
