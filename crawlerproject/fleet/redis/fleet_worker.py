"""One of several workers on one crawl: joins it, renews its leases, reports, takes partitions and gives them back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from crawlerproject.config.crawl_kind import answer_seconds, worker_name
from crawlerproject.errors import LeaseLost, NameTaken, OperatorError, StorageError, StoreForgot, TargetError
from crawlerproject.fleet.link_exchange import FleetExchange
from crawlerproject.fleet.questions import asked
from crawlerproject.fleet.redis.leased_partitions import LEAST_DOUBT_SECONDS, LeasedPartitions
from crawlerproject.fleet.redis.revisit_round import RevisitRound
from crawlerproject.fleet.redis.store_clock import StoreClock
from crawlerproject.frontier.assembly import pause_stretch
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.learned.models import CrawlModels
from crawlerproject.frontier.learned.revisits import RevisitPolicy
from crawlerproject.rules.archive.upload_rules import retry_seconds
from crawlerproject.rules.fleet_shares import QuotaRequest, Share, partitions_wanted
from crawlerproject.rules.politeness.address_turns import Claim
from crawlerproject.runtime.clock import CRAWL, since_boot
from crawlerproject.stores.atomic_files import SECRET_FILE, replace_file
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import NearText, RoundOptions, Text
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.copy_place import CopyDamaged, copies_url
from crawlerproject.stores.redis.forgetting import Answered, recognise
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.membership import FleetStatus, RedisFleet, RedisQuotas, Report, Round, Rounds
from crawlerproject.stores.redis.rejoining import Rejoining
from crawlerproject.stores.redis.texts import MOST_TEXTS, RedisTexts
from crawlerproject.stores.rocks.frontier_folder import open_journaled
from crawlerproject.stores.rocks.journaled_store import JournaledStore

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


logger = logging.getLogger(__name__)

# A lease is renewed when a third of it is over: two renewals may fail. So it is when half of the time is over in which
# requests may begin: a worker whose leases end too soon for an answer asks nothing.
_RENEW_SHARE, _BEGIN_SHARE = 3, 2
# What a request may take beyond its timeout, as the loop's lag.
_HOLD_MARGIN_SECONDS = 5.0
# Reports count for the time of a lease: ten of them in that time.
_REPORT_SHARE = 10
# Messages of one partition that are read before one commit.
_MESSAGES = 250
# Partitions that are taken with one question, as far as there is time: commits go on in between.
_TAKEN_AT_A_TIME = 256
# Reports that must agree that nothing is left to do; in between each worker has looked at its messages.
_SAME_REPORTS = 3
MOST_APART_SECONDS = 0.5
"""So far a worker's clock may be from the store's (FLEET_MAX_DRIFT_SECONDS): half a second, which is approached in
seventeen minutes, is nothing that a clock which follows a time server is ever away (ours)."""
_INCARNATIONS = ("life", "before")
_NOTHING = (("crawl_id", ""), ("serial", 0), ("reports", 0))
# Hosts of a partition that are listed in one go: some 60 ms.
_ARRIVE_AT_A_TIME = 1000
# Between two copies of partitions.
_COPY_SECONDS = 1.0
# Of so long, at least.
_RATE_SECONDS = 5.0


def join(settings: BaseSettings, folder: CrawlDir, *, accept_loss: bool) -> Fleet:
    """Connect; ``Fleet.begin`` makes it a member. Raises OperatorError.

    ``accept_loss``: Redis may know less than it has answered for to this worker, which is StoreForgot otherwise.
    """
    crawl, worker = str(settings["FLEET_CRAWL"]), worker_name(settings)
    lease_seconds = settings.getfloat("FLEET_LEASE_SECONDS")
    link = RedisLink(settings["STATE_URL"])
    identity = Identity(folder.worker, crawl, worker)
    if folder.has_archive() and (before_name := identity.former_worker):  # Redis has its facts by that name
        raise OperatorError(
            f"{folder} is the folder of worker {before_name!r}: give it that name again (FLEET_WORKER), or start "
            f"{worker!r} in a folder of its own; what {before_name!r} has archived stays where it is."
        )
    try:
        # Before anything is written: a start must not make a crawl of this name where its own has been lost.
        answered = recognise(link, crawl, worker, identity.answered(), accept=accept_loss)
    except StoreForgot:
        raise
    except StorageError as error:
        raise OperatorError(f"The crawl {crawl!r} cannot be opened: {error}.") from error
    partitions = settings.getint("FLEET_PARTITIONS")
    before = identity.answered()
    rejoins = before.began and before.crawl_id not in ("", answered.crawl_id)
    place_url = copies_url(str(settings["ARCHIVE_URL"]))
    journals = PartitionJournals(link, crawl, worker, partitions, answered.crawl_id, place_url=place_url)
    store = open_journaled(folder, journals, rejoins=rejoins)
    if rejoins:
        Rejoining(link, crawl, worker).begin(identity.others(), store.marks())
    rest_seconds = pause_stretch(settings) * settings.getfloat("PACE_IP_SECONDS")
    fleet = RedisFleet(link, crawl, worker, int(lease_seconds * 1000), answered.crawl_id)
    times = FleetTimes(
        lease_seconds,
        answer_seconds(settings),
        settings.getfloat("FLEET_MAX_DRIFT_SECONDS", MOST_APART_SECONDS),
        rest_seconds and rest_seconds + LEAST_DOUBT_SECONDS,  # another worker's clock may be a little behind
    )
    most_texts = settings.getint("NEAR_DUPLICATE_MAX_PAGES", MOST_TEXTS)
    return Fleet(store, fleet, identity, times, random.Random(), most_texts)


class FleetTimes(NamedTuple):
    """What a worker's promises rest on."""

    lease_seconds: float
    answer_seconds: float  # no request takes longer, so none is begun when its lease could end before it
    most_apart_seconds: float  # so far our clock may be from the store's
    ip_rest_seconds: float = 0.0  # between two requests to an IP address

    @property
    def renew_seconds(self) -> float:
        """Between two renewals."""
        begin_seconds = max(0.0, self.lease_seconds - self.answer_seconds)
        return min(self.lease_seconds / _RENEW_SHARE, begin_seconds / _BEGIN_SHARE)


class RedisCoordinator:
    """What Redis answers one worker; that one's quotas are known by its incarnation."""

    def __init__(self, fleet: RedisFleet, times: FleetTimes, most_texts: int = MOST_TEXTS) -> None:
        self.quotas = RedisQuotas(fleet.link, fleet.crawl, fleet.worker, fleet.lease_ms)
        self._fleet, self._texts = fleet, RedisTexts(fleet.link, fleet.crawl, most_texts)
        self._rest_ms = int(times.ip_rest_seconds * 1000)
        # What a worker that dies has reserved falls free by then: its last request has ended, and the address rested.
        self._hold_ms = int((times.answer_seconds + _HOLD_MARGIN_SECONDS) * 1000) + self._rest_ms

    async def reserve(self, wanted: Sequence[Claim], rested: Sequence[Claim]) -> list[float]:
        """As any ``Coordinator``."""
        return await asked(self._fleet.addresses, wanted, rested, self._hold_ms, self._rest_ms)

    async def shares(self, claims: Sequence[QuotaRequest]) -> list[Share]:
        """As any ``Coordinator``."""
        return await asked(self.quotas.exchange, claims)

    async def texts(self, added: Sequence[Text], values: Sequence[int], bits: int) -> list[list[NearText]]:
        """As any ``Coordinator``."""
        return await asked(self._texts.exchange, added, values, bits)


class Identity:
    """One file; who has it may take the worker's name over. Raises StorageError when it cannot be written."""

    def __init__(self, path: Path, crawl: str, worker: str) -> None:
        self._path = path
        self._names = {"worker": worker, "crawl": crawl}
        self._facts: dict[str, Any] = orjson.loads(path.read_bytes()) if path.exists() else {}
        named = str(self._facts.get("worker", worker))
        self.former_worker = named if named != worker else ""  # whose folder this was
        if any(self._facts.get(name) != value for name, value in self._names.items()):  # what another crawl's answered
            self._facts = {name: value for name, value in self._facts.items() if name in _INCARNATIONS}

    def incarnations(self) -> list[str]:
        """Those that Redis may know, the latest first."""
        return [self._facts["life"], *self._facts.get("before", ())] if "life" in self._facts else []

    def remember(self, incarnations: list[str]) -> None:
        """These and no others, the latest first."""
        self._write(life=(incarnations or [""])[0], before=incarnations[1:])

    def others(self) -> list[str]:
        """The workers that were at work beside this one."""
        return [str(name) for name in self._facts.get("others", ())]

    def remember_others(self, names: list[str]) -> None:
        """From now on these are."""
        if names != self.others():
            self._write(others=names)

    def answered(self) -> Answered:
        """What Redis has answered for to this worker of this crawl."""
        began = "worker" in self._facts and bool(self._facts.get("life"))
        crawl_id, serial, reports = (self._facts.get(name, none) for name, none in _NOTHING)
        return Answered(crawl_id, serial, reports, began)

    def answered_for(self, answered: Answered) -> None:
        """From now on Redis must know as much."""
        self._write(crawl_id=answered.crawl_id, serial=answered.serial, reports=answered.reports)

    def _write(self, **facts: Any) -> None:
        self._facts = {**self._facts, **self._names, **facts}
        replace_file(self._path, orjson.dumps(self._facts), SECRET_FILE)


class PageRate:
    """``now``: seconds of a clock that never goes back."""

    def __init__(self, now: float) -> None:
        self._pages, self._at = 0, now
        self._pages_per_second = 0.0

    def of(self, pages: int, now: float) -> float:
        """Since some seconds ago, when ``pages`` have ended since the start; less than before after a new start."""
        if now - self._at >= _RATE_SECONDS:
            self._pages_per_second = max(0.0, (pages - self._pages) / (now - self._at))
            self._pages, self._at = pages, now
        return round(self._pages_per_second, 2)


class Fleet:
    """A worker's membership. Everything but ``begin`` and ``close`` is to be called from one event loop."""

    def __init__(
        self,
        store: JournaledStore,
        fleet: RedisFleet,
        identity: Identity,
        times: FleetTimes,
        rng: random.Random,
        most_texts: int = MOST_TEXTS,
    ) -> None:
        """``most_texts``: as for ``RedisTexts``."""
        self.store = store
        self.coordinator = RedisCoordinator(fleet, times, most_texts)
        self.fleet = fleet
        self.leases = store.journals
        self.held = LeasedPartitions(self.leases.partition, times.answer_seconds)
        self.exchange = FleetExchange(
            self.held, store.messages, lambda ours: asked(store.unread, ours, _MESSAGES), store.read
        )
        self.done = False  # nothing is left to do in the whole crawl
        self.running_seconds = 0.0  # of the fleet, when this worker joined
        self._identity = identity
        self._answered = Answered(fleet.crawl_id)  # by Redis, as the worker's folder remembers it
        self._reports = 0  # of all workers, when this one reported last
        self._times = times
        self._clock = StoreClock(
            fleet.epoch,
            CRAWL,
            most_apart_seconds=times.most_apart_seconds,
            patience_seconds=times.lease_seconds,
        )
        self._rng = rng
        self._rounds = Rounds(fleet.link, fleet.crawl, fleet.lease_ms)
        self._taken: list[int] = []  # since the last report
        self._left: list[int] = []
        self._arriving: list[str] = []  # hosts of partitions that were taken, which are on no list yet
        self._incarnation = ""
        self._activity = 0
        self._busy = True  # a partition came or went since the last report
        self._wants = False  # more partitions: the hosts of one that is given back wait for its next holder
        self._renewed_at = self._reported_at = 0.0
        self._agreed = (0, 0)  # sum of activity, reports in a row that agreed on it
        self._rate = PageRate(since_boot())
        self._copying: asyncio.Task[None] | None = None
        self._known_workers = 0  # that were alive when their names were last remembered
        self._rejoining: Rejoining | None = None  # while partitions wait for workers that have their rows
        self._waited_for: list[str] = []
        self._unread: dict[int, tuple[int, float]] = {}  # by partition: failures in a row, and not again before

    def begin(self) -> float:
        """Join; the store's time when ``since_boot()`` was 0. Raises OperatorError: the name is taken. Blocking."""
        base = self.leases
        before, self._incarnation = self._identity.incarnations(), uuid.uuid4().hex
        self.running_seconds = self.fleet.running_seconds()
        # Before Redis knows of it: killed in between, the next start must not find its name taken by itself.
        self._identity.remember([self._incarnation, *before])
        try:
            self._reports = self.fleet.begin(self._incarnation, before, base.partitions).reports
        except NameTaken:
            self._identity.remember(before)
            raise
        self._identity.remember([self._incarnation])
        base.begin(self._incarnation, latest=self.store.rejoins)
        self.coordinator.quotas.incarnation = self._incarnation
        if isinstance(self.store, JournaledStore):
            self.store.begin()  # what a former process of this name has given to Redis until now
        rejoining = Rejoining(self.fleet.link, self.fleet.crawl, self.fleet.worker)
        if rejoining.back():
            self._rejoining = rejoining
        self._remember_answered()
        self._renewed_at = since_boot()
        epoch = self._clock.begin()
        # Of two workers one may be as far ahead of the store as the other is behind it.
        read = max(LEAST_DOUBT_SECONDS, 2 * epoch.doubt_seconds)
        self.held.doubt_seconds = read + 2 * self._times.most_apart_seconds
        return epoch.seconds

    def _remember_answered(self) -> None:
        """What the last commit and the last report have made Redis answer for. Blocking; StorageError."""
        answered = Answered(self.fleet.crawl_id, self.leases.serial, self._reports, began=True)
        if answered != self._answered:
            self._identity.answered_for(answered)
            self._answered = answered

    def begin_round(self, wanted: RoundOptions, now: float, before: int) -> Round:
        """Take part in what the workers do together; see ``Rounds.begin``. Blocking; raises OperatorError."""
        try:
            return self._rounds.begin(wanted, now, before)
        except OperatorError:
            self.close()
            raise

    def revisits(self, current: Round, policy: RevisitPolicy) -> RevisitRound:
        """The worker's part in a recrawl; the budget of ``policy`` does not count, that of the round does."""
        return RevisitRound(self._rounds, current, self.store, self.held, policy)

    async def turn(
        self, frontier: Frontier, models: CrawlModels, *, idle: bool, counts: Mapping[str, int], paused: str
    ) -> None:
        """Renew, report, give and take partitions. Raises LeaseLost when anything here is another's by now,
        StoreForgot when Redis does not know it any more.

        For ``scrapy status``: ``counts`` of pages, bytes and errors since the start; ``paused``: why nothing is asked.
        """
        await asyncio.to_thread(self._remember_answered)
        if self._clock.due:
            await asyncio.to_thread(self._clock.check)
        now = since_boot()
        if now - self._renewed_at >= self._times.renew_seconds:
            lost = await asyncio.to_thread(self.leases.renew, self.fleet.lease_ms)
            if lost:
                raise LeaseLost(f"partition {lost[0]} was taken by another worker")
            self._renewed_at = now
            self.held.renewed(now + self._times.lease_seconds)
        self._arrive(frontier)
        moved = self._busy or self.exchange.moved or self.held.sent
        waits = self.held.leaving or self._arriving or not (self.exchange.empty and self.store.quiet)
        quiet = idle and not (moved or waits)
        if quiet or self._wants or now - self._reported_at >= self._times.lease_seconds / _REPORT_SHARE:
            self._reported_at = now
            status = await self._report(quiet, counts, paused)
            if not self.done:  # what workers that end leave is for the next start: hosts left alone would be due again
                await self._balance(frontier, status)
        await self._let_go(frontier, models)
        if self._copying is None or self._copying.done():
            self._copying = asyncio.create_task(self._copy())

    async def _copy(self) -> None:
        """What another worker would read to take a partition over stays short."""
        await asyncio.sleep(_COPY_SECONDS)
        with contextlib.suppress(StorageError, LeaseLost):  # the next commit meets it too
            while await asyncio.to_thread(self.store.copy_some):
                pass

    async def _report(self, quiet: bool, counts: Mapping[str, int], paused: str) -> FleetStatus:
        self._activity += not quiet
        self._busy = self.exchange.moved = self.held.sent = False
        taken, self._taken = self._taken, []
        left, self._left = self._left, []
        own = {
            "partitions": len(self.held.all()),
            "quiet": quiet,
            "life": self._incarnation,
            "machine": socket.gethostname(),
            "paused": paused,
            "pages_per_second": self._rate.of(counts.get("pages", 0), since_boot()),
            **counts,
        }
        asked = CRAWL.now()
        holds = self._holds() if quiet else (taken, left)
        report = Report(quiet, self._activity, orjson.dumps(own).decode(), *holds)
        try:
            status = await asyncio.to_thread(self.fleet.report, self._incarnation, report, self.leases.partitions)
        except StorageError:
            self._taken, self._left = taken + self._taken, left + self._left
            raise
        if status is None:
            raise LeaseLost(f"another process goes by the name of worker {self.fleet.worker!r}")
        self._reports = status.reports
        self._clock.reported(status.now, asked, CRAWL.now())
        same = self._agreed[1] + 1 if status.all_quiet and status.activity == self._agreed[0] else 0
        self._agreed = (status.activity, same)
        self.done = status.done
        if (
            status.all_quiet
            and same >= _SAME_REPORTS
            # The reports are not authoritative: every lease is checked.
            and await asyncio.to_thread(self.leases.all_held, status.now)
        ):
            await asyncio.to_thread(self.fleet.finish)
            self.done = True
        return status

    def _holds(self) -> tuple[list[int], list[int]]:
        """All partitions that are held, and all that are not: what a quiet worker says.

        A server that took over may have forgotten earlier reports. A partition without a holder would keep the crawl
        from its end, and one that is said to have a holder would be taken by none.
        """
        partitions = range(self.leases.partitions)
        return self.held.all(), [partition for partition in partitions if partition not in self.held]

    async def _balance(self, frontier: Frontier, status: FleetStatus) -> None:
        if status.workers != self._known_workers:  # before what they are to hold is given to them
            names = await asyncio.to_thread(self.fleet.at_work)
            await asyncio.to_thread(self._identity.remember_others, names)
            self._known_workers = status.workers
            self.store.share_inboxes(status.workers)
        if self._rejoining is not None and await self._waits(frontier, self._rejoining):
            return
        partitions, staying = self.leases.partitions, self.held.staying()
        wanted = partitions_wanted(partitions, status.workers, status.rank)
        self._wants = len(staying) < wanted
        if len(staying) > wanted:
            self.held.leaving.update(self._rng.sample(staying, len(staying) - wanted))
        elif len(staying) < wanted:
            free = await asyncio.to_thread(self.fleet.free, partitions, status.now)
            free = [partition for partition in free if partition not in self.held]
            self._rng.shuffle(free)
            await self._take(frontier, free[: min(wanted - len(staying), _TAKEN_AT_A_TIME)])

    async def _waits(self, frontier: Frontier, rejoining: Rejoining) -> bool:
        """Take the partitions of which this worker has the latest rows, once all are back; whether there are others."""
        pending = await asyncio.to_thread(rejoining.look)
        if pending is None:
            self._rejoining = None
            return False
        self._busy = True
        if pending.missing != self._waited_for:
            self._waited_for = pending.missing
            if pending.missing:
                logger.warning(
                    "Redis has lost what it knew of this crawl. Its workers go on once %s, too, has been started with "
                    "-a accept=store; one that never comes back is given up by scrapy recover --lost NAME.",
                    ", ".join(pending.missing),
                )
        if pending.missing:
            return True
        own = [each for each, worker in pending.marks.items() if worker == self.fleet.worker]
        await self._take(frontier, [each for each in own if each not in self.held], latest=True)
        await asyncio.to_thread(rejoining.settled, [each for each in own if each in self.held])
        return True

    async def _take(self, frontier: Frontier, partitions: Sequence[int], *, latest: bool = False) -> None:
        began, lease_seconds = since_boot(), self._times.lease_seconds
        most_seconds = lease_seconds / _REPORT_SHARE  # the rows of some are many
        take = partial(self.store.take_some, latest=latest, most_seconds=most_seconds)
        wanted = [each for each in partitions if began >= self._unread.get(each, (0, 0.0))[1]]
        for partition, taken in (await asyncio.to_thread(take, wanted, self.fleet.lease_ms)).items():
            if isinstance(taken, TargetError):
                self._cannot_read(partition, taken)
                continue
            granted, hosts = taken
            self._unread.pop(partition, None)
            # What was asked before the loss may have left no trace.
            unsure_until = CRAWL.now() if latest else granted.unsure_until
            self._busy = True
            self.held.take(partition, began + lease_seconds, unsure_until)
            self._taken.append(partition)
            self.store.came(hosts)
            self._arriving += hosts
        self._arrive(frontier)

    def _cannot_read(self, partition: int, error: TargetError) -> None:
        """The copy of a partition cannot be read: it is tried less and less often, by any worker."""
        failures, _ = self._unread.get(partition, (0, 0.0))
        if not failures and (isinstance(error, CopyDamaged) or not self._unread):
            logger.warning("Partition %d cannot be taken: %s", partition, error)
        self._unread[partition] = failures + 1, since_boot() + retry_seconds(failures + 1, self._rng)

    def _arrive(self, frontier: Frontier) -> None:
        """List hosts of partitions that were taken; those that found no room on the disk, another time."""
        while self._arriving:
            some = self._arriving[-_ARRIVE_AT_A_TIME:]
            frontier.hosts.on_disk.arrive([host for host in some if self.held.mine(host)], CRAWL.now())
            del self._arriving[-len(some) :]

    async def _let_go(self, frontier: Frontier, models: CrawlModels) -> None:
        if not self.held.leaving:
            return
        models.forget(self.held.mine)
        unstored = [*frontier.let_go(self.held.mine), *models.unstored()]
        staying = {self.leases.partition(host) for host in unstored}
        going = self.held.leaving - staying
        # None of their hosts is in memory now, and none comes back into it.
        for partition in going:
            frontier.hosts.on_disk.depart(self.store.hosts_in(partition))
        if going:
            await asyncio.to_thread(self.store.sync)
            await asyncio.to_thread(self.store.give_back, *going)
            for partition in going:
                self.held.drop(partition)
                self.exchange.forget(partition)
                self._left.append(partition)
                self._busy = True

    def reach(self) -> None:
        """Find out whether Redis answers, and whether its clock is ours. Blocking; StorageError."""
        if not self._clock.trusted:
            self._clock.check()
        self.store.reach()

    def close(self) -> None:
        """Give everything back in good order; the last commit is made. Blocking."""
        if self._copying is not None:
            self._copying.cancel()
        self.store.release(self.held.all())
        self.fleet.leave()
