"""A crawl of format 2, of versions 1.5 to 1.7, whose frontier is in Redis itself: how it becomes one of today's.

The first worker that starts makes the crawl one of today's, which those versions refuse. One of their workers that was
frozen meanwhile, or was about to join, has no lease then and gets none, and what it decides is refused. The rows of
each partition are read once, by the worker that takes it, and removed when Redis has a copy of them. What lacks a copy
is read again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING

from crawlerproject.errors import OperatorError
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.protocols import host_of_fact
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import PartitionKeys, fleet_keys, partition_keys, worker_keys
from crawlerproject.stores.redis.redis_crawl import LATER, RedisCrawl
from crawlerproject.stores.redis.scripts import script
from crawlerproject.stores.row_codec import (
    FACTS,
    FINGERPRINT_BYTES,
    HASH_BYTES,
    HOSTS,
    MESSAGES,
    PAGES,
    PLACE_BYTES,
    PRINTS,
    QUEUE,
    ROBOTS,
    SEEN,
    TEXT,
    host_prefix,
    host_row_key,
    unpack_record,
)

if TYPE_CHECKING:
    from crawlerproject.stores.rocks.row_packing import Row

FORMAT = 2
MIGRATING = "of format 2"
"""Of the crawl's facts, while partitions may have rows in Redis itself: the workers of before, each with a NUL."""
# Workers reported ten times in the time of a lease; one that was silent for so long has lost what it held.
_SILENT_SECONDS = 60
_AT_A_TIME = 1000

# A queue's member is a place, then one row, or a bundle: a number of rows, their places, their lengths, the rows.
_BUNDLE, _COUNT, _LENGTH = b"\1", Struct(">H"), Struct(">I")
_PRINT_BYTES = HASH_BYTES + FINGERPRINT_BYTES


# The crawl is of another format from now on, once. KEYS facts, incarnations; ARGV its format, that of today, MIGRATING
_BEGIN = script(
    """
if redis.call('HGET', KEYS[1], 'format') ~= ARGV[1] then return 0 end
local names = ''
for _, name in ipairs(redis.call('HKEYS', KEYS[2])) do names = names .. name .. '\\0' end
redis.call('HSET', KEYS[1], 'format', ARGV[2], ARGV[3], names)
return 1
"""
)

# A lease is where workers of today have it; those of before find it taken for ever. KEYS its place of before, lease;
# ARGV LATER
_FENCE = script(
    """
if redis.call('HGET', KEYS[1], 'holder') == ARGV[1] then return 0 end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[2]) end
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'until', '9007199254740991', 'token', 0)
return 1
"""
)

# What a process of before decides under a worker's name is refused. KEYS the worker's state; ARGV format of today
_END_LIFE = script(
    """
if redis.call('HSETNX', KEYS[1], 'format', ARGV[1]) == 1 then redis.call('HSET', KEYS[1], 'life', '') end
return 1
"""
)


def begin(link: RedisLink, crawl: str, today: int) -> None:
    """Make a crawl of format 2 one of format ``today``; nothing to do for any other.

    Raises OperatorError while one of its workers may be at work, StorageError.
    """
    keys = fleet_keys(crawl)
    written, partitions = link.call("HMGET", [keys.facts], "format", "partitions")
    if written is not None and int(written) == FORMAT:
        _refuse_workers(link, crawl, int(partitions))
        link.call(_BEGIN, [keys.facts, keys.incarnations], FORMAT, today, MIGRATING)
    if (names := link.call("HGET", [keys.facts], MIGRATING)) is not None:  # also after a death right here
        leases = [partition_keys(crawl, number) for number in range(int(partitions))]
        link.many([Call(_FENCE, [each.old_lease, each.lease], [LATER]) for each in leases])
        states = [worker_keys(crawl, name).state for name in names.decode().split("\0")[:-1]]
        link.many([Call(_END_LIFE, [state], [today]) for state in states])


def _refuse_workers(link: RedisLink, crawl: str, partitions: int) -> None:
    """Raise OperatorError while one of a crawl of format 2 may be at work."""
    keys = fleet_keys(crawl)
    ends = RedisCrawl(link, crawl, partitions).lease_ends()
    now_ms = int(link.call("TIME")[0]) * 1000
    for name, at in link.call("ZRANGEBYSCORE", [keys.old_seen], now_ms - _SILENT_SECONDS * 1000, "+inf", "WITHSCORES"):
        ends.setdefault(name.decode(), (float(at) - now_ms) / 1000 + _SILENT_SECONDS)
    if int(link.call("HGET", [keys.facts], "format")) != FORMAT:
        return  # another worker of today was quicker, and is at work
    if ends:
        name, left = max(ends.items(), key=itemgetter(1))
        raise OperatorError(
            f"A worker of an earlier version, {name!r}, may be at work on the crawl {crawl!r}: stop all of them "
            f"(Ctrl-C), then start this again; when it was killed, {left:.0f} seconds from now."
        )
    if link.cluster:
        _refuse_unwritten(link, crawl)


def _refuse_unwritten(link: RedisLink, crawl: str) -> None:
    """Raise OperatorError where a worker had decided a batch in a cluster that is not written everywhere."""
    for name in (name.decode() for name in link.call("HKEYS", [fleet_keys(crawl).incarnations])):
        keys = worker_keys(crawl, name)
        serial = int(link.call("HGET", [keys.state], "serial") or 0)
        decided = dict.fromkeys(map(int, link.call("HKEYS", [keys.batch])), serial)
        left = link.call("HGETALL", [keys.left])
        decided |= {int(number): int(value.partition(b":")[0]) for number, value in left.items()}
        calls = [Call("HGET", [partition_keys(crawl, number).old_lease], [f"by:{name}"]) for number in decided]
        if any(int(done or 0) < number for done, number in zip(link.many(calls), decided.values(), strict=True)):
            raise OperatorError(
                f"The last batch of worker {name!r} of the crawl {crawl!r} is not written in all of the cluster: start "
                "the workers with the version that they had once more, and stop them (Ctrl-C)."
            )


def migrating(link: RedisLink, crawl: str, partitions: int) -> bool:
    """Whether partitions may have rows of this format. When none has, what is left of it goes. StorageError."""
    keys = fleet_keys(crawl)
    if link.call("HGET", [keys.facts], MIGRATING) is None:
        return False
    if None in link.many([Call("HGET", [partition_keys(crawl, n).lease], ["of"]) for n in range(partitions)]):
        return True
    for number in range(partitions):  # of a worker that ended between the copy and this
        remove(link, partition_keys(crawl, number))
    for name in link.call("HKEYS", [keys.incarnations]):
        link.many([Call("UNLINK", [key]) for key in worker_keys(crawl, name.decode())[1:]])
    link.call("HDEL", [keys.facts], MIGRATING)
    return False


def rows(link: RedisLink, crawl: str, partition: int) -> Iterator[Row]:
    """All rows of a partition, as today's frontiers have them; some may come twice."""
    keys, hosts = partition_keys(crawl, partition), set[str]()
    for name, packed in _fields(link, keys.hosts):
        hosts.add(name.decode(*TEXT))
        yield HOSTS, name, packed
    for key, packed in _fields(link, keys.pages):
        yield SEEN, key, b""
        if packed:
            hosts.add(host_key(unpack_record(packed).url))
            yield PAGES, key, packed
    for name, packed in _fields(link, keys.robots):
        if host_of_fact(text := name.decode(*TEXT)):
            yield FACTS, name, packed
        else:
            hosts.add(text.rpartition("://")[2])
            yield ROBOTS, name, packed
    for name in link.call("SMEMBERS", [keys.work]):
        hosts.add(host := name.decode(*TEXT))
        prefix = host_prefix(host)
        for member in _members(link, keys.queue_prefix.encode() + name):
            yield from ((QUEUE, prefix + place, packed) for place, packed in packed_rows(member))
    for member in _members(link, keys.prints):
        yield PRINTS, member[:_PRINT_BYTES], member[_PRINT_BYTES:]
    for host in hosts:
        yield MESSAGES, host_row_key(partition, host), b""


def remove(link: RedisLink, keys: PartitionKeys) -> None:
    """Remove what ``rows`` reads. May be done again."""
    names = list(link.call("SMEMBERS", [keys.work]))
    prefix = keys.queue_prefix.encode()
    link.many([Call("UNLINK", [prefix + name]) for name in names])
    link.call("UNLINK", [keys.pages, keys.hosts, keys.robots, keys.prints, keys.work])


def remove_robots(link: RedisLink, keys: PartitionKeys, origins: Sequence[bytes]) -> None:
    """Remove the robots.txt of origins from a partition that is held."""
    link.call("HDEL", [keys.robots], *origins)


def is_message(row: bytes) -> bool:
    """Whether those versions wrote it: JSON. Today's begin with a number below 2**56."""
    return not row.startswith(b"\0")


def packed_rows(member: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each row's place and the rest of it (``pack_queued``)."""
    if member[PLACE_BYTES : PLACE_BYTES + 1] != _BUNDLE:
        yield member[:PLACE_BYTES], member[PLACE_BYTES + 1 :]
        return
    (count,) = _COUNT.unpack_from(member, PLACE_BYTES + 1)
    text = zlib.decompress(member[PLACE_BYTES + 1 + _COUNT.size :])
    at = count * (PLACE_BYTES + _LENGTH.size)
    for number in range(count):
        (length,) = _LENGTH.unpack_from(text, count * PLACE_BYTES + number * _LENGTH.size)
        yield text[number * PLACE_BYTES : (number + 1) * PLACE_BYTES], text[at : at + length]
        at += length


def _fields(link: RedisLink, key: str) -> Iterator[tuple[bytes, bytes]]:
    cursor = 0
    while True:
        answer = link.call("HSCAN", [key], cursor, b"COUNT", _AT_A_TIME)
        yield from answer[1].items()  # redis makes a dictionary of it
        if not (cursor := int(answer[0])):
            return


def _members(link: RedisLink, key: str | bytes) -> Iterator[bytes]:
    """The members of a sorted set whose scores are all 0, in order."""
    start = b"-"
    while found := link.call("ZRANGEBYLEX", [key], start, b"+", b"LIMIT", 0, _AT_A_TIME):
        yield from found
        start = b"(" + found[-1]
