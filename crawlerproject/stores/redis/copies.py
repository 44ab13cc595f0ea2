"""The copies of partitions in Redis: all rows of one as of some change, which its holder gives and others take over.

Only the holder of a partition, by its token, can put a copy in the place of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from crawlerproject.errors import LeaseLost
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.forgetting import forgotten
from crawlerproject.stores.redis.keys import partition_keys
from crawlerproject.stores.redis.scripts import script

if TYPE_CHECKING:
    from crawlerproject.stores.redis.journals import Taken

# Entries of a journal, or parts of a copy, in one answer: some MB.
_AT_A_TIME = 64

# A copy begins: what is left of one that was never whole goes.
# KEYS lease, what one that was begun before has, what this one will have; ARGV worker, token, number of the last change
# that this one will hold. -> bytes of the journal, or -1: the lease is another's
_COPY = script(
    """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token', 'bytes')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return -1 end
redis.call('HSET', KEYS[1], 'copying', ARGV[3])
redis.call('DEL', KEYS[2], KEYS[3])
return tonumber(h[3] or '0')
"""
)

# KEYS lease, a copy; ARGV worker, token, a part of it. -> 1, or 0: the lease is another's
_PART = script(
    """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[3])
return 1
"""
)

# A copy is whole: the changes that it holds leave the journal, and the copy of before goes.
# KEYS lease, journal, the copy of before, the new one; ARGV worker, token, number of the last change in it, its bytes,
# bytes of the journal when it was begun. -> 1, or 0: the lease is another's
_COPIED = script(
    """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token', 'copy')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 0 end
local before, upto = tonumber(h[3] or '0'), tonumber(ARGV[3])
if before == upto then return 1 end
redis.call('HSET', KEYS[1], 'copy', upto, 'copied', ARGV[4])
redis.call('HINCRBY', KEYS[1], 'bytes', -tonumber(ARGV[5]))
redis.call('HDEL', KEYS[1], 'copying')
redis.call('DEL', KEYS[3])
redis.call('LTRIM', KEYS[2], upto - before, -1)
return 1
"""
)

# As COPIED and OPEN at once, where Redis had lost what it knew of the partition.
# KEYS lease, journal, read, the new copy; ARGV worker, token, the crawl's id, number of the last change in the copy,
# its bytes, (outbox, number of its last message that took effect)*. -> 1, or 0: the lease is another's
_ANEW = script(
    """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[1], 'of', ARGV[2], 'crawl', ARGV[3], 'journal', ARGV[4], 'copy', ARGV[4], 'copied', ARGV[5],
  'bytes', 0)
for i = 6, #ARGV, 2 do redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1]) end
return 1
"""
)


class PartitionCopies:
    """One worker's view; ``held``: the partitions that it holds, and their tokens. Raises StorageError."""

    def __init__(self, link: RedisLink, crawl: str, worker: str, crawl_id: str, held: Mapping[int, int]) -> None:
        self._link = link
        self._crawl = crawl
        self._worker = worker
        self._crawl_id = crawl_id
        self._held = held

    def copy(self, partition: int, number: int, parts: Iterable[bytes], whole: Callable[[], None] | None = None) -> int:
        """Put a copy of a partition in the place of the one before; it holds all changes up to ``number``. Its bytes.

        It may hold a part of what was changed later: ``whole`` sees to it that the journal has all of that before the
        copy counts. Raises LeaseLost.
        """
        keys, token = partition_keys(self._crawl, partition), self._held.get(partition, 0)
        before, begun = (int(each or 0) for each in self._link.call("HMGET", [keys.lease], "copy", "copying"))
        if before == number:
            return 0
        old, made, unfinished = (
            copy_key(self._crawl, partition, each) for each in (before, number, number if begun == before else begun)
        )
        started = [keys.lease, unfinished, made]
        if (journal_bytes := self._link.call(_COPY, started, self._worker, token, number)) < 0:
            raise lost_partition(partition)
        total = self._write_copy(partition, token, made, parts)
        if whole is not None:
            whole()
        names = [keys.lease, keys.journal, old, made]
        if not self._link.call(_COPIED, names, self._worker, token, number, total, journal_bytes):
            raise lost_partition(partition)
        return total

    def _write_copy(self, partition: int, token: int, key: str, parts: Iterable[bytes]) -> int:
        lease, total = partition_keys(self._crawl, partition).lease, 0
        for part in parts:
            total += len(part)
            if not self._link.call(_PART, [lease, key], self._worker, token, part):
                raise lost_partition(partition)
        return total

    def stored(self, partition: int, taken: Taken) -> Iterator[bytes]:
        """The parts of a partition's copy, then the changes since; of one that is held, so that none is added."""
        copy, journal = stored_keys(self._crawl, partition, taken.copy)
        for key, expected in ((copy, None), (journal, taken.journal - taken.copy)):
            at = 0
            for part in listed(self._link, key):
                yield part
                at += 1
            if (expected is None and taken.copy and not at) or (expected is not None and at != expected):
                raise forgotten(self._link, self._crawl, f"has lost a part of partition {partition}")

    def opened_anew(
        self, partition: int, number: int, parts: Iterable[bytes], marks: Sequence[tuple[bytes, int]]
    ) -> int:
        """As ``opened``, with a copy of them as of the change ``number``; what Redis had is of before. Its bytes."""
        keys, made = partition_keys(self._crawl, partition), copy_key(self._crawl, partition, number)
        self._link.call("DEL", [made])
        total = self._write_copy(partition, self._held[partition], made, parts)
        names = [keys.lease, keys.journal, keys.read, made]
        words = [word for mark in marks for word in mark]
        token = self._held[partition]
        if not self._link.call(_ANEW, names, self._worker, token, self._crawl_id, number, total, *words):
            self._link.call("DEL", [made])
            raise lost_partition(partition)
        return total


def copy_key(crawl: str, partition: int, number: int) -> str:
    """The list with the parts of a partition's copy of this number."""
    return f"{{{crawl}.{partition}}}:copy.{number}"


def stored_keys(crawl: str, partition: int, copy: int) -> tuple[str, str]:
    """Of a partition's copy of this number, and of its journal."""
    return copy_key(crawl, partition, copy), partition_keys(crawl, partition).journal


def listed(link: RedisLink, key: str) -> Iterator[bytes]:
    """All of a list, which may grow meanwhile."""
    at = 0
    while some := link.call("LRANGE", [key], at, at + _AT_A_TIME - 1):
        yield from some
        at += len(some)


def lost_partition(partition: int) -> LeaseLost:
    """The error for a lease that was lost."""
    return LeaseLost(f"partition {partition} was taken by another worker")
