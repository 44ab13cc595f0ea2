"""The copies of partitions: all rows of one as of some change, which its holder gives and others take over.

Only the holder of a partition, by its token, can put a copy in the place of the one before. Redis has the parts of a
copy, or names the objects that are they (``stores/redis/copy_place.py``). There a copy is *extended* by what leaves
the journal, until that is as much as the copy itself. An object is on a list of those that may go before it is put
there, and again when no copy names it any more: so what a death leaves behind goes, and what a command or another
server's memory may still name stays for a while.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.errors import LeaseLost, TargetError
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.copy_place import MOST_BYTES, CopyDamaged, CopyPlace, Placed, Tick, begun, waited
from crawlerproject.stores.redis.forgetting import forgotten
from crawlerproject.stores.redis.keys import ledger_key, partition_keys
from crawlerproject.stores.redis.scripts import HEAD, script

if TYPE_CHECKING:
    from crawlerproject.stores.redis.journals import Taken

# Entries of a journal, or parts of a copy, in one answer: some MB.
_AT_A_TIME = 64
# An object that no copy names stays for so long: a command may read it, and a server come back with its last snapshot.
_KEPT_MS = 3_600_000
# Of an object: parts, with a little for their lengths.
_MOST_GROUPED = MOST_BYTES - (1 << 16)
# Objects on their way to the place at once.
_PUT_AT_ONCE = 2
# So much of a copy may wait in its journal, where the copy can be extended: 2 bytes a URL, of some 100.
_EXTENDED_SHARE = 1 / 64

# A copy begins: what is left of one that was never whole goes.
# KEYS lease, what one that was begun before has, what this one will have, ledger; ARGV worker, token, number of the
# last change that this one will hold, partition. -> bytes of the journal, or -1: the lease is another's
_COPY = script(
    HEAD
    + """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return -1 end
redis.call('HSET', KEYS[1], 'copying', ARGV[3])
redis.call('DEL', KEYS[2], KEYS[3])
local _, _, bytes = head(KEYS[4], ARGV[4])
return bytes
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

# Objects that no copy names: from now on for so long (ms). KEYS unnamed; ARGV ms, addresses*
_UNNAMED = script(
    """
local t = redis.call('TIME')
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], t[1] * 1000 + tonumber(ARGV[1]), ARGV[i]) end
return 1
"""
)

# Those whose time is over. KEYS unnamed; ARGV "1": all of them
_DUE = script(
    """
local upto = '+inf'
if ARGV[1] ~= '1' then upto = redis.call('TIME')[1] * 1000 end
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', upto, 'LIMIT', 0, 1000)
"""
)

# The objects of a copy that is no copy any more, and those of another that is one from now on.
_SWITCH = (
    HEAD
    + """
local function leaves(ledger, partition, left)
  local token, journal, bytes = head(ledger, partition)
  set_head(ledger, partition, token, journal, bytes - tonumber(left))
end
local t = redis.call('TIME')
local function address(entry) return string.match(entry, '^@%d+ %x+ (.+)$') end
local function leave(copy, unnamed, kept)
  if address(redis.call('LINDEX', copy, 0) or '') then
    for _, entry in ipairs(redis.call('LRANGE', copy, 0, -1)) do
      redis.call('ZADD', unnamed, t[1] * 1000 + tonumber(kept), address(entry))
    end
  end
  redis.call('DEL', copy)
end
local function name(copy, unnamed, first, last)
  for i = first, last do
    redis.call('RPUSH', copy, ARGV[i])
    redis.call('ZREM', unnamed, address(ARGV[i]))
  end
end
"""
)

# A copy is whole: the changes that it holds leave the journal, and the copy of before goes.
# KEYS lease, journal, the copy of before, the new one, unnamed, ledger; ARGV worker, token, number of the last change
# in it, its bytes, bytes of the journal when it was begun, ms that objects stay, partition, the new one's objects*.
# -> 1, or 0: the lease is another's
_COPIED = script(
    _SWITCH
    + """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token', 'copy')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 0 end
local before, upto = tonumber(h[3] or '0'), tonumber(ARGV[3])
if before == upto then return 1 end
redis.call('HSET', KEYS[1], 'copy', upto, 'copied', ARGV[4], 'added', 0, 'there', #ARGV > 7 and 1 or 0)
leaves(KEYS[6], ARGV[7], ARGV[5])
redis.call('HDEL', KEYS[1], 'copying', 'damaged')
leave(KEYS[3], KEYS[5], ARGV[6])
name(KEYS[4], KEYS[5], 8, #ARGV)
redis.call('LTRIM', KEYS[2], upto - before, -1)
return 1
"""
)

# A copy holds more: that leaves the journal.
# KEYS as those of COPIED; ARGV worker, token, numbers of the last change of before and now, bytes of the object, bytes
# that leave the journal, partition, the object. -> 1, or 0: the lease is another's
_EXTENDED = script(
    _SWITCH
    + """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token', 'copy')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 0 end
if h[3] ~= ARGV[3] then return 1 end
redis.call('HSET', KEYS[1], 'copy', ARGV[4])
redis.call('HINCRBY', KEYS[1], 'added', ARGV[5])
leaves(KEYS[6], ARGV[7], ARGV[6])
name(KEYS[3], KEYS[5], 8, 8)
redis.call('RENAME', KEYS[3], KEYS[4])
redis.call('LTRIM', KEYS[2], ARGV[4] - ARGV[3], -1)
return 1
"""
)

# As COPIED and OPEN at once, where Redis had lost what it knew of the partition.
# KEYS lease, journal, the copy of before, the new one, unnamed, ledger; ARGV worker, token, the crawl's id, number of
# the last change in the copy, its bytes, ms that objects stay, partition, number of its objects, objects*, (outbox,
# number of its last message that took effect)*. -> 1, or 0: the lease is another's
_ANEW = script(
    _SWITCH
    + """
local h = redis.call('HMGET', KEYS[1], 'holder', 'token', 'of', 'copy')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 0 end
if h[3] == ARGV[2] and h[4] == ARGV[4] then return 1 end
local objects = tonumber(ARGV[8])
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[1], 'of', ARGV[2], 'crawl', ARGV[3], 'copy', ARGV[4], 'copied', ARGV[5], 'added', 0,
  'there', objects > 0 and 1 or 0)
set_head(KEYS[6], ARGV[7], ARGV[2], ARGV[4], 0)
redis.call('HDEL', KEYS[1], 'damaged')
if KEYS[3] ~= KEYS[4] then leave(KEYS[3], KEYS[5], ARGV[6]) end
name(KEYS[4], KEYS[5], 9, 8 + objects)
for i = 9 + objects, #ARGV, 2 do redis.call('HSET', KEYS[6], ARGV[7] .. '=' .. ARGV[i], ARGV[i + 1]) end
return 1
"""
)


class CopySize(NamedTuple):
    """Of a partition's copy, as far as its holder needs to know."""

    bytes: int = 0  # when it was made
    added: int = 0  # since
    there: bool = False  # at the place, and not in Redis

    def wanted(self, grown: int, least: int, *, to_place: bool) -> tuple[int, bool]:
        """So many bytes a journal that has ``grown`` has too many; whether it is time for a whole copy then.

        A whole copy is made when as much was added as it has: so each byte is copied about once.
        """
        most = max(least, self.bytes)
        if not to_place:
            return grown - most, True
        if not self.there:  # small, or what Redis has goes to the place
            return grown - (0 if self.bytes else least), True
        return grown - max(least, int(self.bytes * _EXTENDED_SHARE)), self.added + grown > most


class PartitionCopies:
    """One worker's view; ``held``: the partitions that it holds, and their tokens. Raises StorageError.

    Whatever asks the place raises TargetError, too, and calls a ``tick`` while it waits for it.
    """

    def __init__(
        self, link: RedisLink, crawl: str, worker: str, crawl_id: str, held: Mapping[int, int], place_url: str = ""
    ) -> None:
        """``place_url``: where new copies go, as ``copies_url`` has it."""
        self.to_place = bool(place_url)
        self._link = link
        self._crawl = crawl
        self._worker = worker
        self._crawl_id = crawl_id
        self._held = held
        self._place = CopyPlace(place_url)

    def copy(
        self,
        partition: int,
        number: int,
        parts: Iterable[bytes],
        whole: Callable[[], None] | None = None,
        tick: Tick | None = None,
    ) -> int:
        """Put a copy of a partition in the place of the one before; it holds all changes up to ``number``. Its bytes.

        It may hold a part of what was changed later: ``whole`` sees to it that the journal has all of that before the
        copy counts. Raises LeaseLost.
        """
        keys, token = partition_keys(self._crawl, partition), self._held.get(partition, 0)
        before, unfinished = (int(each or 0) for each in self._link.call("HMGET", [keys.lease], "copy", "copying"))
        if before == number:
            return 0
        old, made = (copy_key(self._crawl, partition, each) for each in (before, number))
        left = made if unfinished == before else copy_key(self._crawl, partition, unfinished)
        ledger = self._ledger(partition)
        begin = [keys.lease, left, made, ledger]
        journal_bytes = self._link.call(_COPY, begin, self._worker, token, number, partition)
        if journal_bytes < 0:
            raise lost_partition(partition)
        total, objects = self._write_copy(partition, token, made, parts, tick)
        if whole is not None:
            whole()
        names = [keys.lease, keys.journal, old, made, keys.unnamed, ledger]
        words = [self._worker, token, number, total, journal_bytes, _KEPT_MS, partition, *objects]
        if not self._link.call(_COPIED, names, *words):
            raise lost_partition(partition)
        self.sweep(partition)
        return total

    def extend(self, partition: int, number: int, tick: Tick | None = None) -> tuple[int, int]:
        """Have a copy at the place hold more of the changes up to ``number``, which leave the journal.

        So many bytes did, and so many were added. Raises LeaseLost.
        """
        keys, token = partition_keys(self._crawl, partition), self._held.get(partition, 0)
        before = int(self._link.call("HGET", [keys.lease], "copy") or 0)
        parts, taken, size = list[bytes](), 0, 0
        for change in listed(self._link, keys.journal):
            if size >= MOST_BYTES or before + taken == number:
                break
            taken += 1
            if change:
                parts.append(change)
                size += len(change)
        if not parts:
            return 0, 0
        names = [keys.lease, keys.journal]
        names += [copy_key(self._crawl, partition, each) for each in (before, before + taken)]
        made = waited(self._put(partition, parts), tick)
        words = [self._worker, token, before, before + taken, made.size, size, partition, made.packed()]
        if not self._link.call(_EXTENDED, [*names, keys.unnamed, self._ledger(partition)], *words):
            raise lost_partition(partition)
        self.sweep(partition)
        return size, made.size

    def _write_copy(
        self, partition: int, token: int, key: str, parts: Iterable[bytes], tick: Tick | None
    ) -> tuple[int, list[bytes]]:
        """Its bytes; and its objects, which have no parts in Redis."""
        lease, total = partition_keys(self._crawl, partition).lease, 0
        parts = iter(parts)
        parts = chain([next(parts, b"")], parts)  # a copy of no rows is one as well
        if not self.to_place:
            for part in parts:
                total += len(part)
                if not self._link.call(_PART, [lease, key], self._worker, token, part):
                    raise lost_partition(partition)
            return total, []
        objects, going = list[bytes](), deque[Future[Placed]]()
        for some in _grouped(parts):
            total += sum(map(len, some))
            going.append(self._put(partition, some))
            if len(going) == _PUT_AT_ONCE:
                objects.append(waited(going.popleft(), tick).packed())
        objects += [waited(each, tick).packed() for each in going]
        return total, objects

    def _ledger(self, partition: int) -> str:
        return ledger_key(self._crawl, partition, cluster=self._link.cluster)

    def _put(self, partition: int, parts: list[bytes]) -> Future[Placed]:
        address = self._place.new_address(self._crawl, partition)
        self._link.call(_UNNAMED, [partition_keys(self._crawl, partition).unnamed], _KEPT_MS, address)
        return begun(lambda: self._place.put(address, parts))

    def parts(self, partition: int, number: int, tick: Tick | None = None) -> Iterator[bytes]:
        """Those of a copy. Raises CopyDamaged."""
        return copied_parts(self._link, self._place, self._crawl, partition, number, tick)

    def stored(self, partition: int, taken: Taken, tick: Tick | None = None) -> Iterator[bytes]:
        """The parts of a partition's copy, then the changes since; of one that is held, so that none is added.

        Raises CopyDamaged; then the next holder whose disk has the rows makes the copy anew.
        """
        at = 0
        try:
            for part in self.parts(partition, taken.copy, tick):
                yield part
                at += 1
        except CopyDamaged as error:
            self._link.call("HSET", [partition_keys(self._crawl, partition).lease], "damaged", str(error))
            raise
        changes = 0
        if at or not taken.copy:
            for part in listed(self._link, partition_keys(self._crawl, partition).journal):
                yield part
                changes += 1
        if (taken.copy and not at) or changes != taken.journal - taken.copy:
            raise forgotten(self._link, self._crawl, f"has lost a part of partition {partition}")

    def opened_anew(
        self,
        partition: int,
        number: int,
        parts: Iterable[bytes],
        marks: Sequence[tuple[bytes, int]],
        tick: Tick | None = None,
    ) -> int:
        """As ``opened``, with a copy of them as of the change ``number``; what Redis had is of before. Its bytes."""
        keys, made = partition_keys(self._crawl, partition), copy_key(self._crawl, partition, number)
        before = int(self._link.call("HGET", [keys.lease], "copy") or 0)
        self._link.call("DEL", [made])
        token = self._held[partition]
        total, objects = self._write_copy(partition, token, made, parts, tick)
        names = [keys.lease, keys.journal, copy_key(self._crawl, partition, before), made, keys.unnamed]
        words = [word for mark in marks for word in mark]
        counts = [self._crawl_id, number, total, _KEPT_MS, partition, len(objects)]
        names.append(self._ledger(partition))
        if not self._link.call(_ANEW, names, self._worker, token, *counts, *objects, *words):
            self._link.call("DEL", [made])
            raise lost_partition(partition)
        self.sweep(partition)
        return total

    def sweep(self, partition: int, *, at_once: bool = False) -> None:
        """Remove objects that no copy names; what cannot be removed, another time. ``at_once``: nothing may stay."""
        unnamed = partition_keys(self._crawl, partition).unnamed
        for address in self._link.call(_DUE, [unnamed], int(at_once)):
            with suppress(TargetError):
                self._place.remove(address.decode())
                self._link.call("ZREM", [unnamed], address)


def copied_parts(
    link: RedisLink, place: CopyPlace, crawl: str, partition: int, number: int, tick: Tick | None = None
) -> Iterator[bytes]:
    """The parts of a partition's copy, wherever they are. Raises CopyDamaged."""
    try:
        yield from place.resolved(listed(link, copy_key(crawl, partition, number)), tick)
    except CopyDamaged as error:
        raise CopyDamaged(
            f"{error}, a part of the copy of partition {partition} of the crawl {crawl!r}: start the worker that had "
            "the partition last, whose disk has its rows, and it makes the copy anew; or put that object back"
        ) from None


def _grouped(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """As they become objects."""
    some, size = list[bytes](), 0
    for part in parts:
        if some and size + len(part) > _MOST_GROUPED:
            yield some
            some, size = [], 0
        some.append(part)
        size += len(part)
    yield some


def copy_key(crawl: str, partition: int, number: int) -> str:
    """The list with the parts of a partition's copy of this number."""
    return f"{{{crawl}.{partition}}}:copy.{number}"


def listed(link: RedisLink, key: str) -> Iterator[bytes]:
    """All of a list, which may grow meanwhile."""
    at = 0
    while some := link.call("LRANGE", [key], at, at + _AT_A_TIME - 1):
        yield from some
        at += len(some)


def lost_partition(partition: int) -> LeaseLost:
    """The error for a lease that was lost."""
    return LeaseLost(f"partition {partition} was taken by another worker")
