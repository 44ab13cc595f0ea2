"""After Redis has lost data: the frontiers of the workers are the truth, once all that were at work are back.

Each worker that begins says which of the others it knew to be at work, and how far its own rows of partitions were
given to Redis. Until the last of those others has begun none takes a partition; then each takes those of which it has
the latest rows, and gives Redis a copy of them. It is over when all such partitions are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.scripts import script

Mark = tuple[int, int]
"""Token under which a partition was held, and number of its last change: the greater the later."""

# KEYS missing, marks; ARGV worker, number of names, names*, (partition, token, change)*
_BEGIN = script(
    """
local names = tonumber(ARGV[2])
for i = 3, 2 + names do redis.call('HSETNX', KEYS[1], ARGV[i], '0') end
redis.call('HSET', KEYS[1], ARGV[1], '1')
for i = 3 + names, #ARGV, 3 do
  local known = redis.call('HGET', KEYS[2], ARGV[i])
  local token, change = -1, -1
  if known then token, change = string.match(known, '^(%d+) (%d+) ') end
  local t, c = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  if t > tonumber(token) or (t == tonumber(token) and c > tonumber(change)) then
    redis.call('HSET', KEYS[2], ARGV[i], t .. ' ' .. c .. ' ' .. ARGV[1])
  end
end
return 1
"""
)

# Partitions are taken. KEYS missing, marks; ARGV partitions
_SETTLED = script(
    """
for _, partition in ipairs(ARGV) do redis.call('HDEL', KEYS[2], partition) end
if redis.call('HLEN', KEYS[2]) == 0 then redis.call('DEL', KEYS[1]) end
return 1
"""
)


class Pending(NamedTuple):
    """What a fleet waits for."""

    missing: list[str]  # workers that have not begun again
    marks: dict[int, str]  # partitions, each with the worker that has its latest rows


class Rejoining:
    """One worker's part. Blocking; StorageError."""

    def __init__(self, link: RedisLink, crawl: str, worker: str) -> None:
        self._link = link
        self._worker = worker
        self._keys = [f"{{{crawl}.fleet}}:missing", f"{{{crawl}.fleet}}:marks"]

    def begin(self, others: Iterable[str], marks: Mapping[int, Mark]) -> None:
        """The worker is back; ``others`` were at work when Redis lost what it knew."""
        names = [name for name in others if name != self._worker]
        words = [word for partition, mark in marks.items() for word in (partition, *mark)]
        self._link.call(_BEGIN, self._keys, self._worker, len(names), *names, *words)

    def back(self) -> bool:
        """Whether the fleet waits for workers; then this one is there from now on."""
        pending = bool(self._link.call("EXISTS", [self._keys[0]]))
        if pending:
            self._link.call("HSET", [self._keys[0]], self._worker, "1")
        return pending

    def look(self) -> Pending | None:
        """What the fleet waits for; None: it is over."""
        missing = self._link.call("HGETALL", [self._keys[0]])
        marks = self._link.call("HGETALL", [self._keys[1]])
        if not (missing or marks):
            return None
        absent = sorted(name.decode() for name, is_back in missing.items() if is_back == b"0")
        return Pending(absent, {int(number): mark.split(b" ", 2)[2].decode() for number, mark in marks.items()})

    def settled(self, partitions: Iterable[int]) -> None:
        """Partitions are taken, with the latest rows that there were."""
        self._link.call(_SETTLED, self._keys, *partitions)

    def give_up(self, worker: str) -> None:
        """The worker never comes back: others go on without its rows, also those that begin later and knew it."""
        self._link.call("HSET", [self._keys[0]], worker, "1")
        for number, mark in self._link.call("HGETALL", [self._keys[1]]).items():
            if mark.split(b" ", 2)[2].decode() == worker:
                self._link.call("HDEL", [self._keys[1]], number)
