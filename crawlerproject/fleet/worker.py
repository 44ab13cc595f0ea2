"""One of several workers on one crawl: which partitions are its own, and what it hears from and tells the others."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import orjson

from crawlerproject.errors import LeaseLost, NameTaken, StorageError
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.learned.learner import Kept
from crawlerproject.frontier.messages import Links, Message, pack, unpack
from crawlerproject.rules.url.partition_shares import partitions_wanted
from crawlerproject.runtime.clock import since_boot
from crawlerproject.stores.atomic_files import SECRET_FILE, replace_file
from crawlerproject.stores.protocols import FLAG_STRANGER
from crawlerproject.stores.redis.buffered_store import BufferedStore
from crawlerproject.stores.redis.membership import FleetStatus, RedisFleet, Report

logger = logging.getLogger(__name__)

# A lease is renewed when a third of it is over: two renewals may fail.
_RENEW_SHARE = 3
# Reports count for the time of a lease: ten of them in that time.
_REPORT_SHARE = 10
# URLs that are looked up and queued as one.
_URLS_AT_A_TIME = 5_000
# Of these, judged and queued in one turn of the loop: some 10 ms.
_URLS_A_TURN = 250
# Links in one letter, and letters of one partition that are read in one beat.
_LINKS_A_LETTER = 500
_LETTERS = 50
# Partitions that are taken between two commits, so that commits go on.
_TAKEN_AT_A_TIME = 64
# Reports that must agree that nothing is left to do; in between each worker has looked at its letters.
_SAME_REPORTS = 3
# Workers' ideas of the store's time differ by no more, or by what their way to Redis takes (on one machine 1 ms).
_DOUBT_SECONDS = 0.025
# A machine's clock that differs more from the store's is worth a warning.
_CLOCK_SECONDS = 2.0


class Fleet:
    """The ``Territory`` of a worker. Everything but ``begin`` and ``close`` is to be called from one event loop."""

    def __init__(
        self,
        store: BufferedStore,
        fleet: RedisFleet,
        life_file: Path,
        *,
        lease_seconds: float,
        answer_seconds: float,
        rng: random.Random,
    ) -> None:
        """``answer_seconds``: no request takes longer, so none is begun when its lease could end before it."""
        self.store = store
        self.fleet = fleet
        self.done = False  # nothing is left to do in the whole crawl
        self.workers = 1
        self.doubt_seconds = _DOUBT_SECONDS
        self.outbox: list[DiscoveredUrl] = []
        self._answered: dict[int, int] = {}  # partition -> letters read, whose effects are in no commit yet
        self._counts: Mapping[str, int] = {}  # pages, bytes, errors since the start, for inspection
        self._life_file = life_file
        self._lease_seconds = lease_seconds
        self._lease_ms = int(lease_seconds * 1000)
        self._answer_seconds = answer_seconds
        self._rng = rng
        self._since: dict[int, float] = {}  # partition -> before then it may have been asked without a trace; 0: no
        self._valid: dict[int, float] = {}  # partition -> until when it is surely ours, seconds since boot
        self._leaving: set[int] = set()
        self._taken: list[int] = []  # since the last report
        self._left: list[int] = []
        self._life = ""
        self._activity = 0
        self._busy = True  # something came or went since the last report
        self._renewed_at = self._reported_at = 0.0
        self._agreed = (0, 0)  # sum of activity, how often it was told
        self._warned = False

    def begin(self) -> float:
        """Join; the store's time when ``time.monotonic()`` was 0. Raises OperatorError: the name is taken. Blocking."""
        base = self.store.store
        before, self._life = self._lives(), uuid.uuid4().hex
        # Before Redis hears of it: killed in between, the next start must not find its name taken by itself.
        self._remember([self._life, *before])
        try:
            self.fleet.begin(self._life, before, base.partitions)
        except NameTaken:
            self._remember(before)
            raise
        self._remember([self._life])
        base.begin(self._life)
        self._renewed_at = since_boot()
        epoch = self.fleet.epoch()
        self.doubt_seconds = max(_DOUBT_SECONDS, 2 * epoch.doubt_seconds)
        return epoch.seconds

    def _lives(self) -> list[str]:
        """Under which this worker may be known, the latest first."""
        if not self._life_file.exists():
            return []
        known = orjson.loads(self._life_file.read_bytes())
        return [known["life"], *known.get("before", ())]

    def _remember(self, lives: list[str]) -> None:
        base = self.store.store
        names = {"worker": base.worker, "crawl": base.crawl}
        replace_file(
            self._life_file, orjson.dumps({**names, "life": (lives or [""])[0], "before": lives[1:]}), SECRET_FILE
        )

    # --- the territory --------------------------------------------------------------------------

    def mine(self, host: str) -> bool:
        """Whether this worker decides about the host now."""
        partition = self.store.store.partition(host)
        return partition in self._since and partition not in self._leaving

    def may_ask(self, host: str) -> bool:
        """Whether an answer will surely come before anyone else may ask the host."""
        return self.mine(host) and self.ask_until(host) >= since_boot() + self._answer_seconds

    def crowded(self) -> bool:
        """Whether the next beat has much to send already."""
        return self.store.outbox.crowded

    def ask_until(self, host: str) -> float:
        """Until when (seconds since boot) an answer must be complete."""
        return self._valid.get(self.store.store.partition(host), 0.0)

    def unsure_until(self, host: str) -> float:
        """Before then (epoch seconds) a former holder may have asked the host without a trace; 0: none has."""
        return self._since.get(self.store.store.partition(host), 0.0)

    def send(self, host: str, message: Message) -> None:
        """Write to whoever decides about the host."""
        self._busy = True
        self.store.outbox.post(self.store.store.partition(host), pack(message))

    # --- each beat ------------------------------------------------------------------------------

    async def deliver(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Take in what was found here for hosts of ours; send what was found for others'.

        To be called between the beginning of a commit and its end: what pages of the commit name goes with it.
        """
        found, self.outbox = self.outbox, []
        try:
            while found:
                await self._queue(frontier, found[:_URLS_AT_A_TIME], clock)
                del found[:_URLS_AT_A_TIME]
                self._busy = True
                if found:
                    await asyncio.to_thread(self.store.sync)
        except StorageError:
            self.outbox = found + self.outbox
            raise

    async def _queue(self, frontier: Frontier, found: Sequence[DiscoveredUrl], clock: Callable[[], float]) -> None:
        own = [item for item in found if self.mine(item.address.host)]
        await asyncio.to_thread(self.store.look_up, list(_keys_of(own)))
        foreign = [item for item in found if not self.mine(item.address.host)]
        for some in _slices(own):
            frontier.add(some, clock())
            await asyncio.sleep(0)
        by_partition: dict[int, list[DiscoveredUrl]] = {}
        for some in _slices(foreign):
            for item in frontier.allowed(some, clock()):
                by_partition.setdefault(self.store.store.partition(item.address.host), []).append(item)
            await asyncio.sleep(0)
        for partition, items in by_partition.items():
            for start in range(0, len(items), _LINKS_A_LETTER):
                self.store.outbox.post(partition, pack(Links(items[start : start + _LINKS_A_LETTER])))

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Take in what other workers wrote. To be called before a commit begins: it holds what comes of it."""
        ours = [partition for partition in self._since if partition not in self._leaving | self._answered.keys()]
        inboxes = await asyncio.to_thread(self.store.messages, ours, _LETTERS)
        if not inboxes:
            return
        self._busy = True
        read = await asyncio.to_thread(self._unpacked, inboxes)
        for partition, messages in read.items():
            for message in messages:
                frontier.read(message, clock())
                await asyncio.sleep(0)
            self._answered[partition] = len(messages)

    def settle(self) -> None:
        """The commit that holds what came of the letters is applied: with it they are gone from the inboxes."""
        for partition, count in self._answered.items():
            self.store.outbox.messages_read(partition, count)
        self._answered.clear()

    def _unpacked(self, inboxes: dict[int, list[bytes]]) -> dict[int, list[Message]]:
        """The letters, and the answers about the pages in them at hand. In a thread."""
        read = {partition: [unpack(message) for message in messages] for partition, messages in inboxes.items()}
        self.store.look_up([page for messages in read.values() for message in messages for page in _pages_of(message)])
        return read

    async def turn(self, frontier: Frontier, learned: Kept, counts: Mapping[str, int], *, idle: bool) -> None:
        """Renew, report, give and take partitions. Raises LeaseLost when anything here is another's by now.

        ``counts``: pages, bytes, errors since the start, for inspection.
        """
        self._counts = counts
        now = since_boot()
        if now - self._renewed_at >= self._lease_seconds / _RENEW_SHARE:
            lost = await asyncio.to_thread(self.store.store.renew, self._lease_ms)
            if lost:
                raise LeaseLost(f"partition {lost[0]} was taken by another worker")
            self._renewed_at = now
            self._valid = dict.fromkeys(self._since, now + self._lease_seconds)
        quiet = idle and not (self._busy or self.outbox or self._leaving or (not self.store.outbox.empty))
        if quiet or now - self._reported_at >= self._lease_seconds / _REPORT_SHARE:
            self._reported_at = now
            told = await self._report(quiet)
            await self._balance(frontier, told)
        await self._let_go(frontier, learned)

    async def _report(self, quiet: bool) -> FleetStatus:
        self._activity += not quiet
        self._busy = False
        taken, self._taken = self._taken, []
        left, self._left = self._left, []
        info = orjson.dumps(
            {"partitions": len(self._since), "quiet": quiet, "life": self._life, **self._counts}
        ).decode()
        report = Report(quiet, self._activity, info, taken, left)
        try:
            told = await asyncio.to_thread(self.fleet.report, self._life, report, self.store.store.partitions)
        except StorageError:
            self._taken, self._left = taken + self._taken, left + self._left
            raise
        if told is None:
            raise LeaseLost(f"another process goes by the name of worker {self.fleet.worker!r}")
        self.workers = told.workers
        self._compare_clocks(told.now)
        same = self._agreed[1] + 1 if told.all_quiet and told.activity == self._agreed[0] else 0
        self._agreed = (told.activity, same)
        self.done = told.done
        if (
            told.all_quiet
            and same >= _SAME_REPORTS
            and await asyncio.to_thread(self.store.store.all_held, told.now)  # what was told of holders is hearsay
        ):
            await asyncio.to_thread(self.fleet.finish)
            self.done = True
        return told

    def _compare_clocks(self, store_now: float) -> None:
        apart = time.time() - store_now
        if abs(apart) > _CLOCK_SECONDS and not self._warned:
            self._warned = True
            logger.warning(
                "This machine's clock is %.1f s %s the store's; the store's counts.",
                abs(apart),
                "ahead of" if apart > 0 else "behind",
            )

    async def _balance(self, frontier: Frontier, told: FleetStatus) -> None:
        kept = [partition for partition in self._since if partition not in self._leaving]
        wanted = partitions_wanted(self.store.store.partitions, told.workers, told.rank)
        if len(kept) > wanted:
            self._leaving.update(self._rng.sample(kept, len(kept) - wanted))
        elif len(kept) < wanted:
            free = await asyncio.to_thread(self.fleet.free, self.store.store.partitions, told.now)
            free = [partition for partition in free if partition not in self._since]
            self._rng.shuffle(free)
            for partition in free[: min(wanted - len(kept), _TAKEN_AT_A_TIME)]:
                await self._take(frontier, partition)

    async def _take(self, frontier: Frontier, partition: int) -> None:
        began = since_boot()
        taken = await asyncio.to_thread(self.store.take, partition, self._lease_ms)
        if taken is None:
            return
        granted, hosts = taken
        self._busy = True
        self._valid[partition] = began + self._lease_seconds
        self._since[partition] = granted.unsure_until
        self._taken.append(partition)
        frontier.hosts.take_up(hosts)

    async def _let_go(self, frontier: Frontier, learned: Kept) -> None:
        if not self._leaving:
            return
        learned.forget(self.mine)
        unstored = [*frontier.let_go(self.mine), *learned.unstored()]
        staying = {self.store.store.partition(host) for host in unstored}
        going = self._leaving - staying
        if going:
            await asyncio.to_thread(self.store.sync)
            for partition in going:
                await asyncio.to_thread(self.store.give_back, partition)
                self._forget(partition)

    def _forget(self, partition: int) -> None:
        self._leaving.discard(partition)
        del self._since[partition]
        self._answered.pop(partition, None)
        self._valid.pop(partition, None)
        self._left.append(partition)
        self._busy = True

    # --- the end --------------------------------------------------------------------------------

    def deliver_now(self, frontier: Frontier, now: float) -> None:
        """As ``deliver``, before the last commit: what was found for others and for us. Blocking."""
        found, self.outbox = self.outbox, []
        frontier.add([item for item in found if self.mine(item.address.host)], now)
        for item in frontier.allowed([item for item in found if not self.mine(item.address.host)], now):
            self.store.outbox.post(self.store.store.partition(item.address.host), pack(Links([item])))

    def close(self) -> None:
        """Give everything back in good order; the last commit is made. Blocking."""
        self.store.store.release(list(self._since))
        self.fleet.leave()


def _slices(found: Sequence[DiscoveredUrl]) -> Iterator[Sequence[DiscoveredUrl]]:
    return (found[first : first + _URLS_A_TURN] for first in range(0, len(found), _URLS_A_TURN))


def _pages_of(message: Message) -> Iterable[tuple[bytes, str]]:
    if isinstance(message, Links):
        return _keys_of(message.found)
    return []


def _keys_of(found: Iterable[DiscoveredUrl]) -> Iterator[tuple[bytes, str]]:
    """Under which the frontier looks for what was found, and the host of each."""
    for item in found:
        yield item.address.key, item.address.host
        if item.flags & FLAG_STRANGER:
            yield item.queue_key, item.address.host
