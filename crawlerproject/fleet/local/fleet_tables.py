"""What a local fleet's supervisor keeps of its workers, in memory: counts, the end, sums, IP addresses, inboxes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from crawlerproject.rules.fleet_shares import QuotaRequest, Share, part
from crawlerproject.rules.politeness.address_turns import AddressTurns

# Addresses that have rested are forgotten when so many are known: some MB.
_SWEPT_AT = 20_000


INBOX_BYTES = 512 << 10
"""Of messages, as they are packed, in one answer: some 5,000 links, half a second's work for their reader."""


class Counts(NamedTuple):
    """Of one process since it began, and what it has left."""

    pages: int = 0
    bytes: int = 0
    errors: int = 0
    queued_urls: int | None = None  # None: not yet reported
    paused: str = ""  # why it requests nothing

    def after(self, before: Counts) -> Counts:
        """Over two processes of one worker, one after the other."""
        done = (self.pages + before.pages, self.bytes + before.bytes, self.errors + before.errors)
        queued_urls = before.queued_urls if self.queued_urls is None else self.queued_urls
        return Counts(*done, queued_urls, self.paused)


class WorkerReport(NamedTuple):
    """What a worker reports about once a second."""

    quiet: bool  # it has nothing to do, and has read nothing since the report before
    activity: int  # grows with every report that is not quiet
    unread: Sequence[str]  # workers that have not acknowledged all that it sent them


class Agreement:
    """Judges that all work is done.

    All workers were quiet in a round of reports, all again in the next, and none of them has done anything in between
    (its activity is the same). So at the moment between the two rounds every worker had nothing to do, and nothing on
    its way to another: no work can come from anywhere any more.
    """

    def __init__(self, workers: Sequence[str]) -> None:
        self._workers = frozenset(workers)
        self._ended: set[str] = set()  # stopped for good before the end: what they have is left for another start
        self._before: dict[str, int] = {}  # activity by worker, in the round before; empty: there was none
        self._round: dict[str, int] = {}
        self.done = False

    def take(self, worker: str, report: WorkerReport) -> bool:
        """Take a worker's report; whether the crawl is done."""
        if self.done:
            return True
        if not report.quiet or not self._ended.issuperset(report.unread):
            self._begin_rounds()
            return False
        self._round[worker] = report.activity
        if self._round.keys() >= self._workers - self._ended:
            self.done = bool(self._before) and self._before == self._round
            self._before, self._round = self._round, {}
        return self.done

    def exited(self, worker: str, *, ended: bool = False) -> None:
        """The worker's process has; ``ended``: it is not started again."""
        if ended:
            self._ended.add(worker)
        self._begin_rounds()

    def started(self, worker: str) -> None:
        """A process of the worker has begun."""
        self._ended.discard(worker)
        self._begin_rounds()

    def _begin_rounds(self) -> None:
        self._before, self._round = {}, {}


class QuotaTable:
    """Grants parts of each sum, by the rule of the script SHARE (stores/redis/scripts.py) for other fleets."""

    def __init__(self, spent: Mapping[str, Mapping[str, int]], workers: int) -> None:
        """``spent``: by kind and worker, what is committed as the run begins; ``workers`` have a share."""
        self._granted = {kind: dict(by) for kind, by in spent.items()}
        self._committed = {kind: dict(by) for kind, by in spent.items()}
        self._starved: dict[str, set[str]] = {}
        self._workers = workers
        self.claimed = False  # anything, by any worker

    def exchange(self, worker: str, claim: QuotaRequest) -> Share:
        """Take a worker's request for one sum, and grant it some."""
        self.claimed = True
        granted, committed = (each.setdefault(claim.kind, {}) for each in (self._granted, self._committed))
        starved = self._starved.setdefault(claim.kind, set())
        mine = claim.used if claim.gives else max(claim.used, granted.get(worker, 0))
        left = claim.most - sum(granted.values()) + granted.get(worker, 0) - mine
        if claim.wants:
            mine += part(left, self._workers, claim.least, claim.largest)
        (starved.add if claim.wants and left <= 0 else starved.discard)(worker)
        granted[worker], committed[worker] = mine, claim.committed
        return Share(mine, sum(committed.values()), bool(starved - {worker}))

    def ended(self, worker: str, spent: Mapping[str, int]) -> None:
        """The worker is not started again: the others have what it did not spend."""
        for kind, amount in spent.items():
            self._granted.setdefault(kind, {})[worker] = amount
            self._committed.setdefault(kind, {})[worker] = amount
        for starved in self._starved.values():
            starved.discard(worker)


class AddressTable:
    """One request at a time at an address, and a pause between two, whichever worker sends them; domains take turns.

    ``now`` is in seconds of any clock that never goes back.
    """

    def __init__(self, rest_seconds: float, free_from: float = 0.0) -> None:
        """Before ``free_from`` no address is free: what was asked before this process began is unknown."""
        self._rest_seconds = rest_seconds
        self._free_from = free_from
        self._holders: dict[str, tuple[str, str, float]] = {}  # by address: a worker, a domain, and since when
        self._free_at: dict[str, tuple[float, str]] = {}  # and whose request was the last: it keeps the rest itself
        self._turns: defaultdict[str, AddressTurns] = defaultdict(AddressTurns)  # of those that were ever waited for
        self._sweep_at = _SWEPT_AT

    def reserve(self, worker: str, address: str, domain: str, now: float, *, quick_waits: bool = False) -> float:
        """0.0: the worker has the address until it gives it back, or has exited. Else see ``AddressTurns.ask``."""
        free_at, last = self._free_at.get(address, (self._free_from, ""))
        free_at = now if last == worker else free_at
        holder, _, since = self._holders.get(address, (worker, domain, now))
        if free_at > now or holder != worker or address in self._turns:
            held_seconds = None if holder == worker else now - since
            if seconds := self._turns[address].ask(
                worker, domain, now, quick_waits=quick_waits, free_at=free_at, held_seconds=held_seconds
            ):
                return seconds
        self._holders[address] = worker, domain, now
        return 0.0

    def rest(
        self, worker: str, address: str, now: float, *, quick_waits: bool = False, took_seconds: float | None = None
    ) -> None:
        """The worker's request has ended. See ``AddressTurns.held``; ``quick_waits``: in the worker's own line."""
        holder, domain, since = self._holders.get(address, ("", "", now))
        if holder != worker:
            return
        del self._holders[address]
        self._free_at[address] = now + self._rest_seconds, worker
        if (turns := self._turns.get(address)) is not None:
            turns.held(
                domain,
                now - since,
                now,
                took_seconds=took_seconds,
                rest_seconds=self._rest_seconds,
                quick_waits=quick_waits,
            )
        if len(self._free_at) > self._sweep_at:
            self._sweep(now)

    def exited(self, worker: str, now: float) -> None:
        """The worker's process has ended, and with it all that it had under way."""
        for address in [address for address, (holder, _, _) in self._holders.items() if holder == worker]:
            self.rest(worker, address, now)
        for address in [address for address, (_, last) in self._free_at.items() if last == worker]:
            self._free_at[address] = self._free_at[address][0], ""

    def _sweep(self, now: float) -> None:
        self._free_at = {address: each for address, each in self._free_at.items() if each[0] > now}
        for address in [address for address, turns in self._turns.items() if turns.idle(now)]:
            del self._turns[address]
        self._sweep_at = max(_SWEPT_AT, 2 * len(self._free_at))


Post = tuple[int, str, int, str]  # partition, outbox, number, packed
Read = tuple[int, int, list[tuple[str, int]]]  # partition, how many were ever read, up to which number of each outbox


class InboxTable:
    """Messages to partitions, each until it was read; the numbers of those that were, by box. As Redis has them."""

    def __init__(self) -> None:
        self._rows: dict[int, list[tuple[str, int, str]]] = {}  # by partition: outbox, number, packed
        self._removed: Counter[int] = Counter()  # ever, by partition
        self._read: dict[tuple[int, str], int] = {}  # by partition and outbox

    def exchange(
        self, posts: Iterable[Post], read: Iterable[Read], boxes: Iterable[tuple[int, str]], partitions: Iterable[int]
    ) -> tuple[list[int], list[tuple[int, int, list[tuple[str, int, str]]]]]:
        """Put messages into inboxes, remove what was ``read``; for each box the last message that was read, durably,
        and of these partitions what is in their inboxes. The same may be posted, and said to be read, again.
        """
        for partition, outbox, number, packed in posts:
            self._rows.setdefault(partition, []).append((outbox, number, packed))
        for partition, removed, marks in read:
            self._remove(partition, removed, marks)
        return [self._read.get((partition, outbox), 0) for partition, outbox in boxes], self._unread(set(partitions))

    def _remove(self, partition: int, removed: int, marks: Iterable[tuple[str, int]]) -> None:
        """So many messages were ever read, durably; up to these numbers, by outbox."""
        gone = max(0, removed - self._removed[partition])
        self._removed[partition] += gone
        if rows := self._rows.pop(partition, [])[gone:]:
            self._rows[partition] = rows  # behind those that have waited for longer
        for outbox, number in marks:
            self._read[partition, outbox] = max(number, self._read.get((partition, outbox), 0))

    def _unread(self, wanted: Collection[int]) -> list[tuple[int, int, list[tuple[str, int, str]]]]:
        """The oldest messages to partitions, each with how many were ever removed before them, some at a time."""
        found: list[tuple[int, int, list[tuple[str, int, str]]]] = []
        room = INBOX_BYTES
        for partition, rows in self._rows.items():
            if room > 0 and partition in wanted:
                sizes = accumulate((len(packed) for _, _, packed in rows), initial=0)
                some = [row for row, before in zip(rows, sizes, strict=False) if before < room]
                found.append((partition, self._removed[partition], some))
                room -= sum(len(packed) for _, _, packed in some)
        return found
