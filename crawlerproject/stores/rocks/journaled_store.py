"""A worker's frontier whose partitions others may take over: how they come, are copied, and go.

Of the locks one that is held leaves those behind it to be taken: ``_copying``, ``_sending``, ``_changing``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from math import inf
from random import Random
from sys import maxsize
from threading import Lock

from crawlerproject.errors import StorageError, TargetError
from crawlerproject.rules.archive.upload_rules import retry_seconds
from crawlerproject.runtime.clock import since_boot
from crawlerproject.stores import row_codec
from crawlerproject.stores.protocols import Box, PageRecord
from crawlerproject.stores.redis.copies import CopySize
from crawlerproject.stores.redis.journals import Granted, PartitionJournals, Taken
from crawlerproject.stores.rocks import partition_rows
from crawlerproject.stores.rocks.giving_store import GivingStore, unmarked
from crawlerproject.stores.rocks.partition_rows import MARK_FACT, ROWS_AT_A_TIME
from crawlerproject.stores.rocks.rocks_tables import Tables
from crawlerproject.stores.rocks.row_packing import unpack_rows

# A copy is made again when a journal has so many bytes, and as many as the copy: so each byte is copied about once.
_LEAST_COPIED_BYTES = 256 << 10
_CHANCE = Random()

logger = logging.getLogger(__name__)


class JournaledStore(GivingStore):
    """Everything but ``sync``, ``take_some``, ``give_back``, ``copy_some`` and ``unread`` is for one thread."""

    def __init__(self, folder: str | os.PathLike[str], journals: PartitionJournals, *, rejoins: bool = False) -> None:
        """``rejoins``: Redis has lost what it knew, so what is here counts."""
        super().__init__(folder, journals, rejoins=rejoins)
        self._copying = Lock()  # until the folder is closed
        self._closed = False
        self._copied: dict[int, CopySize] = {}  # what the copies of partitions that are held have
        self._refused = 0  # times in a row that the place of copies did not take one
        self._copied_next = 0.0  # when it is asked again

    def mend(self) -> None:
        """As that of any store, once no other thread reads the tables. StorageError."""
        if self._failed:
            with self._copying, self._sending:
                super().mend()

    # --- partitions that come and go ------------------------------------------------------------

    def take(self, partition: int, lease_ms: int, *, latest: bool = False) -> tuple[Granted, list[str]] | None:
        """As ``take_some``, one; None when another holds it. Raises TargetError."""
        taken = self.take_some([partition], lease_ms, latest=latest).get(partition)
        if isinstance(taken, TargetError):
            raise taken
        return taken

    def take_some(
        self, partitions: Sequence[int], lease_ms: int, *, latest: bool = False, most_seconds: float = inf
    ) -> dict[int, tuple[Granted, list[str]] | TargetError]:
        """Take partitions that are free: how, and their hosts. Their rows are here then. In a thread.

        One whose copy cannot be had of its place is free again: why.

        ``latest``: no other worker has rows of them that are later, and Redis has lost what it had. What is not here
        after ``most_seconds`` is given back, but for the first.
        """
        try:
            return self._take_some(partitions, lease_ms, most_seconds, latest=latest)
        except BaseException:
            # A lease that Redis has granted is not renewed: nothing here goes by it, and others wait for its end.
            for partition in partitions:
                self.journals.held.pop(partition, None)
            self._forget(partitions)
            raise

    def _take_some(
        self, partitions: Sequence[int], lease_ms: int, most_seconds: float, *, latest: bool
    ) -> dict[int, tuple[Granted, list[str]] | TargetError]:
        began, taken = since_boot(), dict[int, tuple[Granted, list[str]] | TargetError]()
        with self._sending:
            acquired = self.journals.acquire_some(partitions, lease_ms, latest=latest)
            loaded: dict[int, int] = {}  # number of the last change
            anew: dict[int, int] = {}  # bytes of a copy that Redis was given
            for partition, each in acquired.items():
                if (loaded or taken) and since_boot() - began > most_seconds:
                    break
                try:
                    loaded[partition], lost = self._load(partition, each, lease_ms, latest=latest)
                except TargetError as error:
                    taken[partition] = error
                    continue
                if lost:
                    anew[partition] = 0
            super(GivingStore, self).sync()  # Redis is told below
            tables = self._opened()
            for partition in list(anew):
                marks, parts = partition_rows.read_up_to(tables, partition), self._kept_parts(partition, lease_ms)
                tick, last = partial(self.journals.keep, lease_ms), loaded[partition]
                try:
                    anew[partition] = self.journals.copies.opened_anew(partition, last, parts, marks, tick)
                except TargetError as error:
                    taken[partition] = error
                    del anew[partition], loaded[partition]
                else:
                    tables.put([(row_codec.FACTS, *self._mark(partition, last))])
            self.journals.opened(*(partition for partition in loaded if partition not in anew))
            for partition, last in loaded.items():
                each = acquired[partition]
                if not each.of and partition not in anew:
                    self.journals.forget_old(partition)
                taken[partition] = each.granted, list(partition_rows.hosts_of(tables, partition))
                with self._changing:
                    self._sent[partition] = self._numbers[partition] = last
                    self._unsent[partition] = []
                    self._grown[partition] = 0 if partition in anew else each.bytes
                    made = CopySize(anew.get(partition, 0), there=self.journals.copies.to_place)
                    self._copied[partition] = made if partition in anew else each.size
            if len(loaded) < len(acquired):
                self.journals.release([partition for partition in acquired if partition not in loaded])
        return taken

    def _load(self, partition: int, taken: Taken, lease_ms: int, *, latest: bool) -> tuple[int, bool]:
        """See to it that the rows of a partition are here: its last change, and whether Redis is to be given all."""
        tables, (_, key, nothing) = self._opened(), unmarked(partition)
        crawl_id, token, number = (tables.get(row_codec.FACTS, key) or nothing).split()
        prefix = row_codec.partition_key(row_codec.JOURNAL_ROW, partition)
        unsent = [row_codec.number_of(row) for row, _ in tables.rows(row_codec.MESSAGES, prefix=prefix)]
        last = max([int(number), *unsent])
        anew = latest and taken.crawl_id != self.journals.crawl_id
        anew = anew and (int(token), last) >= (taken.of, taken.journal)
        same = crawl_id.decode() == (self.journals.crawl_id or "-") and int(token) == taken.of > 0
        if same and int(number) > taken.journal:
            raise self.journals.lacks(partition, int(number), taken.journal)
        same = same and not unsent and int(number) == taken.journal
        mends = same and taken.damaged
        if anew:
            last += 1
            batch = tables.batch()
            for each in unsent:
                batch.delete(row_codec.MESSAGES, row_codec.journal_key(partition, each))
            batch.put(row_codec.FACTS, *self._mark(partition, last))
            tables.write(batch)
        else:
            last = taken.journal + mends
            if not same:
                tables.put([unmarked(partition)])
                partition_rows.clear(tables, partition)
                if taken.of or taken.copy:
                    tick = partial(self.journals.keep, lease_ms)
                    for packed in self.journals.copies.stored(partition, taken, tick):
                        partition_rows.put(tables, unpack_rows(packed))
                        self.journals.keep(lease_ms)
                elif self._took_old(partition, lease_ms):
                    last = 1
        if not mends:  # as the former holder's the rows count until Redis knows of the new copy
            tables.put([(row_codec.FACTS, *self._mark(partition, last))])
        return last, anew or mends

    def _took_old(self, partition: int, lease_ms: int) -> bool:
        """Take in the rows of a crawl of format 2, and give Redis a copy of them; whether there were any."""
        rows, tables = self.journals.old_rows(partition), self._opened()
        if (first := next(rows, None)) is None:
            return False
        partition_rows.put(tables, [first])
        while some := list(islice(rows, ROWS_AT_A_TIME)):
            partition_rows.put(tables, some)
            self.journals.keep(lease_ms)
        self.give_copy(partition, lease_ms)
        return True

    def give_copy(self, partition: int, lease_ms: int) -> None:
        """Give Redis the first copy of a partition that is held, as change number 1. May be done again."""
        self.journals.begun(partition)
        parts = self._kept_parts(partition, lease_ms)
        self.journals.copies.copy(partition, 1, parts, tick=lambda: self.journals.keep(lease_ms))

    def _kept_parts(self, partition: int, lease_ms: int) -> Iterator[bytes]:
        for part in partition_rows.all_parts(self._opened(), partition):
            yield part
            self.journals.keep(lease_ms)

    def give_back(self, *partitions: int) -> None:
        """Let partitions go: nothing of them changes any more, their hosts are on no list. StorageError, LeaseLost.

        Their rows stay until another worker has them (``copy_some``): until then Redis may lose what it has of them.
        """
        while any(self._numbers[p] > self._sent[p] or p in self._due_marks for p in partitions):
            self.sync()
        self.release(partitions)
        self._forget(partitions)

    def release(self, partitions: Sequence[int]) -> None:
        """As ``give_back``, at the end: the last commit is made. A copy may still be under way. StorageError."""
        with self._sending:
            self._flush()
            self.journals.release(partitions)

    def _forget(self, partitions: Sequence[int]) -> None:
        """These are not held."""
        with self._sending, self._changing:
            for partition in partitions:
                for held in (self._numbers, self._sent, self._unsent, self._grown, self._copied, self._tried):
                    held.pop(partition, None)

    def came(self, hosts: Sequence[str]) -> None:
        """Hosts of a partition that was taken: what is remembered of queues and fingerprints is of before."""
        self._heads.clear()
        self._fingerprints.forget()
        for host in hosts:
            self._with_row[host] = self.journals.held[self.journals.partition(host)]

    def hosts_with_work(self) -> Iterator[str]:
        """Those of partitions that are held; of others there are rows that may be of before."""
        return (host for host in super().hosts_with_work() if self.journals.partition(host) in self._numbers)

    # --- copies ---------------------------------------------------------------------------------

    def copy_some(self) -> bool:
        """Copy a partition whose journal has grown most, if any has by much. In a thread. StorageError, LeaseLost.

        First the rows of those go that other workers have by now. Whether it cost little, so that another may be copied
        now. When the place of copies takes none, that is said once, and it is asked less and less.
        """
        with self._copying:
            if self._closed:
                return False
            self._clear_taken()
            if since_boot() < self._copied_next:
                return False
            to_place, least = self.journals.copies.to_place, _LEAST_COPIED_BYTES
            grown = dict(self._grown)
            too_much = {each: self._copied[each].wanted(grown[each], least, to_place=to_place) for each in grown}
            partition = max(too_much, key=too_much.__getitem__, default=-1)
            if partition < 0 or too_much[partition][0] <= 0:
                return False
            with self._sending:
                self._flush()  # a copy takes the place of changes in a journal
                if (number := self._sent.get(partition)) is None:
                    return False
                size = self._grown[partition]
            whole = too_much[partition][1]
            try:
                if whole:
                    self._copy_whole(partition, number, size)
                else:
                    self._extend(partition, number)
            except TargetError as error:
                self._refused += 1
                self._copied_next = since_boot() + retry_seconds(self._refused, _CHANCE)
                if self._refused == 1:
                    logger.warning(
                        "Copies of partitions cannot be put to where the archive goes (%s): until they can, Redis "
                        "keeps what changes.", error,
                    )  # fmt: skip
                return False
            if self._refused:
                logger.info("Copies of partitions are put to where the archive goes again.")
                self._refused = 0
            return not whole

    def _clear_taken(self) -> None:
        """Remove the rows of partitions that another worker has had whole on its disk since they were held here."""
        with self._sending:
            tables, own = self._opened(), dict[int, int]()
            for key, packed in tables.rows(row_codec.FACTS, prefix=MARK_FACT.encode()):
                crawl_id, token, _ = packed.decode().split()
                if crawl_id == (self.journals.crawl_id or "-") and int(token):
                    own[int(key[len(MARK_FACT) :])] = int(token)
            given = [partition for partition in own if partition not in self._numbers]
            for partition, of in self.journals.opened_by(given).items():
                if of > own[partition]:
                    tables.put([unmarked(partition)])
                    partition_rows.clear(tables, partition)

    def _copy_whole(self, partition: int, number: int, grown: int) -> None:
        def whole() -> None:
            """What was read may be newer than ``number``: it does not count before Redis has all of it."""
            with self._changing:
                last = self._numbers.get(partition, maxsize)
            self.sync()
            if self._sent.get(partition, -1) < last:
                raise StorageError(f"partition {partition} was given back while it was copied")

        # How far a worker's outbox of an earlier start was read is nothing to be kept, once that has no more messages.
        marks = [outbox for outbox, _ in partition_rows.read_up_to(self._opened(), partition)]
        gone = self.journals.forget_marks(partition, marks)
        partition_rows.put(
            self._opened(),
            ((row_codec.MESSAGES, row_codec.box_key(row_codec.READ_ROW, Box(partition, each)), None) for each in gone),
        )
        copies = self.journals.copies
        with closing(self._parts(partition)) as parts:  # what an error keeps of it would keep the folder locked
            copied = copies.copy(partition, number, parts, whole, self._go_on)
        if copied:
            self._has_copied(partition, grown, CopySize(copied, there=copies.to_place))

    def _extend(self, partition: int, number: int) -> None:
        left, added = self.journals.copies.extend(partition, number, self._go_on)
        size = self._copied.get(partition, CopySize())
        self._has_copied(partition, left, size._replace(added=size.added + added))

    def _has_copied(self, partition: int, left: int, size: CopySize) -> None:
        """So many bytes have left the journal."""
        with self._sending:
            if partition in self._grown:
                self._grown[partition] -= left
                self._copied[partition] = size

    def _go_on(self) -> None:
        if self._closed or self._failed:
            raise StorageError(f"the frontier in {self._folder} is closed")

    def _parts(self, partition: int) -> Generator[bytes, None, None]:
        for part in partition_rows.all_parts(self._opened(), partition):
            self._go_on()
            yield part

    def hosts_in(self, partition: int) -> list[str]:
        """The hosts that a partition has."""
        return list(partition_rows.hosts_of(self._opened(), partition))

    # --- what a recrawl reads -------------------------------------------------------------------

    def pages_of(self, partition: int) -> Iterator[list[tuple[bytes, PageRecord]]]:
        """Every decided page of a partition, and its key, some at a time."""
        tables = self._opened()
        for host in partition_rows.hosts_of(tables, partition):
            rows = tables.rows(row_codec.PAGES, prefix=row_codec.host_prefix(host)[: row_codec.HASH_BYTES])
            while some := list(islice(rows, ROWS_AT_A_TIME)):
                yield [(key, row_codec.unpack_record(value)) for key, value in some]

    @property
    def partitions(self) -> int:
        """How many the crawl has."""
        return self.journals.partitions

    def host_fields(self, names: Sequence[str]) -> list[bytes | None]:
        """Facts of hosts."""
        return [self.fact(name) for name in names]

    @property
    def tables(self) -> Tables:
        """All that is here. StorageError."""
        return self._opened()

    def reach(self) -> None:
        """Find out whether Redis answers and takes writes. StorageError."""
        self.journals.reach()
        self.sync()

    def close(self) -> None:
        """Let go of the folder and of Redis; harmless when done twice."""
        self._closed = True
        with self._copying:
            super().close()
        self.journals.close()
