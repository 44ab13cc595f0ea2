"""The queues of a crawl's hosts in Redis: sorted sets, whose members are one row, or a bundle of rows further behind.

A page of fifty new links would be fifty members of a sorted set, some 300 bytes and 5 µs of Redis each. As one member,
compressed, it is a tenth of both. A bundle is never changed: the worker that comes to it opens it, which puts its rows
one by one where the bundle was. So whatever is removed is a member of its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice
from struct import Struct

from crawlerproject.stores.protocols import QueuedPage
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.row_codec import PLACE_BYTES, pack_place, pack_place_of, pack_queued, unpack_queued

_MEMBERS_AT_A_TIME = 1000
QueuePlace = tuple[int, int]  # priority, arrival
#: Before every row, and behind none: priorities begin at 0.
NOWHERE: QueuePlace = (-1, -1)
# Follows the place: of two members of one place the script must be able to name one (batch_scripts.py, APPLY).
_SINGLE, _BUNDLE, _AFTER_BOTH = b"\0", b"\1", b"\2"
# Rows of a bundle: fewer are not worth the opening; more would be opened for nothing, since a batch takes one or two.
_LEAST, _MOST = 4, 32
# Level 1 packs rows nearly as small as 6 in half the time (40 bytes a row, 1 µs).
_LEVEL = 1
_COUNT = Struct(">H")
_LENGTH = Struct(">I")


def place_of(row: QueuedPage) -> QueuePlace:
    """Where a row stands in its host's queue."""
    return row.priority, row.arrival


def place_of_member(member: bytes) -> QueuePlace:
    """Where a member stands: a bundle where its first row does."""
    return member[0], int.from_bytes(member[1:PLACE_BYTES], "big")


def single(row: QueuedPage) -> bytes:
    """The member of one row."""
    return pack_place(row) + _SINGLE + pack_queued(row)


def bundled(rows: Sequence[QueuedPage]) -> tuple[list[bytes], Sequence[QueuedPage]]:
    """Rows of one host, in order, as bundles, and those that are too few for one. One priority, one bundle: rows of
    another would be far from their place in it.
    """
    bundles, rest, start = list[bytes](), list[QueuedPage](), 0
    while start < len(rows):
        end = start + 1
        while end < len(rows) and end - start < _MOST and rows[end].priority == rows[start].priority:
            end += 1
        if end - start < _LEAST:
            rest += rows[start:end]
        else:
            bundles.append(_bundle(rows[start:end]))
        start = end
    return bundles, rest


def _bundle(rows: Sequence[QueuedPage]) -> bytes:
    packed = [pack_queued(row) for row in rows]
    places, lengths = map(pack_place, rows), (_LENGTH.pack(len(each)) for each in packed)
    text = zlib.compress(b"".join((*places, *lengths, *packed)), _LEVEL)
    return pack_place(rows[0]) + _BUNDLE + _COUNT.pack(len(rows)) + text


def is_bundle(member: bytes) -> bool:
    """Whether the member must be opened before a row of it is removed."""
    return member[PLACE_BYTES : PLACE_BYTES + 1] == _BUNDLE


def count_of(member: bytes) -> int:
    """How many rows a member is."""
    count: int = _COUNT.unpack_from(member, PLACE_BYTES + 1)[0] if is_bundle(member) else 1
    return count


def packed_rows(member: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each row's place and the rest of it (``pack_queued``)."""
    if not is_bundle(member):
        yield member[:PLACE_BYTES], member[PLACE_BYTES + 1 :]
        return
    count, text = count_of(member), zlib.decompress(member[PLACE_BYTES + 1 + _COUNT.size :])
    at = count * (PLACE_BYTES + _LENGTH.size)
    for number in range(count):
        (length,) = _LENGTH.unpack_from(text, count * PLACE_BYTES + number * _LENGTH.size)
        yield text[number * PLACE_BYTES : (number + 1) * PLACE_BYTES], text[at : at + length]
        at += length


def rows_of(host: str, member: bytes) -> list[QueuedPage]:
    """The rows of a member of the host's queue."""
    return [unpack_queued(host, place, packed) for place, packed in packed_rows(member)]


def in_order(host: str, members: Iterator[bytes]) -> Iterator[QueuedPage]:
    """The rows of a whole queue in order, given its members in theirs: bundles may overlap what follows them."""
    waiting: list[tuple[QueuePlace, QueuedPage]] = []
    for member in members:
        begins = place_of_member(member)
        while waiting and waiting[0][0] < begins:
            yield heappop(waiting)[1]
        for row in rows_of(host, member):
            heappush(waiting, (place_of(row), row))
    while waiting:
        yield heappop(waiting)[1]


def packed_place(place: QueuePlace) -> bytes:
    """As the member at this place begins."""
    return pack_place_of(*place)


def behind(place: QueuePlace) -> bytes:
    """Where a range of members begins, as Redis has it, that leaves out what stands at this place."""
    priority, arrival = place
    return b"[" + (packed_place(place) + _AFTER_BOTH if arrival >= 0 else bytes((priority,)))


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
