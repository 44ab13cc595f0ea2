"""What Redis has of partitions whose rows are on workers' disks: who holds each, its journal, its copy, its inbox.

A partition's truth is in the frontier of its holder. Redis has what another worker needs to take it over: a copy of
its rows as of some change, and the changes since, in their order (``stores/rocks/partition_rows.py``). Only the
holder, by its token, can add to them.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlerproject.errors import LeaseLost, OperatorError, StorageError, StoreForgot
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.fleet_shares import SUM_FACTS, partition_of
from crawlerproject.runtime.clock import since_boot
from crawlerproject.stores.protocols import Inbox, Posted
from crawlerproject.stores.redis import format_two, journal_scripts, scripts
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.copies import CopySize, PartitionCopies, lost_partition
from crawlerproject.stores.redis.forgetting import forgotten
from crawlerproject.stores.redis.keys import (
    COPYING,
    LOSSES,
    WorkerKeys,
    fleet_keys,
    ledger_key,
    partition_keys,
    payloads_key,
    worker_keys,
)
from crawlerproject.stores.row_codec import join_parts, pack_original, split_parts, unpack_original

if TYPE_CHECKING:
    from crawlerproject.stores.rocks.row_packing import Row

LISTENER = 0xFFFFFFFF
"""Instead of a partition's number: for the worker that hubs reach."""
FORMAT = 3
"""The layout of everything in Redis; 3: the rows of partitions are on workers' disks."""
# Messages to the worker that hubs reach, of which the last are kept while there is none, some 500 bytes each: a feed is
# read again, and its worker writes again.
_MOST_TO_LISTENER = 5_000
_PAYLOAD_HASHES = 256
# First captures of payloads that each of them keeps: 4 million, some 200 bytes each, as many as there are texts. A page
# whose payload was forgotten is archived once more.
_MOST_ORIGINALS = 4_000_000 // _PAYLOAD_HASHES
# What ACQUIRE says of a lease.
_FIELDS = 11


class Granted(NamedTuple):
    """A lease that was granted."""

    token: int
    clean: bool  # its last holder let go in good order, or there was none
    unsure_until: (
        float  # store time until which a holder that crashed may still have sent requests; 0.0: no such holder
    )


class Taken(NamedTuple):
    """A partition that was taken."""

    granted: Granted
    of: int  # token of the holder whose frontier has its rows; 0: it never had any
    journal: int  # number of the last change that Redis has
    copy: int  # number of the last change that its copy holds; 0: there is no copy
    bytes: int  # of the changes since
    size: CopySize  # of the copy
    crawl_id: str = ""  # when it was opened last; another one: before Redis lost data
    damaged: bool = False  # another worker could not read its copy


class Mail(NamedTuple):
    """What a change takes along to Redis, and asks there."""

    messages: Sequence[tuple[int, Posted]]  # with their partitions
    originals: Sequence[tuple[bytes, Original | None]]  # of payloads; None: it is lost
    boxes: Sequence[tuple[int, bytes]]  # partition and outbox: which message took effect last is asked


class PartitionJournals:
    """One worker's view. Blocking, safe from several threads. Raises OperatorError when made, then StorageError."""

    def __init__(
        self,
        link: RedisLink,
        crawl: str,
        worker: str,
        partitions: int,
        crawl_id: str = "",
        *,
        copying: bool = False,
        place_url: str = "",
    ) -> None:
        """``partitions`` counts for a new crawl, an old one keeps its own; ``crawl_id``: as ``recognise`` has found it;
        ``copying`` fills an unfinished copy; ``place_url``: where copies of partitions go, as ``copies_url`` has it.
        """
        self.link = link
        self.crawl = crawl
        self.worker = worker
        self.crawl_id = crawl_id
        self.partitions = _agreed_partitions(link, crawl, partitions, copying=copying)
        self.migrating = _is_migrating(link, crawl, self.partitions)
        self.held: dict[int, int] = {}  # partition -> token
        self.copies = PartitionCopies(link, crawl, worker, crawl_id, self.held, place_url)
        self._renewed_at = since_boot()
        self.serial = 0  # of the last change, as ``Answered`` has it
        self._own = _keys_of_worker(crawl, worker)
        self._incarnation = ""
        self._doubtful: list[_Part] | None = None  # in a cluster: sent to be decided, and no answer came
        self._decided: list[_Part] = []  # and not yet added to every journal
        self._keys = [partition_keys(crawl, number) for number in range(self.partitions)]
        self._ledgers = [ledger_key(crawl, number, cluster=link.cluster) for number in range(self.partitions)]

    def partition(self, host: str) -> int:
        """The partition of a host key."""
        return partition_of(host, self.partitions)

    def begin(self, incarnation: str) -> None:
        """Write under this worker's name from now on; any other process that did so before is refused."""
        self.serial = int(self.link.call(scripts.BEGIN, list(self._own[:3]), incarnation))
        self._incarnation = incarnation
        self._doubtful, self._decided = None, []
        self.held.clear()

    def end(self) -> None:
        """Leave nothing of this worker's, which holds nothing any more and has no facts."""
        self.name_outboxes(())
        self.link.call("DEL", self._own)

    # --- leases ---------------------------------------------------------------------------------

    def acquire(self, partition: int, lease_ms: int, *, latest: bool = False) -> Taken | None:
        """Take a partition that is free, or whose lease is over; None when another holds it. As ``acquire_some``."""
        return self.acquire_some([partition], lease_ms, latest=latest).get(partition)

    def acquire_some(self, partitions: Iterable[int], lease_ms: int, *, latest: bool = False) -> dict[int, Taken]:
        """Take those of some partitions that are free, or whose leases are over.

        ``latest``: Redis may have lost what it had of them.
        """
        keys, wanted = self._keys, list(partitions)
        lease = self.worker, lease_ms, int(not self.link.cluster)
        calls = [Call(scripts.ACQUIRE, [keys[p].lease, keys[p].behind, self._ledgers[p]], [*lease, p]) for p in wanted]
        answers = zip(wanted, self.link.many(calls), strict=True)
        granted = {partition: answer for partition, answer in answers if int(answer[0])}
        if self.link.cluster:
            for partition, answer in granted.items():
                answer[2:_FIELDS] = self._settled(partition, answer, latest=latest)
        taken: dict[int, Taken] = {}
        for partition, answer in granted.items():
            token, unsure, of, copy, copied, added, there = (int(each or 0) for each in answer[:7])
            crawl_id, damaged, journal, grown = answer[7:_FIELDS]
            self.held[partition] = token
            lasting = Granted(token, len(answer) == _FIELDS, unsure / 1000)
            size = CopySize(copied, added, bool(there))
            taken[partition] = Taken(
                lasting, of, int(journal), copy, int(grown), size, (crawl_id or b"").decode(), bool(damaged)
            )
        if self.migrating:
            moved = [Call(journal_scripts.MOVE_INBOX, [keys[p].inbox, self._ledgers[p]], [p]) for p in taken]
            self.link.many(moved)
        return taken

    def _settled(self, partition: int, answer: Sequence[bytes], *, latest: bool) -> list[Any]:
        """What the lease says once all is written that former holders decided about the partition."""
        keys, token = self._keys[partition], int(answer[0])
        behind = sorted(
            (int(old), name.decode()) for old, name in zip(answer[_FIELDS::2], answer[_FIELDS + 1 :: 2], strict=True)
        )
        for old, name in behind:
            self._settle(partition, token, (old, name), latest=latest)
        calls = [Call(scripts.SETTLE, [keys.lease, keys.behind], [self.worker, token, old]) for old, _ in behind]
        calls.append(Call("HMGET", [keys.lease], scripts.OF_LEASE))
        calls.append(Call("HGET", [self._ledgers[partition]], [partition]))
        *_, found, head = self.link.many(calls)
        return [*found, *unpack_head(head)[1:]]

    def _settle(self, partition: int, token: int, former: tuple[int, str], *, latest: bool) -> None:
        """Add what a ``former`` holder (its token, its name) decided about a partition; it can decide no more of it."""
        theirs = _keys_of_worker(self.crawl, former[1])
        packed = self.link.call(scripts.FENCE, [theirs.fenced, theirs.batch, theirs.left], partition, former[0])
        if packed:
            self._add([(partition, token, list(split_parts(packed)))], latest=latest)
        self.link.call("HDEL", [theirs.left], partition)

    def opened(self, *partitions: int) -> None:
        """All rows of partitions are in this worker's frontier. Raises LeaseLost."""
        held = [(self._keys[p].lease, self.held[p]) for p in partitions]
        calls = [Call(journal_scripts.OPEN, [lease], [self.worker, token, self.crawl_id]) for lease, token in held]
        for partition, answer in zip(partitions, self.link.many(calls), strict=True):
            if not answer:
                raise lost_partition(partition)

    def opened_by(self, partitions: Iterable[int]) -> dict[int, int]:
        """Those that have a holder: the token of the last that had all rows; 0: none since Redis lost data."""
        wanted, own = list(partitions), self.crawl_id.encode()
        calls = [Call("HMGET", [self._keys[p].lease], ["holder", "crawl", "of"]) for p in wanted]
        answers = zip(wanted, self.link.many(calls), strict=True)
        return {p: int(of or 0) * (crawl == own) for p, (holder, crawl, of) in answers if holder}

    def renew(self, lease_ms: int) -> list[int]:
        """Lengthen all leases; those that were lost. Raises StoreForgot."""
        self._renewed_at = since_boot()
        held = list(self.held.items())
        calls = [Call(scripts.RENEW, [self._keys[p].lease], [self.worker, token, lease_ms]) for p, token in held]
        answers = self.link.many(calls)
        if -1 in answers:
            partition = held[answers.index(-1)][0]
            raise forgotten(self.link, self.crawl, f"does not know who holds partition {partition}")
        return [p for (p, _), kept in zip(held, answers, strict=True) if not kept]

    def keep(self, lease_ms: int) -> None:
        """Renew in the middle of something long, when it is time. Raises LeaseLost, StoreForgot."""
        if since_boot() - self._renewed_at > lease_ms / 6000 and (lost := self.renew(lease_ms)):
            raise lost_partition(lost[0])

    def release(self, partitions: Iterable[int]) -> None:
        """Give partitions back in good order: their journals have all that was changed."""
        given = [(p, self.held[p]) for p in partitions]
        keys = [[self._keys[p].lease, self._ledgers[p]] for p, _ in given]
        words = [[self.worker, token, p] for p, token in given]
        self.link.many([Call(scripts.RELEASE, *each) for each in zip(keys, words, strict=True)])
        for p, _ in given:
            del self.held[p]

    def all_held(self, now: float) -> bool:
        """Whether every partition has a holder whose lease is not over at ``now`` (store time, epoch seconds)."""
        calls = [Call("HMGET", [keys.lease], ["holder", "until"]) for keys in self._keys]
        return all(holder and int(until) > now * 1000 for holder, until in self.link.many(calls))

    # --- journals -------------------------------------------------------------------------------

    def commit(self, some: Sequence[Append], facts: Mapping[str, bytes], mail: Mail) -> list[int]:
        """As ``append`` if there is something, and with it, in one round trip, what ``mail`` says: its answers.

        A page whose links are lost must not be known as done: messages come before the change. A first capture counts
        with the change that it is of.
        """
        if self.link.cluster:
            self.post(mail.messages)
            if some or facts:
                self.append(some, facts)
            self.set_originals(mail.originals)
            return self.read_up_to(mail.boxes)
        posts, reads, change = self._posts(mail.messages), self._reads(mail.boxes), bool(some or facts)
        calls, parts = list(posts), self._parts(some)
        if change:
            calls.append(self._append(self._own.state, self._head(facts), parts))
        if mail.originals:
            places = [payloads_key(self.crawl, digest) for digest, _ in mail.originals]
            words = [word for digest, each in mail.originals for word in (digest, pack_original(each) if each else b"")]
            serial = self.serial + change
            head = [self._incarnation, serial, _MOST_ORIGINALS]
            calls.append(Call(scripts.ORIGINALS, [self._own.state, *places], [*head, *words]))
        answers = self.link.whole([*calls, *reads])
        if change:
            self._appended(answers[len(posts)], parts)
        if mail.originals and not answers[len(calls) - 1]:
            raise self._another()
        return [int(answer or 0) for answer in answers[len(calls) :]]

    def append(self, some: Sequence[Append], facts: Mapping[str, bytes]) -> None:
        """Add changes to journals, with ``facts`` of this worker, as one change. Raises LeaseLost, StoreForgot.

        The partitions of a cluster are on several servers: there the change is decided where the worker's facts are,
        then written to each partition, by the worker that takes it over if this one dies in between.
        """
        parts = self._parts(some)
        if self.link.cluster:
            self._finish()
            self._doubtful = parts
            named = [word for partition, token, of_it in parts for word in (partition, token, join_parts(of_it))]
            places = [self._own.state, self._own.batch, self._own.fenced]
            answer = self.link.call(scripts.JOURNAL, places, *self._head(facts), *named)
            self._doubtful = None
        else:
            [answer] = self.link.many([self._append(self._own.state, self._head(facts), parts)])
        self._appended(answer, parts)
        if self.link.cluster:
            self._decided = parts
            self._finish()

    def _parts(self, some: Sequence[Append]) -> list[_Part]:
        return [(each.partition, self.held.get(each.partition, 0), each.words()) for each in some]

    def _head(self, facts: Mapping[str, bytes]) -> list[Any]:
        words = [word for fact in facts.items() for word in fact]
        return [self._incarnation, self.serial + 1, len(facts), *words]

    def _appended(self, answer: Sequence[Any], parts: Sequence[_Part]) -> None:
        """What Redis says of the next change."""
        if answer[0] == b"serial":
            raise self._forgotten(int(answer[1]))
        if answer[0] == b"life":
            raise self._another()
        if answer[0] == b"barred":
            raise lost_partition(int(answer[1]))
        self._check(answer, parts)
        self.serial += 1

    def _another(self) -> LeaseLost:
        return LeaseLost(f"another process goes by the name of worker {self.worker!r}")

    def _finish(self) -> None:
        """In a cluster, write what is decided and not yet written."""
        if self._doubtful is not None:
            serial = int(self.link.call("HGET", [self._own.state], "serial") or 0)
            if serial < self.serial:
                raise self._forgotten(serial)
            if serial > self.serial:  # it was decided; only the answer was lost
                self.serial, self._decided = serial, self._doubtful
            self._doubtful = None
        self._add(self._decided)
        self._decided = []

    def _add(self, parts: Sequence[_Part], *, latest: bool = False) -> None:
        """Write what was decided to its partitions, one by one."""
        calls = [self._append(self._ledgers[part[0]], ["", 0, 0], [part]) for part in parts]
        for part, answer in zip(parts, self.link.many(calls), strict=True):
            if not (latest and answer[0] == b"lacks"):
                self._check(answer, [part])

    def _append(self, first: str, head: Sequence[Any], parts: Sequence[_Part]) -> Call:
        words = list(head)
        for partition, token, of_it in parts:
            words += (partition, token, *of_it)
        ledger = self._ledgers[parts[0][0] if parts else 0]
        return Call(journal_scripts.APPEND, [first, ledger, *(self._keys[part[0]].journal for part in parts)], words)

    def _check(self, answer: Sequence[Any], parts: Sequence[_Part]) -> None:
        if answer[0] == b"lost":
            raise lost_partition(parts[int(answer[1]) - 1][0])
        if answer[0] == b"lacks":
            partition = parts[int(answer[1]) - 1][0]
            raise forgotten(self.link, self.crawl, f"lacks changes of partition {partition}")

    def _forgotten(self, serial: int) -> StoreForgot:
        what = f"knows {serial} of the {self.serial} changes of worker {self.worker!r}"
        return forgotten(self.link, self.crawl, what)

    def lacks(self, partition: int, known: int, journal: int) -> StoreForgot:
        """The error for a partition of which Redis had ``known`` changes, and has ``journal``."""
        return forgotten(self.link, self.crawl, f"knows {journal} of the {known} changes of partition {partition}")

    def facts(self) -> dict[str, bytes]:
        """What this worker has given with its changes, and what a crawl that began in a folder has brought."""
        states = worker_keys(self.crawl, "").state, self._own.state
        answers = self.link.many([Call("HGETALL", [state]) for state in states])
        brought, own = (
            {name.decode()[5:]: packed for name, packed in found.items() if name.startswith(b"fact:")}
            for found in answers
        )
        # Each worker has its own part of a sum.
        return {name: packed for name, packed in brought.items() if name not in SUM_FACTS.values()} | own

    def begun(self, partition: int) -> None:
        """Number 1 of a journal changes nothing: a copy can hold it. May be done again. Raises LeaseLost."""
        self.append([Append(partition, 1, [zlib.compress(b"")])], {})

    def old_rows(self, partition: int) -> Iterator[Row]:
        """The rows of a partition of which Redis has no copy yet, in a crawl of format 2."""
        return format_two.rows(self.link, self.crawl, partition) if self.migrating else iter(())

    def forget_old(self, partition: int) -> None:
        """Redis has a copy of all that ``old_rows`` gave."""
        if self.migrating:
            format_two.remove(self.link, self._keys[partition])

    # --- messages -------------------------------------------------------------------------------

    def post(self, messages: Iterable[tuple[int, Posted]]) -> None:
        """Put messages to partitions into inboxes. One may arrive twice."""
        self.link.many(self._posts(messages))

    def _posts(self, messages: Iterable[tuple[int, Posted]]) -> list[Call]:
        by_partition: dict[int, list[bytes]] = {}
        for partition, each in messages:
            head = b"" if partition == LISTENER else _HEAD.pack(each.outbox, each.number, each.after)
            by_partition.setdefault(partition, []).append(head + each.packed)
        hubs = by_partition.pop(LISTENER, [])
        calls: list[Call] = []
        if hubs:  # first: what comes behind a script that the server does not have yet is sent once more
            place = fleet_keys(self.crawl).hubs
            calls += (Call("RPUSH", [place], hubs), Call("LTRIM", [place], [-_MOST_TO_LISTENER, -1]))
        for group in self._groups(by_partition):
            counts = [word for p in group for word in (p, len(by_partition[p]))]
            words = [len(group), *counts, *(each for p in group for each in by_partition[p])]
            calls.append(Call(journal_scripts.POST, [self._ledgers[group[0]]], words))
        return calls

    def unread(self, partitions: Sequence[int], limit: int) -> dict[int, Inbox]:
        """The oldest messages to partitions."""
        groups = self._groups(partitions)
        calls = [Call(journal_scripts.UNREAD, [self._ledgers[group[0]]], [limit, *group]) for group in groups]
        found: dict[int, Inbox] = {}
        for answer in self.link.many(calls):
            for partition, removed, rows in zip(answer[::3], answer[1::3], answer[2::3], strict=True):
                messages = [_message(row, removed + at) for at, row in enumerate(rows)]
                found[int(partition)] = Inbox(removed, messages)
        return found

    def _groups(self, partitions: Iterable[int]) -> list[list[int]]:
        """By ledger: in a cluster the partitions are on several servers."""
        some = list(partitions)
        return [[p] for p in some] if self.link.cluster else [some] if some else []

    def read_up_to(self, boxes: Sequence[tuple[int, bytes]]) -> list[int]:
        """For each partition and outbox the number of the last message that took effect, durably."""
        return [int(answer or 0) for answer in self.link.many(self._reads(boxes))]

    def _reads(self, boxes: Sequence[tuple[int, bytes]]) -> list[Call]:
        return [Call("HGET", [self._ledgers[p]], [b"%d=%b" % (p, outbox)]) for p, outbox in boxes]

    def name_outboxes(self, outboxes: Collection[bytes], worker: str = "") -> None:
        """Of a worker, by default this one, messages of these may come from now on, and of no others."""
        place, name = fleet_keys(self.crawl).outboxes, (worker or self.worker).encode()
        known = self.link.call("HGETALL", [place])  # redis makes a dictionary of it
        gone = [each for each, whose in known.items() if whose == name and each not in outboxes]
        calls = [Call("HSET", [place], [each, name]) for each in outboxes]
        self.link.many(calls + [Call("HDEL", [place], [each]) for each in gone])

    def forget_marks(self, partition: int, outboxes: Iterable[bytes]) -> list[bytes]:
        """Forget how far outboxes of which no message can come any more were read, if its inbox is empty: which."""
        if not (some := list(outboxes)):
            return []
        named = set(self.link.call("HKEYS", [fleet_keys(self.crawl).outboxes]))
        gone = [each for each in some if each not in named]
        words = [partition, self.held.get(partition, 0), *gone]
        return gone if gone and self.link.call(journal_scripts.FORGET_MARKS, [self._ledgers[partition]], *words) else []

    # --- payloads -------------------------------------------------------------------------------

    def originals(self, digests: Sequence[bytes]) -> dict[bytes, Original]:
        """The first captures of payloads, as far as any worker has one."""
        found = self.link.many([Call("HGET", [payloads_key(self.crawl, each)], [each]) for each in digests])
        return {each: unpack_original(value) for each, value in zip(digests, found, strict=True) if value}

    def every_original(self) -> Iterator[dict[bytes, bytes]]:
        """All of them, packed, some at a time."""
        for number in range(_PAYLOAD_HASHES):
            yield self.link.call("HGETALL", [payloads_key(self.crawl, bytes((number,)))])

    def losses(self) -> bytes:
        """What names the last loss of a worker with its archive; b"" when there was none."""
        found: bytes | None = self.link.call("HGET", [fleet_keys(self.crawl).facts], LOSSES)
        return found or b""

    def set_originals(self, originals: Iterable[tuple[bytes, Original | None]]) -> None:
        """Remember first captures, which count by now, unless others were sooner; None: it is lost."""
        given = ((digest, pack_original(original) if original else b"") for digest, original in originals)
        self.link.many([
            Call(scripts.ORIGINAL, [payloads_key(self.crawl, digest)], [_MOST_ORIGINALS, digest, packed])
            for digest, packed in given
        ])  # fmt: skip

    def close(self) -> None:
        """Let go of the connection. Leases stay until they end; ``release`` gives them back."""
        self.link.close()


class Append(NamedTuple):
    """What a partition's journal gets."""

    partition: int
    first: int  # number of the first change
    changes: Sequence[bytes]
    removed: int = 0  # messages that may go from the inbox, counted from the crawl's beginning
    marks: Sequence[tuple[bytes, int]] = ()  # outbox, and number of its last message that took effect

    def words(self) -> list[bytes]:
        """As the script takes it."""
        words = [_NUMBERS.pack(self.first, self.removed, len(self.marks), len(self.changes))]
        words += [word for outbox, number in self.marks for word in (outbox, b"%d" % number)]
        return [*words, *self.changes]


_Part = tuple[int, int, Sequence[bytes]]  # partition, token of its holder, words of an Append


def _keys_of_worker(crawl: str, worker: str) -> WorkerKeys:
    """As the scripts need them; what workers of format 2 have decided has other keys."""
    state = worker_keys(crawl, worker).state
    return WorkerKeys(state, *(f"{state}.{kind}" for kind in ("decided", "left", "fenced")))


# Of an Append: number of the first change, messages removed, marks, changes.
_NUMBERS = Struct(">qqqq")
_HEAD_OF_LEDGER = Struct(">qqq")


def unpack_head(head: bytes | None) -> tuple[int, int, int]:
    """What a ledger says of a partition: token, number of the last change, bytes of the journal."""
    return _HEAD_OF_LEDGER.unpack(head) if head else (0, 0, 0)


# Outbox, number, number of the one before.
_HEAD = Struct(">16sQQ")


def _message(row: bytes, place: int) -> Posted:
    if (old := format_two.message(row, place)) is not None:
        return Posted(*old)
    outbox, number, after = _HEAD.unpack_from(row)
    return Posted(outbox, number, row[_HEAD.size :], after)


def _agreed_partitions(link: RedisLink, crawl: str, partitions: int, *, copying: bool) -> int:
    """How many partitions the crawl has, which the first worker decides. Raises OperatorError."""
    facts = fleet_keys(crawl).facts
    try:
        format_two.begin(link, crawl, FORMAT)
        link.many([Call("HSETNX", [facts], ["format", FORMAT]), Call("HSETNX", [facts], ["partitions", partitions])])
        written, agreed, unfinished = link.call("HMGET", [facts], "format", "partitions", COPYING)
    except StorageError as error:
        raise OperatorError(f"The crawl {crawl!r} cannot be opened: {error}.") from error
    require_format(link, crawl, int(written))
    if unfinished is not None and not copying:
        raise OperatorError(f"The crawl {crawl!r} at {link.place} is an unfinished copy; go on with scrapy state copy.")
    return int(agreed)


def _is_migrating(link: RedisLink, crawl: str, partitions: int) -> bool:
    try:
        return format_two.migrating(link, crawl, partitions)
    except StorageError as error:
        raise OperatorError(f"The crawl {crawl!r} cannot be opened: {error}.") from error


def require_format(link: RedisLink, crawl: str, written: int) -> None:
    """Raises OperatorError for a crawl of another layout than ours."""
    if written != FORMAT:
        age, what = (
            ("a newer", "use that version") if written > FORMAT else ("an older", "start its workers with this one")
        )
        raise OperatorError(
            f"The crawl {crawl!r} at {link.place} was written by {age} version of this crawler; "
            f"{what}, or use another FLEET_CRAWL."
        )
