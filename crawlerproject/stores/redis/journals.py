"""What Redis has of partitions whose rows are on workers' disks: who holds each, its journal, its copy, its inbox.

A partition's truth is in the frontier of its holder. Redis has what another worker needs to take it over: a copy of
its rows as of some change, and the changes since, in their order (``stores/rocks/partition_rows.py``). Only the
holder, by its token, can decide more of them; what it decides is in its log first (``worker_log.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import itemgetter
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
    fleet_keys,
    ledger_key,
    partition_keys,
    payloads_key,
    worker_keys,
)
from crawlerproject.stores.redis.worker_log import Append, joined, log_keys, logged, pack_entry
from crawlerproject.stores.rocks.row_packing import compressed
from crawlerproject.stores.row_codec import pack_original, unpack_original

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
    """One worker's view. Blocking; what decides or writes changes, takes or gives back, is for one thread at a time.

    Raises OperatorError when made, then StorageError.
    """

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
        self._given: dict[int, int] = {}  # the same, of those that were last given back, perhaps in vain
        self.copies = PartitionCopies(link, crawl, worker, crawl_id, self.held, place_url)
        self._renewed_at = since_boot()
        self.serial = 0  # of the last change, as ``Answered`` has it
        self._tried = 0  # of the last that was sent, perhaps in vain
        self._own = log_keys(crawl, worker)
        self._incarnation = ""
        self._came = 0  # entries that the log ever got
        self.log_bytes = 0  # of those that it got since it was written to the journals
        self._logged: list[Append] = []  # the same, by partition and change
        self._writing: tuple[list[Append], int] | None = None  # to the journals, packed, and what the log has of it
        self._keys = [partition_keys(crawl, number) for number in range(self.partitions)]
        self._ledgers = [ledger_key(crawl, number, cluster=link.cluster) for number in range(self.partitions)]

    def partition(self, host: str) -> int:
        """The partition of a host key."""
        return partition_of(host, self.partitions)

    def begin(self, incarnation: str, *, latest: bool = False) -> None:
        """Write under this worker's name from now on; any other process that did so before is refused.

        What that one has decided is written first. ``latest``: Redis may have lost what it had of partitions.
        """
        serial, came = self.link.call(journal_scripts.BEGIN, [self._own.state, self._own.fenced], incarnation)
        self._incarnation, self._came = incarnation, int(came)
        self.serial = self._tried = int(serial)
        self._logged, self._writing, self.log_bytes = [], None, 0
        self.held.clear()
        self._write(joined(logged(self.link, self.crawl, [self.worker])[self.worker]), latest=latest)
        self._trim(self._came)

    def reach(self) -> None:
        """Find out whether Redis answers and takes writes. StorageError."""
        self.link.call(journal_scripts.REACH, [self._own.state], self._incarnation)

    def end(self) -> None:
        """Leave nothing of this worker's, which holds nothing any more and has no facts."""
        self.name_outboxes(())
        self.flush()
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
        lease = self.worker, lease_ms
        calls = [Call(scripts.ACQUIRE, [keys[p].lease, keys[p].behind, self._ledgers[p]], [*lease, p]) for p in wanted]
        answers = zip(wanted, self.link.many(calls), strict=True)
        granted = {partition: answer for partition, answer in answers if int(answer[0])}
        self._settle(granted, latest=latest)
        # What was decided about them is written.
        self._logged = [each for each in self._logged if each.partition not in granted]
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

    def _settle(self, granted: dict[int, list[Any]], *, latest: bool) -> None:
        """Have journals what former holders decided, who can decide no more, and leases say what is true then."""
        barred: dict[str, dict[int, int]] = {}  # by worker
        for partition, answer in granted.items():
            for token, name in zip(answer[_FIELDS::2], answer[_FIELDS + 1 :: 2], strict=True):
                of_worker = barred.setdefault(name.decode(), {})
                of_worker[partition] = max(int(token), of_worker.get(partition, 0))
        if not barred:
            return
        fences = [[word for item in some.items() for word in item] for some in barred.values()]
        places = [log_keys(self.crawl, name).fenced for name in barred]
        self.link.many([Call(journal_scripts.FENCE, [key], some) for key, some in zip(places, fences, strict=True)])
        logs = logged(self.link, self.crawl, barred)
        found = [
            (token, each)
            for name, some in barred.items()
            for each in logs[name]
            if (token := some.get(each.partition)) is not None
        ]
        self._write(joined(each for _, each in sorted(found, key=itemgetter(0))), latest=latest)
        calls, unsettled = list[Call](), [partition for partition, answer in granted.items() if len(answer) > _FIELDS]
        for p in unsettled:
            keys, tokens = self._keys[p], granted[p][_FIELDS::2]
            words = [self.worker, granted[p][0]]
            calls += (Call(scripts.SETTLE, [keys.lease, keys.behind], [*words, token]) for token in tokens)
        self.link.many(calls)
        leases = self.link.many([Call("HMGET", [self._keys[p].lease], scripts.OF_LEASE) for p in unsettled])
        heads = self.link.many([Call("HGET", [self._ledgers[p]], [p]) for p in unsettled])
        for p, lease, head in zip(unsettled, leases, heads, strict=True):
            granted[p][2:_FIELDS] = [*lease, *unpack_head(head)[1:]]

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
        """Give partitions back in good order: their journals have all that was changed, and get no more from here."""
        self.flush()
        given = [(p, self.held[p]) for p in partitions]
        self._given |= given  # from now on: an answer may get lost
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
        calls, entry = list(posts), pack_entry(some)
        if change:
            calls.append(self._decide(some, facts, entry))
        if mail.originals:
            places = [payloads_key(self.crawl, digest) for digest, _ in mail.originals]
            words = [word for digest, each in mail.originals for word in (digest, pack_original(each) if each else b"")]
            head = [self._incarnation, self._tried if change else self.serial, _MOST_ORIGINALS]
            calls.append(Call(scripts.ORIGINALS, [self._own.state, *places], [*head, *words]))
        answers = self.link.whole([*calls, *reads])
        if change:
            self._decided(answers[len(posts)], some, entry)
        if mail.originals and not answers[len(calls) - 1]:
            raise self._another()
        return [int(each or 0) for answer in answers[len(calls) :] for each in answer]

    def append(self, some: Sequence[Append], facts: Mapping[str, bytes]) -> None:
        """Decide changes of partitions, with ``facts`` of this worker, as one change. Raises LeaseLost, StoreForgot.

        What is there already is passed over by its number.
        """
        entry = pack_entry(some)
        [answer] = self.link.many([self._decide(some, facts, entry)])
        self._decided(answer, some, entry)
        if self.link.cluster:
            read = [each for each in some if each.removed]
            words = [[each.partition, self.held[each.partition], *_mark(each)] for each in read]
            places = [[self._ledgers[each.partition]] for each in read]
            self.link.many([Call(journal_scripts.MARK, *each) for each in zip(places, words, strict=True)])

    def _decide(self, some: Sequence[Append], facts: Mapping[str, bytes], entry: bytes) -> Call:
        held = [(each.partition, self.held.get(each.partition, 0)) for each in some]
        for partition, token in held:
            if not token or self._given.get(partition) == token:
                raise lost_partition(partition)
        words = [word for fact in facts.items() for word in fact]
        words += (entry, b"".join(_FENCE.pack(*each) for each in held))
        if not self.link.cluster:
            words += (word for each in some if each.removed for word in _mark(each))
        ledger = [] if self.link.cluster else self._ledgers[:1]
        self._tried += 1
        head = [self._incarnation, self._tried, self.serial, len(facts)]
        return Call(journal_scripts.DECIDE, [*self._own, *ledger], [*head, *words])

    def _decided(self, answer: Sequence[Any], some: Sequence[Append], entry: bytes) -> None:
        """What Redis says of the next change."""
        what, number = answer[0], int(answer[1])
        if what == b"serial":
            raise self._forgotten(number)
        if what == b"life":
            raise self._another()
        if what == b"barred":
            raise lost_partition(number)
        if what == b"lacks":
            raise forgotten(self.link, self.crawl, f"does not know who holds partition {number}")
        self.serial = self._tried
        self._came = number
        self._logged += (each for each in some if each.changes)  # the entry has no others
        self.log_bytes += len(entry)

    def flush(self) -> dict[int, int]:
        """Have journals all that the log has: the bytes of those that got something. Raises StoreForgot."""
        grown: dict[int, int] = {}
        while self._writing is not None or self._logged:
            if self._writing is None:
                packed = [each._replace(changes=compressed(each.changes)) for each in joined(self._logged)]
                # Tried again as it is: by numbers alone nothing tells which of its changes a piece has.
                self._writing, self._logged, self.log_bytes = (packed, self._came), [], 0
            packed, came = self._writing
            grown |= self._write(packed)
            self._trim(came)
            self._writing = None
        return grown

    def _write(self, some: Sequence[Append], *, latest: bool = False) -> dict[int, int]:
        """To journals, whose bytes are told. ``latest``: one that lacks what comes before is passed over."""
        given = {p: (p, _NUMBERS.pack(first, len(changes)), *changes) for p, first, changes, *_ in some if changes}
        groups = [[p] for p in given] if latest else self._groups(given)
        places = [[self._ledgers[group[0]], *(self._keys[p].journal for p in group)] for group in groups]
        words = [[word for p in group for word in given[p]] for group in groups]
        calls = [Call(journal_scripts.APPEND, *each) for each in zip(places, words, strict=True)]
        grown: dict[int, int] = {}
        for group, (lacks, *sizes) in zip(groups, self.link.many(calls), strict=True):
            if lacks and not latest:
                raise forgotten(self.link, self.crawl, f"lacks changes of partition {group[lacks - 1]}")
            grown |= zip(group, sizes, strict=False)
        return grown

    def _trim(self, came: int) -> None:
        self.link.call(journal_scripts.TRIM, self._own[:2], self._incarnation, came)

    def _another(self) -> LeaseLost:
        return LeaseLost(f"another process goes by the name of worker {self.worker!r}")

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
        self.append([Append(partition, 1, [b""])], {})
        self.flush()

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
        names, rows = dict[int, list[bytes]](), dict[int, list[bytes]]()
        hubs: list[bytes] = []
        for partition, each in messages:
            if partition == LISTENER:
                hubs.append(each.packed)
                continue
            name = _NAME.pack(each.outbox, each.number)
            names.setdefault(partition, []).append(name)
            rows.setdefault(partition, []).extend((b"%d:%b" % (partition, name), _AFTER.pack(each.after) + each.packed))
        calls: list[Call] = []
        if hubs:  # first: what comes behind a script that the server does not have yet is sent once more
            place = fleet_keys(self.crawl).hubs
            calls += (Call("RPUSH", [place], hubs), Call("LTRIM", [place], [-_MOST_TO_LISTENER, -1]))
        for group in self._groups(rows):
            ledger = self._ledgers[group[0]]
            calls.append(Call("HSET", [ledger], [word for p in group for word in rows[p]]))
            noted = [word for p in group for word in (b"%d:" % p, b"".join(names[p]))]
            calls.append(Call(journal_scripts.NOTE, [ledger], noted))
        return calls

    def unread(self, partitions: Sequence[int], limit: int) -> dict[int, Inbox]:
        """The oldest messages to partitions."""
        groups = self._groups(partitions)
        calls = [Call("HMGET", [self._ledgers[group[0]]], [b"%d:" % p for p in group]) for group in groups]
        known = zip(partitions, chain.from_iterable(self.link.many(calls)), strict=True)
        waiting = {p: names for p, names in known if names and len(names) > _REMOVED_BYTES}
        fields: dict[int, list[bytes]] = {}
        for p, names in waiting.items():
            end = min(len(names), _REMOVED_BYTES + limit * _NAME.size)
            starts = range(_REMOVED_BYTES, end, _NAME.size)
            fields[p] = [b"%d:%b" % (p, names[at : at + _NAME.size]) for at in starts]
        groups = self._groups(waiting)
        calls = [Call("HMGET", [self._ledgers[g[0]]], [field for p in g for field in fields[p]]) for g in groups]
        rows = chain.from_iterable(self.link.many(calls))
        found: dict[int, Inbox] = {}
        for p, names in waiting.items():
            there = list(zip(fields[p], islice(rows, len(fields[p])), strict=True))
            # One without its row came twice, and was removed with the other.
            messages = [_message(field, row) for field, row in there if row is not None]
            removed = int.from_bytes(names[:_REMOVED_BYTES], "big")
            found[p] = Inbox(removed + len(there) - len(messages), messages)
        return found

    def _groups(self, partitions: Iterable[int]) -> list[list[int]]:
        """By ledger: in a cluster the partitions are on several servers."""
        some = list(partitions)
        return [[p] for p in some] if self.link.cluster else [some] if some else []

    def read_up_to(self, boxes: Sequence[tuple[int, bytes]]) -> list[int]:
        """For each partition and outbox the number of the last message that took effect, durably."""
        return [int(each or 0) for answer in self.link.many(self._reads(boxes)) for each in answer]

    def _reads(self, boxes: Sequence[tuple[int, bytes]]) -> list[Call]:
        fields = [b"%d=%b" % box for box in boxes]
        if self.link.cluster:
            return [Call("HMGET", [self._ledgers[p]], [field]) for (p, _), field in zip(boxes, fields, strict=True)]
        return [Call("HMGET", self._ledgers[:1], fields)] if fields else []

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


def _mark(each: Append) -> list[Any]:
    """What it says of messages, as the scripts take it."""
    words = [word for outbox, number in each.marks for word in (b"%d=%b" % (each.partition, outbox), number)]
    return [b"%d:" % each.partition, _NUMBERS.pack(each.removed, len(each.marks)), *words]


_NUMBERS = Struct(">qq")
_FENCE = Struct(">qq")  # partition, token
_HEAD_OF_LEDGER = Struct(">qqq")


def unpack_head(head: bytes | None) -> tuple[int, int, int]:
    """What a ledger says of a partition: token, number of the last change, bytes of the journal."""
    return _HEAD_OF_LEDGER.unpack(head) if head else (0, 0, 0)


# The name of a message is outbox and number; before what it says stands the number of the one before.
_NAME, _AFTER = Struct(">16sQ"), Struct(">Q")
_REMOVED_BYTES = 8


def _message(field: bytes, row: bytes) -> Posted:
    outbox, number = _NAME.unpack(field[-_NAME.size :])
    if format_two.is_message(row):
        return Posted(outbox, number, row)
    (after,) = _AFTER.unpack_from(row)
    return Posted(outbox, number, row[_AFTER.size :], after)


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
