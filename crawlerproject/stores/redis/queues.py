"""The queues of a crawl's hosts in Redis: sorted sets, whose members are rows or bundles of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from crawlerproject.stores.protocols import QueuedPage
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.queue_members import NOWHERE, QueuePlace, behind, in_order, place_of

_MEMBERS_AT_A_TIME = 1000


class RedisQueues:
    """Blocking; ``key`` gives the key of a host's queue. Raises StorageError."""

    def __init__(self, link: RedisLink, key: Callable[[str], bytes]) -> None:
        self._link = link
        self._key = key

    def head(self, host: str, limit: int, after: QueuePlace | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        behind = (row for row in self.whole(host) if after is None or place_of(row) > after)
        return list(islice(behind, limit))

    def whole(self, host: str) -> Iterator[QueuedPage]:
        """The host's whole queue in order."""
        return in_order(host, self.members(self._key(host)))

    def members(self, key: str | bytes) -> Iterator[bytes]:
        """Every member of a sorted set whose scores are all 0, in order."""
        start = b"-"
        while found := self._link.call("ZRANGEBYLEX", [key], start, b"+", b"LIMIT", 0, _MEMBERS_AT_A_TIME):
            yield from found
            start = b"(" + found[-1]

    def first_members(self, hosts: Mapping[str, QueuePlace], limit: int) -> list[list[bytes]]:
        """The first members of many hosts' queues behind a place of each, in one call."""
        starts = [(self._key(host), b"-" if start == NOWHERE else behind(start)) for host, start in hosts.items()]
        calls = [Call("ZRANGEBYLEX", [key], [start, b"+", b"LIMIT", 0, limit]) for key, start in starts]
        return self._link.many(calls)
