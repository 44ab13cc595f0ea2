"""The queues of a worker's hosts: their first rows in memory, what is behind asked of Redis when it is needed.

Of a queue an unbroken beginning is at hand, of which Redis has every row as a member of its own once all is sent.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import RLock

from crawlerproject.stores.protocols import Changes, QueuedPage
from crawlerproject.stores.redis.batch_writer import Pending
from crawlerproject.stores.redis.redis_queues import (
    NOWHERE,
    QueuePlace,
    RedisQueues,
    is_bundle,
    place_of,
    place_of_member,
    rows_of,
)

#: Members of a host's queue that are asked for: at one page in five seconds more than a minute's work.
MEMBERS = 16
# A host with fewer rows at hand gets more with the next batch.
_LOW = 4
# Of a host, when rows arrive in front of those at hand; an opened bundle or two must not make room for them.
_MOST_ROWS = 64
# Rows at hand in all, some 500 bytes each.
_ROWS = 200_000


@dataclass(slots=True)
class _Head:
    rows: list[QueuedPage]  # the first of the queue, in order
    to: QueuePlace | None  # up to where all are among them; None: there are no others


class BufferedQueues:
    """``lock`` is held around all but ``refill``; ``waiting``: what is not yet written in Redis, the oldest first."""

    def __init__(self, stored: RedisQueues, waiting: Callable[[], list[Pending]], lock: RLock) -> None:
        self._stored = stored
        self._waiting = waiting
        self._lock = lock
        self._wanted: set[str] = set()  # hosts that ran low
        self._heads: OrderedDict[str, _Head] = OrderedDict()
        self._rows = 0
        # Hosts with rows in Redis of which none is at hand -> up to where all are members of their own.
        self._unread: dict[str, QueuePlace] = {}

    def arrive(self, host: str) -> None:
        """A host with rows in Redis, of which nothing is known yet."""
        self._unread[host] = NOWHERE

    def leave(self, going: Callable[[str], bool]) -> None:
        """Hosts that are another worker's from now on."""
        for host in [host for host in self._heads if going(host)]:
            self._rows -= len(self._heads.pop(host).rows)
        self._unread = {host: place for host, place in self._unread.items() if not going(host)}

    def head(self, host: str, limit: int) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue."""
        with self._lock:
            while (rows := self._first(host, limit)) is None:
                self._read(host, limit)
            return rows

    def _first(self, host: str, limit: int) -> list[QueuedPage] | None:
        """The first rows at hand; None: more must be read."""
        head = self._heads.get(host)
        if head is None:
            return None if host in self._unread else []
        if head.to is not None and len(head.rows) < limit:
            return None
        self._heads.move_to_end(host)
        if head.to is not None and len(head.rows) < limit + _LOW:
            self._wanted.add(host)
        return head.rows[:limit]

    def open_up_to(self, row: QueuedPage) -> None:
        """A row that is removed is a member of its own, as a rule; else it may be in a bundle, which is opened."""
        place = place_of(row)
        while not any(place in each.queued.get(row.host, ()) for each in self._waiting()):
            if (behind := self.behind(row.host)) is None or place <= behind:
                break
            self._read(row.host, MEMBERS)

    def behind(self, host: str) -> QueuePlace | None:
        """Rows behind this place are not at hand and may be in bundles; None: all are at hand."""
        head = self._heads.get(host)
        if head is None:
            return self._unread.get(host)
        return head.to

    def _known_to(self, host: str) -> QueuePlace:
        """Up to where all rows of the host are at hand: from there on Redis is asked."""
        head = self._heads.get(host)
        return NOWHERE if head is None or head.to is None else head.to

    def _read(self, host: str, limit: int) -> None:
        """Read more of a queue, maybe still not enough: rows may be gone, or stand behind what was read."""
        start, head = self._known_to(host), self._heads.get(host)
        if head is not None:  # what is removed was at hand
            count = max(limit - len(head.rows), MEMBERS)
        else:
            count = max(limit, MEMBERS) + sum(len(each.removed.get(host, ())) for each in self._waiting())
        [members] = self._stored.first_members({host: start}, count)
        self._put(host, members, count, start)

    def _put(self, host: str, members: Sequence[bytes], asked: int, start: QueuePlace) -> None:
        """What Redis has as the first ``asked`` members behind ``start``, which is ``_known_to`` of the host.

        A bundle that is come to is opened in the last batch that waits.
        """
        waiting = self._waiting()
        more = len(members) == asked
        on_the_way = {
            member
            for each in waiting
            for member in each.bundles.get(host, ())
            if place_of_member(member) > start and (not more or member < members[-1])
        }
        known = sorted({*members, *on_the_way})
        end = place_of_member(known[-1]) if more else None  # whatever is behind it is not known
        opened = {member for each in waiting for member in each.opened.get(host, ())}
        rows: dict[QueuePlace, QueuedPage] = {}
        for member in known:
            if member in opened:
                continue  # its rows are among those that wait
            if is_bundle(member):
                if len(rows) >= asked:
                    more, end = True, (member[0], place_of_member(member)[1] - 1)
                    break
                waiting[-1].opened.setdefault(host, {})[member] = rows_of(host, member)
            rows.update((place_of(row), row) for row in rows_of(host, member))
        for each in waiting:
            each.overlay(host, rows)
        kept = [rows[place] for place in sorted(rows) if place > start and (end is None or place <= end)]
        self._unread.pop(host, None)
        old = self._heads.get(host)
        self._heads[host] = _Head([*(old.rows if old else ()), *kept], end)
        self._heads.move_to_end(host)
        self._rows += len(kept)
        self._make_room(host)

    def _make_room(self, host: str) -> None:
        while self._rows > _ROWS and len(self._heads) > 1:
            name = next(iter(self._heads))
            if name == host:
                break
            head = self._heads.pop(name)
            self._rows -= len(head.rows)
            self._unread[name] = (place_of(head.rows[-1]) if head.rows else NOWHERE) if head.to is None else head.to

    def _add(self, row: QueuedPage) -> None:
        head = self._heads.get(row.host)
        if head is None:
            if row.host in self._unread:
                return
            head = self._heads[row.host] = _Head([], None)
        place = place_of(row)
        if head.to is not None and place > head.to:
            return
        self._drop(row)
        insort(head.rows, row, key=place_of)
        self._rows += 1
        if len(head.rows) > _MOST_ROWS:
            self._rows -= len(head.rows) - MEMBERS
            del head.rows[MEMBERS:]
            head.to = place_of(head.rows[-1])

    def _drop(self, row: QueuedPage) -> None:
        head = self._heads.get(row.host)
        if head is None:
            return
        place = place_of(row)
        index = bisect_left(head.rows, place, key=place_of)
        if index < len(head.rows) and place_of(head.rows[index]) == place:
            del head.rows[index]
            self._rows -= 1

    def apply(self, changes: Changes) -> None:
        """Take in what was decided here."""
        for row in changes.removed:
            self._drop(row)
        for row in changes.queued:
            self._add(row)

    def refill(self) -> None:
        """Read more of the queues that ran low, in one round trip. May run in a thread."""
        with self._lock:
            wanted = {host: self._known_to(host) for host in sorted(self._wanted)}
            self._wanted.clear()
        if not wanted:
            return
        found = self._stored.first_members(wanted, MEMBERS)
        with self._lock:
            for (host, start), members in zip(wanted.items(), found, strict=True):
                if (head := self._heads.get(host)) is not None and head.to == start:  # else it was read meanwhile
                    self._put(host, members, MEMBERS, start)
