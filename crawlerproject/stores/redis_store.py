"""The frontier in Redis: the ``FrontierStore`` of one worker, for the partitions that it holds.

A change is a *beat*. It is first written to the worker's journal, in one piece and together with the worker's facts
(how much of its WARC counts), unless a partition in it has another holder by now; that decides it. Then each
partition gets its part, which only the holder may write and which is written once. Whoever takes a partition over
from a worker that died in between first bars that worker's further beats and writes the last part itself. So a
change is whole or nothing although the partitions of a Redis Cluster live on several servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.partitions import partition_of
from crawlerproject.rules.warc_records import Original
from crawlerproject.stores import redis_scripts as scripts
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage
from crawlerproject.stores.redis_beat import Part, cut, host_of_fact, unpacked
from crawlerproject.stores.redis_keys import (
    COPYING,
    PartitionKeys,
    fleet_keys,
    partition_keys,
    payloads_key,
    worker_keys,
)
from crawlerproject.stores.redis_link import Call, RedisLink
from crawlerproject.stores.rows import (
    host_fingerprints_prefix,
    pack_original,
    pack_place_of,
    unpack_member,
    unpack_original,
    unpack_print,
    unpack_record,
)

# The layout of everything in Redis; a crawl with a greater number was written by a newer version of this project.
FORMAT = 1
_HOSTS_AT_A_TIME = 1000
# Pages looked at in one call.
_PAGES_AT_A_TIME = 1000


class LeaseLost(StorageError):
    """Another worker holds what this one wrote for; nothing of it was written. Begin anew."""


class Granted(NamedTuple):
    """A partition that was taken."""

    token: int
    clean: bool  # its last holder let go in good order, or there was none
    unsure_until: float  # store time until which one that did not may have asked without a trace; 0.0: there was none


class RedisStore:
    """Keeps for one worker. Blocking; ``apply`` needs the partitions of all it changes, reading needs none.

    Raises OperatorError when it is made, StorageError afterwards; ``LeaseLost`` when another took over.
    """

    def __init__(self, link: RedisLink, crawl: str, worker: str, partitions: int, *, copying: bool = False) -> None:
        """``partitions`` counts for a new crawl, an old one keeps its own; ``copying`` fills an unfinished copy."""
        self.link = link
        self._copying = copying
        self.crawl = crawl
        self.worker = worker
        self.life = ""
        self.held: dict[int, int] = {}  # partition -> token
        self.serial = 0  # of the last beat that was decided
        self._unfinished: dict[int, tuple[int, bytes]] = {}  # decided, not yet written: partition -> token, part
        self._doubtful: dict[int, tuple[int, bytes]] | None = None  # sent to the journal, which did not answer
        self._worker_keys = worker_keys(crawl, worker)
        self._fleet_keys = fleet_keys(crawl)
        self.partitions = self._agree_on(partitions)
        self._keys = [partition_keys(crawl, number) for number in range(self.partitions)]

    def _agree_on(self, partitions: int) -> int:
        facts = self._fleet_keys.facts
        try:
            self.link.many(
                [Call("HSETNX", [facts], ["format", FORMAT]), Call("HSETNX", [facts], ["partitions", partitions])]
            )
            written, agreed, unfinished = self.link.call("HMGET", [facts], "format", "partitions", COPYING)
        except StorageError as error:
            raise OperatorError(f"The crawl {self.crawl!r} cannot be opened: {error}.") from error
        if int(written) > FORMAT:
            raise self._newer()
        if unfinished is not None and not self._copying:
            raise OperatorError(
                f"The crawl {self.crawl!r} at {self.link.place} is an unfinished copy; go on with scrapy state copy."
            )
        return int(agreed)

    def _newer(self) -> OperatorError:
        return OperatorError(
            f"The crawl {self.crawl!r} at {self.link.place} was written by a newer version of this crawler; "
            "use that version, or another FLEET_CRAWL."
        )

    def partition(self, host: str) -> int:
        """The partition of a host key."""
        return partition_of(host, self.partitions)

    def keys_of(self, partition: int) -> PartitionKeys:
        """The keys of a partition."""
        return self._keys[partition]

    def begin(self, life: str) -> None:
        """Write under this worker's name from now on; any other process that did so before is refused."""
        self.serial = int(self.link.call(scripts.BEGIN_LIFE, list(self._worker_keys[:3]), life))
        self.life = life
        self.held.clear()
        self._unfinished.clear()
        self._doubtful = None

    # --- partitions -----------------------------------------------------------------------------

    def acquire(self, partition: int, lease_ms: int) -> Granted | None:
        """Take a partition that is free, or whose lease is over; None when another holds it."""
        keys = self._keys[partition]
        answer = self.link.call(scripts.ACQUIRE, [keys.lease, keys.behind], self.worker, lease_ms)
        token = int(answer[0])
        if not token:
            return None
        behind = list(zip(answer[2::2], answer[3::2], strict=True))
        for old_token, name in sorted(behind, key=lambda each: int(each[0])):
            self._settle(partition, token, int(old_token), name.decode())
        self.held[partition] = token
        return Granted(token, not behind, int(answer[1]) / 1000)

    def _settle(self, partition: int, token: int, old_token: int, name: str) -> None:
        """Finish what a former holder decided and did not live to write; it can decide nothing more for us."""
        theirs = worker_keys(self.crawl, name)
        places = [theirs.barred, theirs.state, theirs.beat, theirs.left]
        serial, part = self.link.call(scripts.BAR, places, partition, old_token)
        if part and self.link.many([self._apply_call(partition, token, name, int(serial), part)]) == [0]:
            raise LeaseLost(f"partition {partition} was taken by another worker")
        keys = self._keys[partition]
        self.link.call(scripts.SETTLE, [keys.lease, keys.behind], self.worker, token, old_token)
        self.link.call("HDEL", [theirs.left], partition)

    def renew(self, lease_ms: int) -> list[int]:
        """Lengthen all leases; those that were lost."""
        held = list(self.held.items())
        calls = [Call(scripts.RENEW, [self._keys[p].lease], [self.worker, token, lease_ms]) for p, token in held]
        return [p for (p, _), kept in zip(held, self.link.many(calls), strict=True) if not kept]

    def release(self, partitions: Iterable[int]) -> None:
        """Give partitions back in good order. Everything about them must be written."""
        given = [(p, self.held[p]) for p in partitions]
        if self._unfinished:
            raise StorageError("a beat is not yet written")
        self.link.many([Call(scripts.RELEASE, [self._keys[p].lease], [self.worker, token]) for p, token in given])
        for p, _ in given:
            del self.held[p]

    def all_held(self, now: float) -> bool:
        """Whether every partition has a holder whose lease is not over at ``now`` (store time, epoch seconds)."""
        calls = [Call("HMGET", [keys.lease], ["holder", "until"]) for keys in self._keys]
        return all(holder and int(until) > now * 1000 for holder, until in self.link.many(calls))

    # --- questions ------------------------------------------------------------------------------

    def known(self, keys: Sequence[bytes], hosts: Sequence[str] | None = None) -> list[bool]:
        """For each key, whether the page is queued or was decided before.

        ``hosts``, of the pages in the same order, tell where to look; without them every partition is asked.
        """
        groups: dict[int, list[int]] = {p: list(range(len(keys))) for p in range(self.partitions) if keys}
        if hosts is not None:
            groups = {}
            for index, host in enumerate(hosts):
                groups.setdefault(self.partition(host), []).append(index)
        calls = [Call("HMGET", [self._keys[p].pages], [keys[i] for i in group]) for p, group in groups.items()]
        found = [False] * len(keys)
        for group, values in zip(groups.values(), self.link.many(calls), strict=True):
            for index, value in zip(group, values, strict=True):
                found[index] = found[index] or value is not None
        return found

    def head(self, host: str, limit: int, after: tuple[int, int] | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        return self.heads([host], limit, after)[0]

    def heads(self, hosts: Sequence[str], limit: int, after: tuple[int, int] | None = None) -> list[list[QueuedPage]]:
        """The first rows of many hosts' queues in one call."""
        start = b"-" if after is None else b"(" + pack_place_of(*after) + b"\xff" * 25  # past any row of that place
        calls = [Call("ZRANGEBYLEX", [self._queue(host)], [start, b"+", b"LIMIT", 0, limit]) for host in hosts]
        answers = self.link.many(calls) if limit > 0 else [[] for _ in hosts]
        return [
            [unpack_member(host, member) for member in members] for host, members in zip(hosts, answers, strict=True)
        ]

    def page(self, key: bytes, host: str | None = None) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first.

        Without its ``host`` every partition is asked.
        """
        if host is not None:
            value = self._field_bytes(self._keys[self.partition(host)].pages, key)
            return unpack_record(value) if value else None
        values = self.link.many([Call("HGET", [keys.pages], [key]) for keys in self._keys])
        return next((unpack_record(value) for value in values if value), None)

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page of the partitions held, and its key; some may come twice."""
        for partition in list(self.held):
            cursor = 0
            while True:
                answer = self.link.call("HSCAN", [self._keys[partition].pages], cursor, b"COUNT", _PAGES_AT_A_TIME)
                cursor, fields = int(answer[0]), dict(answer[1])  # redis makes a dictionary of it
                yield from ((key, unpack_record(value)) for key, value in fields.items() if value)
                if not cursor:
                    break

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        return self._field(self._keys[self.partition(host)].hosts, host)

    def states(self, hosts: Sequence[str]) -> list[bytes | None]:
        """The packed states of many hosts."""
        calls = [
            Call("HGET", [self._keys[self.partition(host)].hosts], [host.encode("utf-8", "surrogatepass")])
            for host in hosts
        ]
        return self.link.many(calls)

    def robots(self, origin: str) -> bytes | None:
        """The packed robots record of the origin."""
        return self._field(self._keys[self.partition(origin.rpartition("://")[2])].robots, origin)

    def fact(self, name: str) -> bytes | None:
        """A fact of this worker, or of a host."""
        if host := host_of_fact(name):
            return self._field(self._keys[self.partition(host)].robots, name)
        own = self._field(self._worker_keys.state, f"fact:{name}")
        # A crawl that began in RocksDB brought some.
        return own if own is not None else self._field(worker_keys(self.crawl, "").state, f"fact:{name}")

    def hosts_with_work(self) -> Iterator[str]:
        """Every host of the partitions held with at least one queued row, each once."""
        for partition in list(self.held):
            yield from (name for name, _ in self.hosts_of(partition))

    def hosts_of(self, partition: int) -> Iterator[tuple[str, bytes | None]]:
        """Every host of a partition with queued rows, and its packed state."""
        keys = self._keys[partition]
        names = sorted(self.link.call("SMEMBERS", [keys.work]))
        for start in range(0, len(names), _HOSTS_AT_A_TIME):
            some = names[start : start + _HOSTS_AT_A_TIME]
            states = self.link.call("HMGET", [keys.hosts], *some)
            for name, packed in zip(some, states, strict=True):
                yield name.decode("utf-8", "surrogatepass"), packed

    def prints_of(self, host: str) -> list[tuple[int, bytes]]:
        """The fingerprints of a host and the pages that have them."""
        prefix = host_fingerprints_prefix(host)
        key = self._keys[self.partition(host)].prints
        end = (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix) + 1, "big")[1:]
        last = b"+" if not any(end) else b"(" + end
        return [unpack_print(member) for member in self.link.call("ZRANGEBYLEX", [key], b"[" + prefix, last)]

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1."""
        value = self._field_bytes(payloads_key(self.crawl, digest), digest)
        return unpack_original(value) if value else None

    def set_originals(self, originals: Iterable[tuple[bytes, Original | None]]) -> None:
        """Remember first captures, which must be committed, unless others were sooner; None: it is lost."""
        calls = []
        for digest, original in originals:
            key = payloads_key(self.crawl, digest)
            if original is None:
                calls.append(Call("HDEL", [key], [digest]))
            else:
                calls.append(Call("HSETNX", [key], [digest, pack_original(original)]))
        self.link.many(calls)

    def letters(self, partitions: Sequence[int], limit: int) -> dict[int, list[bytes]]:
        """The oldest letters in the partitions' inboxes, empty inboxes left out."""
        calls = [Call("LRANGE", [self._keys[p].inbox], [0, limit - 1]) for p in partitions]
        return {p: found for p, found in zip(partitions, self.link.many(calls), strict=True) if found}

    def _field(self, key: str, name: str) -> bytes | None:
        return self._field_bytes(key, name.encode("utf-8", "surrogatepass"))

    def _field_bytes(self, key: str, name: bytes) -> bytes | None:
        value: bytes | None = self.link.call("HGET", [key], name)
        return value

    def _queue(self, host: str) -> bytes:
        prefix = self._keys[self.partition(host)].queue_prefix
        return prefix.encode() + host.encode("utf-8", "surrogatepass")

    # --- changes --------------------------------------------------------------------------------

    def post(self, letters: Iterable[tuple[int, bytes]]) -> None:
        """Put letters into inboxes, whoever holds their partitions. One may arrive twice."""
        self.link.many([Call("RPUSH", [self._keys[p].inbox], [letter]) for p, letter in letters])

    def apply(self, changes: Changes) -> None:
        """Apply all of it atomically; as durable as this Redis makes what it has answered for."""
        facts = [(name, packed) for name, packed in changes.facts if not host_of_fact(name)]
        self.apply_parts(cut(changes, self.partition), facts)
        self.set_originals(changes.payloads)

    def apply_parts(self, parts: dict[int, Part], facts: Sequence[tuple[str, bytes]]) -> None:
        """One beat: decided in the journal, then written to each partition."""
        self.finish()
        if not parts and not facts:
            return
        lost = [p for p in parts if p not in self.held]
        if lost:
            raise LeaseLost(f"partition {lost[0]} is not held")
        packed = {p: (self.held[p], part.packed()) for p, part in parts.items()}
        arguments: list[object] = [self.life, self.serial + 1, len(facts)]
        for name, value in facts:
            arguments += name, value
        for p, (token, part_bytes) in packed.items():
            arguments += p, token, part_bytes
        self._doubtful = packed
        answer = self.link.call(scripts.JOURNAL, self._journal_keys(), *arguments)
        self._doubtful = None
        if answer[0] != b"ok":
            raise LeaseLost(_refusal(answer, self.worker, self.link.place))
        self.serial += 1
        self._unfinished = packed
        self.finish()

    def _journal_keys(self) -> list[str]:
        keys = self._worker_keys
        return [keys.state, keys.beat, keys.barred]

    def finish(self) -> None:
        """Write what is decided and not yet written. Raises StorageError when it must be tried again."""
        if self._doubtful is not None:
            serial = int(self.link.call("HGET", [self._worker_keys.state], "serial") or 0)
            if serial > self.serial:  # it was decided; only the answer was lost
                self.serial, self._unfinished = serial, self._doubtful
            self._doubtful = None
        todo = list(self._unfinished.items())
        calls = [self._apply_call(p, token, self.worker, self.serial, part) for p, (token, part) in todo]
        answers = self.link.many(calls)
        # Refused: another took the partition, and settles this very part before it does anything else.
        self._unfinished.clear()
        lost = [p for (p, _), answer in zip(todo, answers, strict=True) if answer == 0]
        if lost:
            raise LeaseLost(f"partition {lost[0]} was taken by another worker")

    def _apply_call(self, partition: int, token: int, author: str, serial: int, part: bytes) -> Call:
        hosts, arguments = unpacked(part)
        keys: PartitionKeys = self._keys[partition]
        prefix = keys.queue_prefix.encode()
        fixed = (keys.lease, keys.work, keys.pages, keys.hosts, keys.robots, keys.inbox, keys.prints)
        before = [self.worker, token, author, serial, len(prefix)]
        return Call(scripts.APPLY, [*fixed, *(prefix + host for host in hosts)], [*before, *arguments])

    def sync(self) -> None:
        """Redis decides how durable its answers are (appendfsync); what is decided is written."""
        self.finish()

    def touch(self) -> None:
        """Write something of no importance."""
        self.link.call("HSET", [self._worker_keys.state], "touched", 1)

    def close(self) -> None:
        """Let go of the connection. Leases stay until they end; ``release`` gives them back."""
        self.link.close()


def _refusal(answer: list[bytes], worker: str, place: str) -> str:
    if answer[0] == b"life":
        return f"another process goes by the name of worker {worker!r}"
    if answer[0] == b"serial":
        return f"{place} has forgotten beats that it had answered for"
    return f"partition {answer[1].decode()} was taken by another worker"
