"""What workers decide: the log of each, in Redis, from which it goes into the journals of partitions.

The partitions of a change may be on several servers, and a journal is packed best in large pieces. So a change is
decided where the worker's facts are, as one entry of its log, and written to the journals later: by the worker, some
commits at a time, by its next incarnation, or by whichever takes a partition over. Numbers tell what is written.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import worker_keys
from crawlerproject.stores.row_codec import join_parts, split_parts

# Partition, number of the first change, number of changes.
_HEAD = Struct(">qqq")
_LEVEL = 1  # of zlib: with each commit


class Append(NamedTuple):
    """What a partition's journal gets."""

    partition: int
    first: int  # number of the first change
    changes: Sequence[bytes]
    removed: int = 0  # messages that may go from the inbox, counted from the crawl's beginning
    marks: Sequence[tuple[bytes, int]] = ()  # outbox, and number of its last message that took effect


class LogKeys(NamedTuple):
    """Keys of one worker, of one slot of a cluster."""

    # hash: life (its incarnation), serial (of its last change), fact:NAME; how many entries its log ever got (came) and
    # lost (went)
    state: str
    log: str  # list of entries
    fenced: str  # hash: partition -> token up to which this worker's changes are refused


def log_keys(crawl: str, worker: str) -> LogKeys:
    """Those of the worker called ``worker``."""
    state = worker_keys(crawl, worker).state
    return LogKeys(state, f"{state}.log", f"{state}.fenced")


def pack_entry(some: Iterable[Append]) -> bytes:
    """Of a log; b"": nothing changes."""
    parts = [
        part
        for each in some
        if each.changes
        for part in (_HEAD.pack(each.partition, each.first, len(each.changes)), *each.changes)
    ]
    return zlib.compress(join_parts(parts), _LEVEL) if parts else b""


def _unpacked(entry: bytes) -> Iterator[Append]:
    parts = split_parts(zlib.decompress(entry))
    for head in parts:
        partition, first, count = _HEAD.unpack(head)
        yield Append(partition, first, [next(parts) for _ in range(count)])


def logged(link: RedisLink, crawl: str, workers: Iterable[str]) -> dict[str, list[Append]]:
    """What the logs of workers have, the oldest first."""
    names = list(workers)
    found = link.many([Call("LRANGE", [log_keys(crawl, name).log], [0, -1]) for name in names])
    return {
        name: [each for entry in entries for each in _unpacked(entry)]
        for name, entries in zip(names, found, strict=True)
    }


def joined(some: Iterable[Append]) -> list[Append]:
    """The changes of each partition, each once; what comes before a gap is written, by one that held it in between."""
    found: dict[int, Append] = {}
    for each in some:
        before = found.get(each.partition)
        known = before.first + len(before.changes) - each.first if before else -1
        if before is None or known < 0:
            found[each.partition] = Append(each.partition, each.first, list(each.changes))
        else:
            found[each.partition] = before._replace(changes=[*before.changes, *each.changes[known:]])
    return list(found.values())
