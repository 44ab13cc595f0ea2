"""A worker's batches: what it decides is put together, and Redis takes each whole or not at all.

A batch is what each partition gets and, together with it, the worker's facts (how much of its WARC counts). It is
refused whole when a partition in it has another holder by now. On one server one script does it. The partitions of a
Redis Cluster live on several servers: there a batch is first written to the worker's journal, which decides it; then
each partition gets its part, which only the holder may write and which is written once. The worker that takes a
partition over from one that died in between first fences that one off and writes its last part.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from crawlerproject.errors import LeaseLost, StoreForgot
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.urls import host_key, host_name
from crawlerproject.stores.protocols import (
    OF_DOMAINS,
    OF_NAMES,
    Changes,
    Fingerprint,
    HostFact,
    QueuedPage,
    host_of_fact,
)
from crawlerproject.stores.redis import batch_scripts, scripts
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.forgetting import forgotten
from crawlerproject.stores.redis.keys import PartitionKeys, worker_keys
from crawlerproject.stores.redis.redis_queues import QueuePlace, bundled, place_of, single
from crawlerproject.stores.row_codec import PLACE_BYTES, pack_place, pack_print, pack_record

_LENGTH = Struct(">I")
_OF_HOSTS = tuple(kind for kind in HostFact if kind not in OF_DOMAINS)


class Pending:
    """Changes in the order of their coming, merged: applied at once they do what they would have done one by one."""

    def __init__(self) -> None:
        self.rows = 0  # queued and removed
        self.removed: dict[str, dict[QueuePlace, QueuedPage]] = {}  # by host
        self.queued: dict[str, dict[QueuePlace, QueuedPage]] = {}
        self.bundles: dict[str, list[bytes]] = {}  # members made of queued rows; see ``bundle``
        self.opened: dict[str, dict[bytes, list[QueuedPage]]] = {}  # bundles that become single rows
        self.keys: dict[bytes, str] = {}  # keys that were not known -> host
        self.new: dict[bytes, str] = {}  # of these, keys that Redis was asked for
        self.pages: dict[bytes, tuple[str, bytes]] = {}  # key -> host, packed record
        self.hosts: dict[str, bytes] = {}
        self.robots: dict[str, bytes] = {}
        self.facts: dict[str, bytes] = {}
        self.prints: dict[tuple[str, int], bytes] = {}  # host, fingerprint -> page's key
        self.payloads: dict[bytes, Original | None] = {}
        self.messages_read: dict[int, int] = {}  # partition -> messages that this batch answers
        self.messages_out: list[tuple[int, bytes]] = []
        self.serial = -1  # of the worker's last batch when this was first sent

    def __bool__(self) -> bool:
        kept = self.removed or self.queued or self.pages or self.hosts or self.robots
        return bool(kept or self.facts or self.messages_read or self.messages_out or self.prints or self.payloads)

    def merge(self, changes: Changes) -> None:
        """Take in a later change."""
        self.rows += len(changes.removed) + len(changes.queued)
        for row in changes.removed:
            self.queued.get(row.host, {}).pop(place_of(row), None)
            self.removed.setdefault(row.host, {})[place_of(row)] = row
        for row in changes.queued:
            self.queued.setdefault(row.host, {})[place_of(row)] = row
        for key, record in changes.pages:
            self.pages[key] = host_key(record.url), pack_record(record)
        self.hosts.update(changes.hosts)
        self.robots.update(changes.robots)
        self.facts.update(changes.facts)
        for made in changes.fingerprints:
            self.prints[made.host, made.value] = made.key
        for digest, original in changes.payloads:
            if original is None or self.payloads.get(digest) is None:
                self.payloads[digest] = original

    def facts_of_worker(self) -> list[tuple[str, bytes]]:
        """Facts that no partition gets."""
        return [(name, packed) for name, packed in self.facts.items() if not host_of_fact(name)]

    def bundle(self, behind: Callable[[str], QueuePlace | None]) -> None:
        """Put queued rows together that come after the place that ``behind`` tells for a host (None: none of them).

        From then on they count as being in Redis: who comes to one opens its bundle.
        """
        for host, rows in self.queued.items():
            if (least := behind(host)) is None:
                continue
            far = [rows.pop(place) for place in sorted(place for place in rows if place > least)]
            bundles, rest = bundled(far)
            rows.update((place_of(row), row) for row in rest)
            if bundles:
                self.bundles[host] = bundles

    def overlay(self, host: str, rows: dict[QueuePlace, QueuedPage]) -> None:
        """Make of the host's rows what they will be once this is applied; bundles are not looked into."""
        for opened in self.opened.get(host, {}).values():
            rows.update((place_of(row), row) for row in opened)
        if gone := self.removed.get(host):
            for place in [place for place in rows if place in gone]:
                del rows[place]
        rows.update(self.queued.get(host, {}))

    def parts(self, partition: Callable[[str], int], held: Container[int]) -> dict[int, Part]:
        """By partition. Of hosts that are not ``held`` any more facts and opened bundles are left out."""
        parts: dict[int, Part] = {}

        def part(host: str) -> Part:
            return parts.setdefault(partition(host), Part())

        for host, rows in self.removed.items():
            part(host).removed += rows.values()
        for host, bundles in self.opened.items():
            if partition(host) in held:
                self._open(host, bundles, part(host))
        for host, rows in self.queued.items():
            part(host).queued += rows.values()
        for host, members in self.bundles.items():
            part(host).bundles.append((host, members))
        for key, host in self.keys.items():
            part(host).keys.append(key)
        for key, host in self.new.items():
            if key not in self.pages:
                part(host).new.append(key)
        for key, (host, packed) in self.pages.items():
            part(host).pages.append((key, packed))
        for host, packed in self.hosts.items():
            part(host).hosts[host] = packed
        for origin, packed in self.robots.items():
            part(origin.rpartition("://")[2]).robots[origin] = packed
        for name, packed in self.facts.items():
            if (host := host_of_fact(name)) and partition(host) in held:
                part(host).robots[name] = packed
        for (host, value), key in self.prints.items():
            part(host).prints.append(pack_print(Fingerprint(host, value, key)))
        for number, read in self.messages_read.items():
            parts.setdefault(number, Part()).messages = read
        return parts

    def _open(self, host: str, bundles: dict[bytes, list[QueuedPage]], part: Part) -> None:
        removed, queued = self.removed.get(host, ()), self.queued.get(host, ())
        for member, rows in bundles.items():
            part.opened.append((host, member))
            part.queued += [row for row in rows if place_of(row) not in removed and place_of(row) not in queued]


class Arguments(NamedTuple):
    """A part of a batch, as the scripts have it (batch_scripts.py)."""

    hosts: list[bytes]  # with a queue to change
    others: list[bytes]

    def packed(self) -> bytes:
        """As one text, which the journal keeps."""
        return _joined(self.hosts) + _joined(self.others)

    @classmethod
    def unpacked(cls, packed: bytes) -> Arguments:
        """What was packed."""
        hosts, position = _taken(packed, 0)
        return cls(hosts, _taken(packed, position)[0])


@dataclass(slots=True)
class Part:
    """What one partition gets of a batch. Bundles are opened and rows removed before others are queued."""

    opened: list[tuple[str, bytes]] = field(default_factory=list)  # host, bundle; ``queued`` has what is left of it
    removed: list[QueuedPage] = field(default_factory=list)
    queued: list[QueuedPage] = field(default_factory=list)
    bundles: list[tuple[str, list[bytes]]] = field(default_factory=list)  # host, members
    keys: list[bytes] = field(default_factory=list)  # of pages that are known from now on
    new: list[bytes] = field(default_factory=list)  # the same, surely not known before
    pages: list[tuple[bytes, bytes]] = field(default_factory=list)
    hosts: dict[str, bytes] = field(default_factory=dict)
    robots: dict[str, bytes] = field(default_factory=dict)
    prints: list[bytes] = field(default_factory=list)
    messages: int = 0  # read from the inbox: they go with this batch

    def bundle(self) -> None:
        """Put together what is queued, of hosts that no worker has in memory."""
        rows: dict[str, list[QueuedPage]] = {}
        for row in self.queued:
            rows.setdefault(row.host, []).append(row)
        self.queued = []
        for host, mine in rows.items():
            bundles, rest = bundled(sorted(mine, key=place_of))
            self.bundles.append((host, bundles))
            self.queued += rest

    def arguments(self) -> Arguments:
        """As the scripts take them, but for the length of the queues' prefix, which comes first."""
        members: dict[str, list[bytes]] = {}
        for row in self.queued:
            members.setdefault(row.host, []).append(single(row))
        for host, bundles in self.bundles:
            members.setdefault(host, []).extend(bundles)
        gone = [(host, member[:PLACE_BYTES]) for host, member in self.opened]
        removed = [(row.host, pack_place(row)) for row in self.removed]
        number: dict[str, bytes] = {}
        for host in (*(host for host, _ in gone), *(host for host, _ in removed), *members):
            number.setdefault(host, str(len(number) + 1).encode())
        numbers = (gone, removed, members, self.keys, self.pages, self.hosts, self.robots, self.prints)
        arguments = [str(self.messages).encode(), *(str(len(each)).encode() for each in numbers), b"".join(self.new)]
        for host, place in (*gone, *removed):
            arguments += number[host], place
        for host, some in members.items():
            arguments += number[host], str(2 * len(some)).encode()
            for member in some:
                arguments += b"0", member
        arguments += self.keys
        for key, record in self.pages:
            arguments += key, record
        for states in (self.hosts, self.robots):
            for name, packed in states.items():
                arguments += name.encode("utf-8", "surrogatepass"), packed
        for made in self.prints:
            arguments += b"0", made
        return Arguments([host.encode("utf-8", "surrogatepass") for host in number], arguments)


def _joined(values: list[bytes]) -> bytes:
    pieces = [_LENGTH.pack(len(values))]
    for value in values:
        pieces += _LENGTH.pack(len(value)), value
    return b"".join(pieces)


def _taken(packed: bytes, position: int) -> tuple[list[bytes], int]:
    (count,) = _LENGTH.unpack_from(packed, position)
    position += _LENGTH.size
    values = []
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(packed, position)
        position += _LENGTH.size
        values.append(packed[position : position + length])
        position += length
    return values, position


def fields_of(host: str) -> list[str]:
    """What a partition keeps of a host beside its state: robots.txt of each scheme, by origin, and its facts."""
    fields = [f"http://{host}", f"https://{host}", *(kind + host for kind in _OF_HOSTS)]
    if ":" in host:
        fields += [kind + host_name(host) for kind in OF_NAMES]
    return fields


def host_of_field(name: str) -> str:
    """The host of such a field; "" for a fact of the worker."""
    return name.rpartition("://")[2] if "://" in name else host_of_fact(name)


class BatchWriter:
    """``held`` are the tokens of the partitions that the worker holds, as they are at that moment."""

    def __init__(
        self, link: RedisLink, crawl: str, worker: str, partitions: Sequence[PartitionKeys], held: Mapping[int, int]
    ) -> None:
        self.serial = 0  # of the last batch that was decided
        self._link = link
        self._crawl = crawl
        self._worker = worker
        self._keys = worker_keys(crawl, worker)
        self._partitions = partitions
        self._held = held
        self._incarnation = ""
        self._unfinished: dict[int, tuple[int, Arguments]] = {}  # decided, not yet written: partition -> token, part
        self._doubtful: dict[int, tuple[int, Arguments]] | None = None  # sent, and no answer came

    def begin(self, incarnation: str) -> None:
        """Write under the worker's name from now on; any other process that did so before is refused."""
        self.serial = int(self._link.call(batch_scripts.BEGIN, list(self._keys[:3]), incarnation))
        self._incarnation = incarnation
        self._unfinished.clear()
        self._doubtful = None

    @property
    def unfinished(self) -> bool:
        """Whether something is decided and not yet written."""
        return bool(self._unfinished)

    def write(self, parts: Mapping[int, Part], facts: Sequence[tuple[str, bytes]]) -> None:
        """Write one batch. Raises LeaseLost, or StorageError when it must be tried again (``finish`` first)."""
        self.finish()
        if not parts and not facts:
            return
        lost = [p for p in parts if p not in self._held]
        if lost:
            raise LeaseLost(f"partition {lost[0]} is not held")
        self._doubtful = {p: (self._held[p], part.arguments()) for p, part in parts.items()}
        call = (self._journal_call if self._link.cluster else self._commit_call)(self._doubtful, facts)
        [answer] = self._link.many([call])
        decided, self._doubtful = self._doubtful, None
        if answer[0] == b"serial":
            raise self._forgotten(int(answer[1]))
        if answer[0] != b"ok":
            raise LeaseLost(_refusal(answer, self._worker))
        self.serial += 1
        if self._link.cluster:
            self._unfinished = decided
            self.finish()

    def finish(self) -> None:
        """Write what is decided and not yet written. Raises StorageError when it must be tried again."""
        if self._doubtful is not None:
            serial = int(self._link.call("HGET", [self._keys.state], "serial") or 0)
            if serial < self.serial:
                raise self._forgotten(serial)
            if serial > self.serial:  # it was decided; only the answer was lost
                self.serial, self._unfinished = serial, self._doubtful
            self._doubtful = None
        todo = list(self._unfinished.items())
        calls = [self._apply_call(p, token, (self._worker, self.serial), part) for p, (token, part) in todo]
        answers = self._link.many(calls)
        # Refused: another took the partition, and settles this very part before it does anything else.
        self._unfinished.clear()
        lost = [p for (p, _), answer in zip(todo, answers, strict=True) if answer == 0]
        if lost:
            raise LeaseLost(f"partition {lost[0]} was taken by another worker")

    def settle(self, partition: int, token: int, former: tuple[int, str]) -> None:
        """Finish what a ``former`` holder (its token, its name) decided about a partition that was just taken.

        That one can decide nothing more about it. Raises LeaseLost when another worker took the partition meanwhile.
        """
        old_token, name = former
        keys, theirs = self._partitions[partition], worker_keys(self._crawl, name)
        places = [theirs.fenced, theirs.state, theirs.batch, theirs.left]
        serial, part = self._link.call(batch_scripts.FENCE, places, partition, old_token)
        if part:
            call = self._apply_call(partition, token, (name, int(serial)), Arguments.unpacked(part))
            if self._link.many([call]) == [0]:
                raise LeaseLost(f"partition {partition} was taken by another worker")
        self._link.call(scripts.SETTLE, [keys.lease, keys.behind], self._worker, token, old_token)
        self._link.call("HDEL", [theirs.left], partition)

    def _forgotten(self, serial: int) -> StoreForgot:
        what = f"knows {serial} of the {self.serial} batches of worker {self._worker!r}"
        return forgotten(self._link, self._crawl, what)

    def touch(self) -> None:
        """Write something of no importance."""
        self._link.call("HSET", [self._keys.state], "touched", 1)

    def _journal_call(self, parts: dict[int, tuple[int, Arguments]], facts: Sequence[tuple[str, bytes]]) -> Call:
        arguments: list[object] = [self._incarnation, self.serial + 1, len(facts)]
        for name, value in facts:
            arguments += name, value
        for p, (token, part) in parts.items():
            arguments += p, token, part.packed()
        return Call(batch_scripts.JOURNAL, [self._keys.state, self._keys.batch, self._keys.fenced], arguments)

    def _commit_call(self, parts: dict[int, tuple[int, Arguments]], facts: Sequence[tuple[str, bytes]]) -> Call:
        keys: list[str | bytes] = [self._keys.state, self._keys.fenced]
        arguments: list[object] = [self._worker, self._incarnation, self.serial + 1, len(facts), len(parts)]
        for name, value in facts:
            arguments += name, value
        for p, (token, part) in parts.items():
            mine, prefix = self._keys_of_part(p, part)
            keys += mine
            arguments += p, token, len(mine), 1 + len(part.others), prefix, *part.others
        return Call(batch_scripts.COMMIT, keys, arguments)

    def _apply_call(self, partition: int, token: int, author: tuple[str, int], part: Arguments) -> Call:
        """``author``: the worker that decided the part, and the serial of its batch."""
        keys, prefix = self._keys_of_part(partition, part)
        return Call(batch_scripts.APPLY, keys, [self._worker, token, *author, prefix, *part.others])

    def _keys_of_part(self, partition: int, part: Arguments) -> tuple[list[str | bytes], int]:
        """All keys of a part, and what its queues' keys begin with: how many bytes."""
        keys = self._partitions[partition]
        prefix = keys.queue_prefix.encode()
        fixed = (keys.lease, keys.work, keys.pages, keys.hosts, keys.robots, keys.inbox, keys.prints)
        return [*fixed, *(prefix + host for host in part.hosts)], len(prefix)


def _refusal(answer: list[bytes], worker: str) -> str:
    if answer[0] == b"life":
        return f"another process goes by the name of worker {worker!r}"
    return f"partition {answer[1].decode()} was taken by another worker"
