"""The queues of a worker's hosts: their beginnings in memory, what is behind asked of Redis when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock

from crawlerproject.stores.protocols import Changes, QueuedPage
from crawlerproject.stores.redis.buffer.queue_heads import MEMBERS, QueueHeads
from crawlerproject.stores.redis.pending import Pending
from crawlerproject.stores.redis.queues import RedisQueues


class BufferedQueues:
    """``lock`` guards ``heads``; ``waiting`` is always what is not yet written in Redis, the oldest first."""

    def __init__(self, stored: RedisQueues, waiting: Callable[[], list[Pending]], lock: RLock) -> None:
        self.heads = QueueHeads()
        self._stored = stored
        self._waiting = waiting
        self._lock = lock

    def head(self, host: str, limit: int) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue."""
        with self._lock:
            while (rows := self.heads.first(host, limit)) is None:
                self._read(host, limit)
            return rows

    def open_up_to(self, row: QueuedPage) -> None:
        """A row that is removed is a member of its own, as a rule; else it may be in a bundle, which is opened."""
        while not self.heads.is_open(row, self._waiting()):
            self._read(row.host, MEMBERS)

    def apply(self, changes: Changes) -> None:
        """Take in what was decided here."""
        for row in changes.removed:
            self.heads.drop(row)
        for row in changes.queued:
            self.heads.add(row)

    def refill(self) -> None:
        """Read more of the queues that ran low, in one round trip. May run in a thread."""
        with self._lock:
            wanted = {host: self.heads.known_to(host) for host in sorted(self.heads.wanted)}
            self.heads.wanted.clear()
        if not wanted:
            return
        found = self._stored.first_members(wanted, MEMBERS)
        with self._lock:
            for (host, start), members in zip(wanted.items(), found, strict=True):
                if self.heads.lacks(host, start):  # else it was asked for meanwhile
                    self.heads.put(host, members, MEMBERS, self._waiting(), start)

    def _read(self, host: str, limit: int) -> None:
        """Read more of a queue, maybe still not enough: rows may be gone, or stand behind what was read."""
        waiting, start = self._waiting(), self.heads.known_to(host)
        count = self.heads.count(host, limit, waiting)
        [members] = self._stored.first_members({host: start}, count)
        self.heads.put(host, members, count, waiting, start)
