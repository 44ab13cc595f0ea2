"""A worker's frontier whose changes are given to Redis as well: what becomes of them there, and of its messages.

What changes a partition is kept in memory until Redis has it; a row of the frontier, written in the same change, says
that there is such a change: a start that finds one knows that the rows here are ahead of Redis. Messages to other
workers are rows. ``sync`` makes all of it durable here, then gives it to Redis: messages first, since a page whose
links are lost must not be known as done.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice, pairwise
from operator import itemgetter
from sys import maxsize
from threading import Lock

from rocksdict import ColumnFamily, WriteBatch

from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.urls import host_key
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores import row_codec
from crawlerproject.stores.outboxes import Outboxes, post_bytes
from crawlerproject.stores.protocols import (
    ARCHIVE_FACT,
    DUE_FACT,
    GIVEN_ARCHIVE_FACT,
    Box,
    Changes,
    Inbox,
    Posted,
    host_of_fact,
)
from crawlerproject.stores.redis.journals import LISTENER, Mail, PartitionJournals
from crawlerproject.stores.redis.rejoining import Mark
from crawlerproject.stores.redis.worker_log import Append
from crawlerproject.stores.rocks import partition_rows
from crawlerproject.stores.rocks.partition_rows import MARK_FACT, ROWS_AT_A_TIME
from crawlerproject.stores.rocks.rocks_queues import Put
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import RawBatch
from crawlerproject.stores.rocks.row_packing import Row, pack_changes

# The id of a crawl that goes on after a loss, until Redis has been given the facts of the worker again.
_REJOINS = "rejoins"
# The digests of payloads whose first captures Redis does not know yet: they may be cut off.
_NEW_PAYLOADS = "payloads"
_DIGEST_BYTES = 20
# The last loss of a worker, as Redis has it, after which first captures were looked at.
_LOSSES = "losses"
# About this folder, not about the worker.
_OWN_FACTS = frozenset({row_codec.FORMAT_FACT, DUE_FACT, _REJOINS, _NEW_PAYLOADS, GIVEN_ARCHIVE_FACT, _LOSSES})
# Hosts that are known to have their row; some 100 bytes each.
_HOSTS = 100_000
# Of a box at hand until they are posted, some 10 KB each at most: a commit has fewer, but after Redis was away.
_MOST_LETTERS = 20
# Given to Redis in one call.
_MOST_BYTES = 1 << 20
# What the log of a worker has when it goes into journals: some twenty commits; a tenth of a MB for each worker (ours).
_LOG_BYTES = 1 << 18
# Of messages to a partition, in Redis and not read, of all workers at work. More wait here: an inbox whose holder is
# away stays small, and so do the names of its messages, which each that comes passes (ours).
_WINDOW_BYTES = 1 << 20
# Messages that were posted, after which Redis is asked which were read; sooner when there is nothing else to do.
_FORGOTTEN_AT_ONCE = 1_000
# First captures at hand: each is asked for when its page is compared, and when it is written.
_ORIGINALS = 2_000


class GivingStore(RocksStore):
    """As ``JournaledStore``, of which it is a part."""

    def __init__(self, folder: str | os.PathLike[str], journals: PartitionJournals, *, rejoins: bool = False) -> None:
        """``rejoins``: Redis has lost what it knew, so what is here counts."""
        super().__init__(folder)
        self.journals = journals
        self.rejoins = rejoins  # and Redis has not been given the facts again
        self._sending = Lock()
        self._changing = Lock()  # what a change leaves in the tables and in the fields below is seen whole
        self._with_row: LruCache[str, int] = LruCache(_HOSTS)  # with the token of their partition
        self._numbers: dict[int, int] = {}  # of the last change, by partition that is held
        self._unsent: dict[int, list[list[Row]]] = {}  # the rows of the changes that Redis lacks
        self._coming: dict[int, list[Row]] = {}
        self._coming_hosts: dict[str, int] = {}
        self._sent: dict[int, int] = {}  # what Redis has
        self._tried: dict[int, list[int]] = {}  # the last numbers that were sent since, each perhaps in vain
        self._grown: dict[int, int] = {}  # bytes that journals have, by partition
        self._payloads: list[tuple[bytes, Original | None]] = []  # that other workers cannot know yet
        self._originals: LruCache[bytes, Original] = LruCache(_ORIGINALS)  # other workers' first captures
        self._letters: defaultdict[Box, list[tuple[int, bytes]]] = defaultdict(list)  # of this start, not yet posted
        self._in_rows: dict[Box, int] = {}  # of boxes of which rows alone have what comes behind these: the last number
        self._outboxes = Outboxes(self.messages, self._letters_of, lambda box: f"{box.partition}", _WINDOW_BYTES)
        self._named = False  # Redis knows of which outboxes messages may come
        self._unasked = 0  # messages that were posted since Redis was asked which were read
        self._due_marks: dict[int, tuple[int, dict[bytes, int]]] = {}  # messages read: what leaves the inbox, by outbox
        self._facts: dict[str, bytes] = {}  # of this worker, that Redis does not have yet
        self.begin()

    def begin(self) -> None:
        """A new start holds no partition: no host is due. What Redis does not know of the last one does not count.

        To be called again when no other process can write under this worker's name any more. StorageError.
        """
        tables, crawl_id = self._opened(), self.journals.crawl_id.encode()
        partition_rows.clear_lists(tables)
        batch = tables.batch()
        known = partition_rows.facts_of(tables)
        own = {name for name in known if name in _OWN_FACTS or name.startswith(MARK_FACT)}
        batch.delete(row_codec.FACTS, DUE_FACT.encode())
        # A process that rejoined may have been killed before it had given Redis anything.
        self.rejoins = self.rejoins or known.get(_REJOINS) == crawl_id
        if self.rejoins:
            batch.put(row_codec.FACTS, _REJOINS.encode(), crawl_id)
            self._facts = {name: packed for name, packed in known.items() if name not in own}
        else:
            facts = self.journals.facts()
            for name in known.keys() - own - facts.keys():
                batch.delete(row_codec.FACTS, name.encode(*row_codec.TEXT))
            for name, packed in facts.items():
                batch.put(row_codec.FACTS, name.encode(*row_codec.TEXT), packed)
            if (losses := self.journals.losses()) != known.get(_LOSSES, b""):
                self._forget_unknown(batch)
                batch.put(row_codec.FACTS, _LOSSES.encode(), losses)
            # Captures that are cut off with what Redis was not given are no payload's first.
            new = known.get(_NEW_PAYLOADS, b"")
            for first in range(0, len(new), _DIGEST_BYTES):
                batch.delete(row_codec.PAYLOADS, new[first : first + _DIGEST_BYTES])
        tables.write(batch)

    def _forget_unknown(self, batch: RawBatch) -> None:
        """An archive was lost since: a first capture that Redis does not know may have been in it."""
        rows = self._opened().rows(row_codec.PAYLOADS)
        while some := list(islice(rows, ROWS_AT_A_TIME)):
            there = self.journals.originals([digest for digest, _ in some])
            for digest, packed in some:
                if there.get(digest) != row_codec.unpack_original(packed):
                    batch.delete(row_codec.PAYLOADS, digest)

    def marks(self) -> dict[int, Mark]:
        """The partitions whose rows are here: the token under which each was held, and its last change."""
        tables, found = self._opened(), dict[int, Mark]()
        for key, packed in tables.rows(row_codec.FACTS, prefix=MARK_FACT.encode()):
            _, token, number = packed.split()
            partition = int(key[len(MARK_FACT) :])
            if int(token):
                prefix = row_codec.partition_key(row_codec.JOURNAL_ROW, partition)
                unsent = [row_codec.number_of(row) for row, _ in tables.rows(row_codec.MESSAGES, prefix=prefix)]
                found[partition] = int(token), max([int(number), *unsent])
        return found

    # --- changes --------------------------------------------------------------------------------

    def apply(self, changes: Changes) -> None:
        """Apply all of it atomically, to the frontier and to what its journals will get."""
        self.mend()
        with self._changing:
            last = self.messages.applied.last
            super().apply(changes)
            for partition, rows in self._coming.items():
                self._numbers[partition] += 1
                self._unsent[partition].append(rows)
            self._payloads += changes.payloads
            for name, packed in changes.facts:
                if name != DUE_FACT and not host_of_fact(name):
                    self._facts[name] = packed
            for host, token in self._coming_hosts.items():
                self._with_row[host] = token
            for number, (partition, packed) in enumerate(changes.messages, last + 1):
                letters = self._letters[box := Box(partition, self.messages.outbox)]
                if box in self._in_rows or len(letters) == _MOST_LETTERS:
                    self._in_rows[box] = number
                else:
                    letters.append((number, packed))

    def _batch(self, changes: Changes) -> WriteBatch:
        rows: defaultdict[int, list[Row]] = defaultdict(list)
        partition, held = self.journals.partition, self.journals.held
        for host, changed in partition_rows.rows_removed(changes):  # others may be queued in their places
            rows[partition(host)].append(changed)
        self._coming = rows
        batch, column = super()._batch(changes), self._tables.handles[row_codec.MESSAGES]
        of_pages = [host_key(record.url) for _, record in changes.pages]
        self._coming_hosts = {}
        for host in partition_rows.hosts_changed(changes, of_pages):
            number = partition(host)
            token = held.get(number, 0) if number in self._numbers else 0
            if not token or self._with_row.get(host) != token:
                key = row_codec.host_row_key(number, host)
                rows[number].append((row_codec.MESSAGES, key, b""))
                batch.put(key, b"", column)
                if token:
                    self._coming_hosts[host] = token
        for host, changed in partition_rows.rows_changed(changes, of_pages):
            rows[partition(host)].append(changed)
        # A visit that finds a page unchanged names the first capture of its payload, whoever has the page then.
        first = dict(changes.payloads)
        for host, (_, record) in zip(of_pages, changes.pages, strict=True):
            digest = record.digest
            original = first[digest] if digest in first else self.original(digest) if digest else None
            if original is not None:
                packed = row_codec.pack_original(original)
                rows[partition(host)].append((row_codec.PAYLOADS, digest, packed))
                if digest not in first:
                    batch.put(digest, packed, self._tables.handles[row_codec.PAYLOADS])
            elif digest in first:
                rows[partition(host)].append((row_codec.PAYLOADS, digest, None))
        # One that is lost is no capture that its page's next holder may name.
        for digest, original in changes.payloads:
            if original is None and (lost := self.original(digest)) is not None:
                rows[partition(host_key(lost.url))].append((row_codec.PAYLOADS, digest, None))
        for number, changed in partition_rows.read_marks(changes):
            rows[number].append(changed)
        if changes.payloads:
            batch.put(*_new_payloads([*self._payloads, *changes.payloads]))
        # Of partitions of others nothing is changed, but for what a message says that comes late: no journal has that,
        # so their rows here do not count any more.
        self._coming = {number: some for number, some in rows.items() if number in self._numbers}
        for number in rows.keys() - self._coming:
            batch.put(*unmarked(number)[1:])
        for number in self._coming:
            batch.put(row_codec.journal_key(number, self._numbers[number] + 1), b"", column)
        return batch

    def _put_of(self, host: str, put: Put) -> Put:
        """As of any store; a row that is queued is what the journal gets as well."""
        append, queue = self._coming[self.journals.partition(host)].append, self._tables.handles[row_codec.QUEUE]

        def put_both(key: bytes, value: bytes, column: ColumnFamily | None) -> None:
            put(key, value, column)
            if column is queue:  # that its page is known follows from it
                append((row_codec.QUEUE, key, value))

        return put_both

    def sync(self) -> None:
        """Make everything applied so far survive the loss of power, and of this disk. StorageError, LeaseLost."""
        with self._sending:
            with self._changing:
                numbers = dict(self._numbers)
                read, facts = dict(self._due_marks), dict(self._facts)
                payloads = list(self._payloads)
                self._outboxes.wrote()
            super().sync()
            self._give(numbers, read, facts, payloads, self._mail())
            if self.journals.log_bytes >= _LOG_BYTES:
                self._flush()

    def _flush(self) -> None:
        """Have journals what the log has."""
        self._grown |= {p: size for p, size in self.journals.flush().items() if p in self._grown}

    def _mail(self) -> list[tuple[int, Posted]]:
        """Messages that are durable here; what is too much for one go is in inboxes by then."""
        if not self._named:
            self.journals.name_outboxes({self.messages.outbox, *(box.outbox for box in self.messages.boxes())})
            self._named = True
        while post_bytes(posts := self._outboxes.waiting(_MOST_BYTES)) >= _MOST_BYTES:
            self.journals.post(posts)
            self._are_posted(posts)
        return posts

    def _letters_of(self, box: Box, after: int, up_to: int, most_bytes: int) -> list[tuple[int, bytes]]:
        """What waits to be posted; of an earlier start, or while much waits, as its rows have it."""
        letters = self._letters[box]
        if box.outbox != self.messages.outbox or (box in self._in_rows and (not letters or letters[-1][0] <= after)):
            return self.messages.of(box, after, up_to, most_bytes)
        first, end = (bisect_right(letters, number, key=itemgetter(0)) for number in (after, up_to))
        found, size = list[tuple[int, bytes]](), 0
        for letter in islice(letters, first, end):  # a slice would copy all that wait while Redis is away
            if size >= most_bytes:
                break
            found.append(letter)
            size += len(letter[1])
        return found

    def _are_posted(self, posts: list[tuple[int, Posted]]) -> None:
        self._outboxes.are_posted(posts)
        self._unasked += len(posts)
        with self._changing:
            for box, number in {Box(partition, each.outbox): each.number for partition, each in posts}.items():
                letters = self._letters[box]
                del letters[: bisect_right(letters, number, key=itemgetter(0))]
                if self._in_rows.get(box) == number:
                    del self._in_rows[box]

    def _give(
        self,
        numbers: dict[int, int],
        read: dict[int, tuple[int, dict[bytes, int]]],
        facts: dict[str, bytes],
        payloads: list[tuple[bytes, Original | None]],
        messages: list[tuple[int, Posted]],
    ) -> None:
        """All of it to Redis with one round trip; what Redis has by then, and what was read there, goes from here."""
        tables, waiting = self._opened(), list[Append]()
        batch = tables.batch()
        for partition, last in numbers.items():
            sent, (removed, marks) = self._sent[partition], read.get(partition, (0, {}))
            if sent < last or removed:
                changes = self._packed(partition, sent, last)
                waiting.append(Append(partition, sent + 1, changes, removed, list(marks.items())))
                for number in range(sent + 1, last + 1):
                    batch.delete(row_codec.MESSAGES, row_codec.journal_key(partition, number))
        rests = (waiting or messages) and self._unasked < _FORGOTTEN_AT_ONCE and not self._outboxes.full
        boxes = [] if rests else self._unread_boxes()
        mail = Mail(messages, payloads, boxes)
        if not (waiting or facts or any(mail)):
            return
        known = self.journals.commit(waiting, facts, mail)
        self._are_posted(messages)
        if self.rejoins and (waiting or facts):
            self.rejoins = False
            batch.delete(row_codec.FACTS, _REJOINS.encode())
        if ARCHIVE_FACT in facts:
            batch.put(row_codec.FACTS, GIVEN_ARCHIVE_FACT.encode(), facts[ARCHIVE_FACT])
        for each in waiting:
            self._tried.pop(each.partition, None)
            self._sent[each.partition] = each.first + len(each.changes) - 1
            del self._unsent[each.partition][: len(each.changes)]
            batch.put(row_codec.FACTS, *self._mark(each.partition, self._sent[each.partition]))
        self._forget_read(batch, dict(zip(boxes, known, strict=True)))
        with self._changing:
            self._forget_given(read, facts)
            if payloads:
                del self._payloads[: len(payloads)]
                batch.put(row_codec.FACTS, *_new_payloads(self._payloads))
            tables.write(batch)

    def _forget_given(self, read: dict[int, tuple[int, dict[bytes, int]]], facts: dict[str, bytes]) -> None:
        for name, packed in facts.items():
            if self._facts.get(name) is packed:
                del self._facts[name]
        for partition, mark in read.items():
            if self._due_marks.get(partition) is mark:
                del self._due_marks[partition]

    def _packed(self, partition: int, sent: int, last: int) -> list[bytes]:
        """Those behind ``sent``, up to ``last``. What was sent before, and not answered, is packed as it was then.

        Redis passes over as many as it has by now: the rows of a change must not stand in one that it has.
        """
        tried = self._tried.setdefault(partition, [])
        if not tried or tried[-1] < last:
            tried.append(last)
        changes, ends = self._unsent[partition], [end - sent for end in tried]
        return [each for first, end in pairwise([0, *ends]) for each in pack_changes(changes[first:end])]

    def _unread_boxes(self) -> list[Box]:
        self._unasked = 0
        return [box for box in self._outboxes.unread() if box.partition != LISTENER]

    def _forget_read(self, batch: RawBatch, known: dict[Box, int]) -> None:
        """Remove messages that have taken effect where they went: up to these numbers, of those to hubs all."""
        to_hubs = {box: maxsize for box in self._outboxes.unread() if box.partition == LISTENER}
        for box, up_to in (known | to_hubs).items():
            for each in self._outboxes.forget(box, up_to):
                batch.delete(row_codec.MESSAGES, row_codec.message_key(*each))

    @property
    def quiet(self) -> bool:
        """Whether Redis has everything, and every message has taken effect."""
        changed = any(number > self._sent[p] for p, number in self._numbers.items())
        written = self.messages.applied.last > self.messages.durable.last
        unread = self._outboxes.full or self._outboxes.unread()
        return not (changed or written or unread or self._due_marks or self._facts)

    # --- messages -------------------------------------------------------------------------------

    def unread(self, partitions: Sequence[int], limit: int) -> dict[int, Inbox]:
        """The oldest messages to partitions whose earlier ones have left the inbox."""
        asked = [p for p in partitions if p not in self._due_marks and p in self._numbers]
        return self.journals.unread(asked, limit)

    def share_inboxes(self, workers: int) -> None:
        """So many are at work, and post into the same."""
        self._outboxes.window_bytes = max(1, _WINDOW_BYTES // max(1, workers))

    def read(self, partition: int, inbox: Inbox) -> None:
        """The messages of an inbox have taken effect in what was applied."""
        marks: dict[bytes, int] = {}
        for each in inbox.messages:
            marks[each.outbox] = max(each.number, marks.get(each.outbox, 0))
        self._due_marks[partition] = inbox.removed + len(inbox.messages), marks

    def _mark(self, partition: int, sent: int) -> tuple[bytes, bytes]:
        """The fact that the rows of a partition are here, and that Redis has its changes up to ``sent``."""
        mark = f"{self.journals.crawl_id or '-'} {self.journals.held[partition]} {sent}"
        return f"{MARK_FACT}{partition}".encode(), mark.encode()

    # --- payloads of all workers ----------------------------------------------------------------

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1: of this worker, or as ``fetch_originals`` has found it."""
        return super().original(digest) or self._originals.get(digest)

    def fetch_originals(self, digests: Sequence[bytes]) -> None:
        """Ask Redis for first captures by other workers. In a thread. StorageError."""
        unknown = {digest for digest in digests if digest and super(GivingStore, self).original(digest) is None}
        for digest, original in self.journals.originals(list(unknown)).items():
            self._originals[digest] = original


def unmarked(partition: int) -> tuple[str, bytes, bytes]:
    """The row that says of the rows of a partition that they are not whole here."""
    return row_codec.FACTS, f"{MARK_FACT}{partition}".encode(), b"- 0 0"


def _new_payloads(payloads: Sequence[tuple[bytes, Original | None]]) -> tuple[bytes, bytes]:
    """The fact that names them."""
    return _NEW_PAYLOADS.encode(), b"".join(digest for digest, original in payloads if original is not None)
