"""A worker's part in a recrawl of its fleet: chooses the visits of each partition that it holds, once in a round.

With a budget the due pages of all partitions are counted first, each by its holder; then each holder knows how many
visits its partitions have. A partition that comes from another worker brings what that one chose, in its queues; when
it had not chosen all of it, what it chose is counted and the rest is chosen here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from crawlerproject.fleet.redis.leased_partitions import LeasedPartitions
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.learned.revisits import (
    DueRevisit,
    RevisitPolicy,
    again,
    best,
    chosen_since,
    scored,
    sorted_some,
)
from crawlerproject.rules.revisits.budget_shares import counted, visits_of
from crawlerproject.rules.revisits.history import History, HostHistory
from crawlerproject.rules.url.urls import host_key
from crawlerproject.runtime.clock import since_boot
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import HostFact, PageRecord
from crawlerproject.stores.redis.membership import Round, Rounds
from crawlerproject.stores.rocks.journaled_store import JournaledStore

# A commit waits so long for the reading of known pages, at most: as long as it usually is until the next one. Nothing
# else waits for it.
_READ_SECONDS = 1.0
# Revisits queued between two commits (ours): some megabytes of the journal.
_A_COMMIT = 5_000
# Of these, in one turn of the loop: some 10 ms.
_A_TURN = 250
# Hosts whose history is at hand while pages are read; 200 bytes each.
_HOSTS = 20_000


class _Step(NamedTuple):
    """Some of a partition's visits; with the last of them it has all."""

    partition: int
    pages: list[DueRevisit]
    last: bool


class RevisitRound:
    """For one event loop; known pages are read in a thread, in slices, between commits."""

    def __init__(
        self,
        rounds: Rounds,
        current: Round,
        store: JournaledStore,
        held: LeasedPartitions,
        policy: RevisitPolicy,
    ) -> None:
        self.queued = 0
        self._rounds = rounds
        self._round = current
        self._store = store
        self._held = held
        self._policy = policy
        self._done: set[int] = set()  # partitions whose visits are queued, by any worker
        self._queued: list[int] = []  # the same, with the commit that is coming
        self._steps: Iterator[_Step | None] = iter(())
        self._read: list[_Step] = []  # to be queued
        self._hosts: LruCache[str, HostHistory] = LruCache(_HOSTS)

    @property
    def busy(self) -> bool:
        """Whether there may be visits to choose."""
        return any(partition not in self._done for partition in self._held.all())

    async def turn(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """After a commit: go on choosing for the partitions held. StorageError: to be called again."""
        if not self.busy:
            return
        if self._queued:
            await asyncio.to_thread(self._rounds.choose, self._round.number, self._queued)
            self._done.update(self._queued)
            self._queued = []
        if not self._read:
            self._read = await asyncio.to_thread(self._read_some)
        while self._read:
            partition, pages, last = self._read[0]
            if partition in self._held.staying():
                await self._queue(frontier, pages, clock)
                if last:
                    self._queued.append(partition)
            del self._read[0]

    # --- in a thread ----------------------------------------------------------------------------

    def _read_some(self) -> list[_Step]:
        until, read, count = since_boot() + _READ_SECONDS, list[_Step](), 0
        for begin in (False, True):
            if begin:
                self._steps = self._begin({step.partition for step in read})
            for step in self._steps:
                if step is not None:
                    read.append(step)
                    count += len(step.pages)
                if count >= _A_COMMIT or since_boot() >= until:
                    return read
        return read

    def _begin(self, read: set[int]) -> Iterator[_Step | None]:
        """What is left to do for the partitions held now, without those just ``read``; None: nothing for a while."""
        self._done |= self._rounds.chosen(self._round.number)
        left = [each for each in self._held.staying() if each not in self._done and each not in read]
        return self._all_of(left) if self._round.budget is None else self._best_of(left, self._round.budget)

    def _all_of(self, partitions: list[int]) -> Iterator[_Step | None]:
        for partition in partitions:
            found = (page for some in self._due(partition) for page in some)
            for some in sorted_some(found, _A_COMMIT):
                yield _Step(partition, some, last=False)
            yield _Step(partition, [], last=True)

    def _best_of(self, partitions: list[int], budget: int) -> Iterator[_Step | None]:
        number, counts = self._round.number, self._rounds.counts(self._round.number)
        for partition in partitions:
            if partition in counts:
                continue
            own: Counter[int] = Counter()
            for some in self._due(partition):
                own += counted(page.score for page in some)
                yield None
            self._rounds.count(number, partition, own)
        counts = self._rounds.counts(number)
        if len(counts) < self._store.partitions:
            return  # others count theirs
        visits = visits_of(counts, budget)
        for partition in partitions:
            yield from self._best(partition, visits[partition])

    def _best(self, partition: int, visits: int) -> Iterator[_Step | None]:
        found: list[DueRevisit] = []
        chosen_before: set[bytes] = set()
        for some in self._due(partition, chosen_before) if visits else ():
            found = best((*found, *some), visits)
            yield None
        found = found[: max(0, visits - len(chosen_before))]
        for start in range(0, len(found), _A_COMMIT):
            yield _Step(partition, found[start : start + _A_COMMIT], last=False)
        yield _Step(partition, [], last=True)

    def _due(self, partition: int, chosen_before: set[bytes] | None = None) -> Iterator[list[DueRevisit]]:
        """The partition's due pages, some at a time. Those chosen in this round are put into ``chosen_before``."""
        at = self._round.at
        for some in self._store.pages_of(partition):
            hosts = {host_key(record.url) for _, record in some if record.history}
            missing = [host for host in hosts if host not in self._hosts]
            found = self._store.host_fields([HostFact.VISITS + host for host in missing]) if missing else []
            for host, packed in zip(missing, found, strict=True):
                self._hosts[host] = HostHistory.unpack(packed or b"")
            if chosen_before is not None:
                chosen_before.update(key for key, record in some if _chosen(record, at))
            yield list(scored(some, lambda name: self._hosts.get(name) or HostHistory(), at, self._policy))

    # --- in the event loop ----------------------------------------------------------------------

    async def _queue(self, frontier: Frontier, pages: list[DueRevisit], clock: Callable[[], float]) -> None:
        for start in range(0, len(pages), _A_TURN):
            some = pages[start : start + _A_TURN]
            known = [(page.key, host_key(page.record.url)) for page in some]
            now = clock()
            found = [self._now(page, host) for page, (_, host) in zip(some, known, strict=True)]
            self.queued += frontier.admission.again((again(page, now) for page in found if page is not None), now)

    def _now(self, page: DueRevisit, host: str) -> DueRevisit | None:
        """The page as it is known now; None when it has been queued or visited since it was read."""
        record = self._store.page(page.key, host)
        if record is None:
            return None
        history = History.unpack(record.history)
        if history.queued_at or record.fetched_at > page.record.fetched_at:
            return None
        return page._replace(record=record, history=history)


def _chosen(record: PageRecord, at: float) -> bool:
    return bool(record.history) and chosen_since(record, History.unpack(record.history), at)
