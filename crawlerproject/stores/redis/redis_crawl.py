"""What Redis knows of a crawl wherever its frontier is: how it is divided, its workers, and what they have said."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import orjson

from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import fleet_keys, partition_keys, worker_keys
from crawlerproject.stores.row_codec import TEXT


class ActiveWorker(NamedTuple):
    """A worker that has joined and not left, and what it said last."""

    name: str
    seconds_ago: float  # that it said it, by the store's clock
    info: dict[str, Any]  # partitions, quiet, incarnation, pages, bytes, errors


LATER = b"a later version"
"""In the place of a holder: of leases as format 2 has them."""


class RedisCrawl:
    """Blocking. Raises StorageError."""

    def __init__(self, link: RedisLink, crawl: str, partitions: int) -> None:
        """``partitions``: how many the crawl has."""
        self.link = link
        self.crawl = crawl
        self.partitions = partitions
        self._keys = [partition_keys(crawl, number) for number in range(partitions)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.link.close()

    def partition(self, host: str) -> int:
        """The partition of a host key."""
        return partition_of(host, self.partitions)

    def fact_of(self, worker: str, name: str) -> bytes | None:
        """A fact of one worker; of "": one that the crawl brought along when it was copied into Redis."""
        state = worker_keys(self.crawl, worker).state
        value: bytes | None = self.link.call("HGET", [state], f"fact:{name}".encode(*TEXT))
        return value

    def lease_ends(self) -> dict[str, float]:
        """The workers that hold a partition: for how many seconds from now they may, by their longest lease."""
        seconds, micros = self.link.call("TIME")
        now_ms = int(seconds) * 1000 + int(micros) / 1000
        ends: dict[str, float] = {}
        leases = [lease for keys in self._keys for lease in (keys.lease, keys.old_lease)]
        for holder, until in self.link.many([Call("HMGET", [lease], ["holder", "until"]) for lease in leases]):
            if holder and holder != LATER and (left := (int(until) - now_ms) / 1000) > 0:
                ends[holder.decode()] = max(left, ends.get(holder.decode(), 0.0))
        return ends

    def workers_ever(self) -> list[str]:
        """Those that have joined, at work or not, but for those that were given up; by name."""
        return sorted(name.decode() for name in self.link.call("HKEYS", [fleet_keys(self.crawl).incarnations]))

    def workers(self) -> list[ActiveWorker]:
        """Those that have joined and not left, by name."""
        keys = fleet_keys(self.crawl)
        seen = [Call("ZRANGE", [each], [0, -1, "WITHSCORES"]) for each in (keys.old_seen, keys.seen)]
        *found, (seconds, micros) = self.link.many([*seen, Call("TIME", [])])
        if not (at := dict(sorted(found[0] + found[1]))):
            return []
        said = self.link.call("HMGET", [keys.info], *at)
        now = int(seconds) + int(micros) / 1e6
        return [
            ActiveWorker(name.decode(), max(0.0, now - float(seen) / 1000), orjson.loads(info or b"{}"))
            for (name, seen), info in zip(at.items(), said, strict=True)
        ]
