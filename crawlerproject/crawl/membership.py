"""What differs between a crawl of one process, a worker of a local fleet, and one of a fleet in Redis.

| | own_frontier | all_hosts |
|---|---|---|
| ``Solo`` | yes: RocksDB | yes |
| ``Local`` | yes: RocksDB | no: those of its partitions, by the plan of this run |
| ``Member`` | no: Redis has it, for all workers | no: those of the partitions that it holds now |

``own_frontier``: all that this process decides about is in a store of its own, which it may ask at any moment.
``all_hosts``: what it counts is the crawl's count, and it may do what there is once a crawl (hubs, sums).
``forsaken``: why this process must end although the crawl is not done; "" while it need not.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from crawlerproject.config.fleet import answer_seconds, local, shared, worker_name
from crawlerproject.crawl.start.bootstrap import revisit_policy
from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.fleet.ip_reservations import LOCAL_GAP_SECONDS, IpReservations, in_redis, of_supervisor
from crawlerproject.fleet.local.content import RUNNING, ask_shares, ask_texts
from crawlerproject.fleet.local.counts import Counts
from crawlerproject.fleet.local.supervisor_link import SupervisorLink
from crawlerproject.fleet.local.worker import LocalWorker
from crawlerproject.fleet.mail.mailbox import Mailbox
from crawlerproject.fleet.redis.held_partitions import LEAST_DOUBT_SECONDS
from crawlerproject.fleet.redis.join import join
from crawlerproject.fleet.shared_sums import SharedSums
from crawlerproject.fleet.text_questions import TextQuestions
from crawlerproject.frontier.admission import widened_by
from crawlerproject.frontier.assembly import pause_stretch
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.frontier.learned.hubs import HUBS_FACT
from crawlerproject.frontier.learned.subscriptions import WEBSUB_FACT
from crawlerproject.frontier.messages import Changed, HubMessage, SeedsMoved, pack, unpack
from crawlerproject.frontier.ownership import HostOwnership, unsure_until
from crawlerproject.rules.duplicates.permuted_tables import MAX_BITS
from crawlerproject.rules.url.partition_shares import partitions_wanted
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.fleet_plan import read_plan
from crawlerproject.stores.protocols import FLAG_SEED, Changes
from crawlerproject.stores.redis.buffer.store import BufferedStore
from crawlerproject.stores.redis.rounds import A_CRAWL, Wanted
from crawlerproject.stores.redis.texts import RedisTexts
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT, open_frontier
from crawlerproject.stores.rocks.store import RocksStore

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.crawl.run import Run
    from crawlerproject.errors import FetchError
    from crawlerproject.fleet.redis.revisit_round import RevisitRound
    from crawlerproject.fleet.redis.worker import Fleet
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.learner import Kept
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.rules.url.urls import Address

logger = logging.getLogger(__name__)

Store = BufferedStore | RocksStore

# Messages about hubs that are read before one commit.
_HUB_MESSAGES = 50
# As many announcements as links are in one message.
_CHANGED_A_MESSAGE = 500
# What a request may take beyond its timeout, as the loop's lag.
_HOLD_MARGIN_SECONDS = 5.0


class ReservationEnds(Protocol):
    """Is called with the answer to each reservation."""

    def granted(self, lease: Lease, error: FetchError | None) -> None:
        """The address is reserved for the lease."""

    def refused(self, lease: Lease, wait_seconds: float) -> None:
        """Another worker has the address; try again after this time."""


class Solo:
    """The only process of its crawl, with its frontier on its own disk."""

    own_frontier, all_hosts = True, True
    forsaken = ""

    def __init__(self, store: RocksStore) -> None:
        self._rocks = store
        self.store: Store = store
        self.ownership: HostOwnership | None = None

    def stuck(self, frontier: Frontier, run: Run) -> None:
        """No commit could be made, so there was no ``turn``."""

    def take(self, found: Iterable[DiscoveredUrl], frontier: Frontier, now: float) -> int:
        """Queue what was found; how many were new. StorageError."""
        return frontier.add(found, now)

    def changed(self, pages: Iterable[tuple[Address, float]], frontier: Frontier, now: float) -> int:
        """Take word that known pages have changed; how many are believed. StorageError."""
        return frontier.changed(pages, now)

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Before a commit, what other workers wrote: nothing."""

    async def deliver(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """Within a commit, what was found for others: nothing, since ``take`` has queued it."""

    def deliver_now(self, frontier: Frontier, now: float) -> None:
        """As ``deliver``."""

    def settle(self) -> None:
        """After a commit, what was read is done with: nothing."""

    async def turn(self, frontier: Frontier, learned: Kept, run: Run, idle: Callable[[], bool]) -> bool:
        """After a commit, whether hosts may have come from other workers."""
        return False

    def mend(self) -> None:
        """Before ``reach``, in the loop's own thread: have the store take changes again. StorageError."""
        self._rocks.mend()

    def reach(self) -> None:
        """Find out whether the disk takes more. Blocking; StorageError."""
        self.store.sync()

    def finished(self, idle: Callable[[], bool]) -> bool:
        """Whether nothing is left to do in the whole crawl."""
        return idle()

    def may_ask(self, host: str) -> bool:
        """Whether an answer will surely come before another worker may ask the host."""
        return True

    def ask_until(self, host: str) -> float | None:
        """Until when (seconds since boot) an answer must be complete: no lease runs out."""
        return None

    def part_of(self, budget: int | None) -> int | None:
        """How many of the known pages that are visited again this process chooses: all."""
        return budget

    def reservations(self, run: Run, ends: ReservationEnds) -> IpReservations | None:
        """The workbench has the clocks of all addresses."""
        return None

    def hubs(self) -> Callable[[HubMessage], None] | None:
        """How to write to the worker that hubs reach; None: they reach this process."""
        return None

    def sums(self, run: Run) -> SharedSums | None:
        """What the crawl may spend this process may."""
        return None

    def texts(self, run: Run) -> TextQuestions | None:
        """The store has those of all hosts."""
        return None

    def close(self) -> None:
        """No other process waits for its hosts."""


class Member:
    """A worker of a fleet: a ``Fleet`` decides about the hosts of its partitions, in a frontier in Redis."""

    own_frontier, all_hosts = False, False
    forsaken = ""

    def __init__(self, fleet: Fleet, settings: BaseSettings, revisits: RevisitRound | None = None) -> None:
        """``fleet.begin`` has been called. ``revisits``: known pages are visited again."""
        self._settings = settings
        self.store: Store = fleet.store
        self.ownership: HostOwnership | None = fleet.held
        self._fleet = fleet
        self._sums: SharedSums | None = None
        self._revisits = revisits
        exchange, held = fleet.exchange, fleet.held
        self.deliver, self.deliver_now = exchange.deliver, exchange.deliver_now
        self.settle, self.reach, self.close = exchange.settle, fleet.reach, fleet.close
        self._listens = False  # hubs reach this worker
        self._heard = 0  # messages to the one that they reach, whose effects may not be committed yet
        self._moved = 0  # messages to all workers about seeds, those that are known here
        self.may_ask, self.ask_until = held.may_ask, held.ask_until

    def mend(self) -> None:
        """Redis mends itself."""

    def stuck(self, frontier: Frontier, run: Run) -> None:
        """The others see that its leases run out."""

    def take(self, found: Iterable[DiscoveredUrl], frontier: Frontier, now: float) -> int:
        """Keep what was found for the next commit, what is for this worker's own hosts as well."""
        self._fleet.exchange.outbox.extend(found)
        return 0

    def changed(self, pages: Iterable[tuple[Address, float]], frontier: Frontier, now: float) -> int:
        """As for ``Solo``; kept for the next commit, as what was found."""
        self._fleet.exchange.changed.extend(pages)
        return 0

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """What other workers wrote about hosts of this one, and about hubs to the one that these reach."""
        await self._hear_moved(frontier, clock())
        await self._fleet.exchange.read(frontier, clock)
        if self._listens and not self._heard:
            messages = await asyncio.to_thread(self._fleet.fleet.to_listener, _HUB_MESSAGES)
            for message in messages:
                frontier.read(unpack(message), clock())
            self._heard = len(messages)

    async def _hear_moved(self, frontier: Frontier, now: float) -> None:
        """Widen the scope as others have; tell them what has widened it here, also before a crash. StorageError."""
        fleet, hosts, moves = self._fleet.fleet, set[str](), set[tuple[str, str]]()
        first, said = not self._moved, await asyncio.to_thread(fleet.moved, self._moved)
        for message in map(unpack, said):
            frontier.read(message, now)
            if isinstance(message, SeedsMoved):
                hosts.update(message.hosts)
                moves.update(message.moves)
        self._moved += len(said)
        own = frontier.state.moved
        if first and (kept := widened_by(self.store)) is not None:
            own = [SeedsMoved(sorted({*kept.hosts} - hosts), [move for move in kept.moves if move not in moves])]
        if packed := [pack(each) for each in own if any(each)]:
            await asyncio.to_thread(fleet.say_moved, packed)
        frontier.state.moved = []

    def hubs(self) -> Callable[[HubMessage], None] | None:
        """As for ``Solo``. Blocking; StorageError."""
        fleet = self._fleet.fleet
        listener, before = fleet.listener()
        self._listens = listener == fleet.worker
        if not self._listens:
            logger.info("Hubs push to the worker %s, which does what they say for all workers.", listener)
            return self._fleet.held.write_to_listener
        if before and before != fleet.worker:
            self.store.apply(Changes(facts=fleet.facts_of(before, [WEBSUB_FACT, HUBS_FACT])))
        return None

    async def turn(self, frontier: Frontier, learned: Kept, run: Run, idle: Callable[[], bool]) -> bool:
        """As for ``Solo``; renew, report, give and take partitions. Raises LeaseLost."""
        fleet, done = self._fleet, run.tallies
        for how, count in fleet.store.links.filter.take_counts().items():
            run.stats.inc_value(f"links/{how}", count)
        fleet.counts = {"pages": done.pages, "bytes": done.bytes, "errors": done.errors}
        fleet.paused = run.halted
        choosing = self._revisits is not None and await self._choose(self._revisits, frontier, run)
        await fleet.turn(frontier, learned, idle=idle() and not choosing)
        if self._sums is not None:
            await self._sums.turn(idle=idle() and not choosing)
        if self._heard:
            await asyncio.to_thread(fleet.fleet.listener_read, self._heard)
            self._heard = 0
        return True

    async def _choose(self, revisits: RevisitRound, frontier: Frontier, run: Run) -> bool:
        """Queue known pages that are visited again; whether there may be more of them."""
        choosing, queued = revisits.busy, revisits.queued
        await revisits.turn(frontier, run.now)
        run.stats.inc_value("recrawl/queued", revisits.queued - queued)
        if choosing and not revisits.busy:
            logger.info("%d known pages are visited again", revisits.queued)
        return choosing

    def finished(self, idle: Callable[[], bool]) -> bool:
        """As for ``Solo``: all workers have agreed on it."""
        return self._fleet.done

    def part_of(self, budget: int | None) -> int | None:
        """The budget is the round's."""
        return budget

    def reservations(self, run: Run, ends: ReservationEnds) -> IpReservations | None:
        """With PACE_PER_IP no two workers send to an address at the same time."""
        settings = self._settings
        if not settings.getbool("PACE_PER_IP"):
            return None
        stretched_seconds = pause_stretch(settings) * settings.getfloat("PACE_IP_SECONDS")
        # Another worker's clock may be a little behind.
        rest_seconds = stretched_seconds and stretched_seconds + LEAST_DOUBT_SECONDS
        hold_seconds = answer_seconds(settings) + _HOLD_MARGIN_SECONDS
        return IpReservations(
            in_redis(self._fleet, hold_seconds=hold_seconds, rest_seconds=rest_seconds),
            worker=self._fleet.fleet.worker,
            rest_seconds=rest_seconds,
            granted=ends.granted,
            refused=ends.refused,
            failed=lambda error: run.pause(str(error)),
        )

    def sums(self, run: Run) -> SharedSums | None:
        """What the crawl may spend all workers share."""
        self._sums = SharedSums(self._fleet.share, run.pause)
        return self._sums

    def texts(self, run: Run) -> TextQuestions | None:
        """Texts of other workers' hosts are asked about, unless NEAR_DUPLICATE_MAX_PAGES is 0."""
        base = self._fleet.store.store
        most = self._settings.getint("NEAR_DUPLICATE_MAX_PAGES")
        if not most:
            return None
        texts = RedisTexts(base.link, base.crawl, most)
        return TextQuestions(
            self.store, lambda *asked: asyncio.to_thread(texts.exchange, *asked), MAX_BITS, run.stats.inc_value
        )


class LocalPlace(NamedTuple):
    """A worker's place in the plan."""

    rank: int  # how many workers come before it
    workers: int
    of_first: int  # a partition of the first of them
    of_others: tuple[int, ...] = ()  # one of each of the others


class Local:
    """A worker of a fleet on one machine: hosts by the plan, a frontier on its own disk, a supervisor."""

    own_frontier, all_hosts = True, False

    def __init__(
        self, worker: LocalWorker, store: RocksStore, mailbox: Mailbox, settings: BaseSettings, place: LocalPlace
    ) -> None:
        self._settings = settings
        self._place = place
        self._sums: SharedSums | None = None
        self._sharing: asyncio.Task[None] | None = None
        self._worker = worker
        self._mailbox = mailbox
        self._began = False
        self.store: Store = store
        self.ownership: HostOwnership | None = mailbox.hosts
        exchange = mailbox.exchange
        self.deliver, self.deliver_now, self.settle = exchange.deliver, exchange.deliver_now, exchange.settle
        self.mend, self.reach = store.mend, store.sync

    @property
    def forsaken(self) -> str:
        """Its supervisor has died, and with it the addresses that it reserves."""
        return self._worker.link.gone

    def take(self, found: Iterable[DiscoveredUrl], frontier: Frontier, now: float) -> int:
        """As for ``Solo`` what is its own; the rest goes to its workers with the next commit.

        But for the operator's seeds, which every worker is given.
        """
        mine = self._mailbox.hosts.mine
        kept = [item for item in found if item.hops or not item.flags & FLAG_SEED or mine(item.address.host)]
        return self._mailbox.exchange.take(kept, frontier, now)

    async def read(self, frontier: Frontier, clock: Callable[[], float]) -> None:
        """As for ``Solo``."""
        if not self._began:
            await self._mailbox.start()
            self._began = True
            if (before := widened_by(self.store)) is not None:  # what a crash may have kept from being sent
                self._say_moved([before])
        moved, frontier.state.moved = frontier.state.moved, []
        self._say_moved(moved)
        await self._mailbox.exchange.read(frontier, clock)

    def _say_moved(self, moved: Iterable[SeedsMoved]) -> None:
        for each in moved:
            for partition in self._place.of_others:
                self._mailbox.hosts.send_to(partition, each)

    async def turn(self, frontier: Frontier, learned: Kept, run: Run, idle: Callable[[], bool]) -> bool:
        """As for ``Solo``; what is durable now is sent, and the supervisor hears how it stands."""
        mailbox, exchange = self._mailbox, self._mailbox.exchange
        mailbox.synced()
        moved, exchange.moved = exchange.moved, False
        self._report(frontier, run, quiet=mailbox.quiet and not moved and idle())
        self._share(run, idle=idle())
        return True

    def _share(self, run: Run, *, idle: bool) -> None:
        """Say how much is spent, unless the answer to that before is still to come, as ``LocalWorker.report``."""
        if self._sums is not None:
            self._sums.durable()
            if self._sharing is None:
                self._sharing = asyncio.get_running_loop().create_task(self._exchange(self._sums, run, idle=idle))

    async def _exchange(self, sums: SharedSums, run: Run, *, idle: bool) -> None:
        try:
            if not run.has_joined:
                running_seconds = await self._worker.link.ask(RUNNING)
                run.joined(max(0.0, running_seconds - run.running_seconds))
            await sums.exchange(idle=idle)
        except StorageError:
            return  # the commit loop sees that the supervisor is gone
        finally:
            self._sharing = None

    def stuck(self, frontier: Frontier, run: Run) -> None:
        """Its supervisor says so."""
        self._report(frontier, run, quiet=False)

    def _report(self, frontier: Frontier, run: Run, *, quiet: bool) -> None:
        done, queued = run.tallies, max(0, frontier.hosts.waiting_urls)
        counts = Counts(done.pages, done.bytes, done.errors, queued, run.halted)
        self._worker.report(self._mailbox.unread(), counts, quiet=quiet)

    def finished(self, idle: Callable[[], bool]) -> bool:
        """As for ``Solo``: all workers have agreed on it."""
        return self._worker.done

    def may_ask(self, host: str) -> bool:
        """No other worker decides about the host in this run."""
        return True

    def ask_until(self, host: str) -> float | None:
        """As for ``Solo``."""
        return None

    def reservations(self, run: Run, ends: ReservationEnds) -> IpReservations | None:
        """As for ``Member``; while the supervisor is stopped nothing is granted."""
        settings = self._settings
        if not settings.getbool("PACE_PER_IP"):
            return None
        return IpReservations(
            of_supervisor(self._worker.link),
            gap_seconds=LOCAL_GAP_SECONDS,
            rest_seconds=settings.getfloat("PACE_IP_SECONDS"),
            granted=ends.granted,
            refused=ends.refused,
            failed=lambda error: None,  # the commit loop ends the crawl
        )

    def changed(self, pages: Iterable[tuple[Address, float]], frontier: Frontier, now: float) -> int:
        """As for ``Solo`` of its own pages; of others their workers hear with the next commit."""
        hosts = self._mailbox.hosts
        own: list[tuple[Address, float]] = []
        others: defaultdict[str, list[tuple[Address, float]]] = defaultdict(list)
        for page in pages:
            host = page[0].host
            (own if hosts.mine(host) else others[host]).append(page)
        for host, some in others.items():
            for first in range(0, len(some), _CHANGED_A_MESSAGE):
                hosts.send(host, Changed(some[first : first + _CHANGED_A_MESSAGE]))
        return frontier.changed(own, now)

    def part_of(self, budget: int | None) -> int | None:
        """An equal part for each worker."""
        place = self._place
        return None if budget is None else partitions_wanted(budget, place.workers, place.rank)

    def hubs(self) -> Callable[[HubMessage], None] | None:
        """As for ``Solo``: they reach the first worker of the plan."""
        if not self._place.rank:
            return None
        return partial(self._mailbox.hosts.send_to, self._place.of_first)

    def sums(self, run: Run) -> SharedSums | None:
        """As for ``Member``; the supervisor grants."""
        self._sums = SharedSums(partial(ask_shares, self._worker.link), lambda error: None)
        return self._sums

    def texts(self, run: Run) -> TextQuestions | None:
        """As for ``Member``; the supervisor has the texts of all."""
        return TextQuestions(self.store, partial(ask_texts, self._worker.link), MAX_BITS, run.stats.inc_value)

    def close(self) -> None:
        """Take and send nothing more, and let the supervisor know that this process has ended in good order."""
        if self._sharing is not None:
            self._sharing.cancel()
        self._mailbox.close()
        self._worker.close()


Membership = Solo | Local | Member
"""One process's place among those of its crawl."""


def membership_of(settings: BaseSettings, folder: CrawlDir, run: Run, wanted: Wanted = A_CRAWL) -> Membership:
    """Open the frontier's store, in a fleet as its member, whose clock ``run`` follows then. Raises OperatorError."""
    if local(settings):
        return _local(settings, folder, run)
    if not shared(settings):
        return Solo(open_frontier(folder))
    fleet = join(settings, folder)
    run.follow(fleet.begin())
    run.joined(fleet.running_seconds)
    current = fleet.begin_round(wanted, run.now(), run.round)
    run.round = current.number
    # The budget is the round's.
    revisits = fleet.revisits(current, revisit_policy(settings, None)) if wanted.recrawl else None
    return Member(fleet, settings, revisits)


def _local(settings: BaseSettings, folder: CrawlDir, run: Run) -> Local:
    crawl, name = CrawlDir(folder.parent), worker_name(settings)
    link = SupervisorLink(crawl.supervisor_socket, name)
    try:
        plan = read_plan(crawl)
        if plan is None or name not in plan.workers:
            raise OperatorError(f"{crawl.fleet_plan} has no {name}; the same scrapy fleet makes it again.")
        store = open_frontier(folder)
        try:
            unsure = unsure_until(store, run.now(), clean_start=store.fact(CLEAN_FACT) != b"0")
            of_first = min(plan.held(plan.workers[0]), default=0)
            held = (min(plan.held(other), default=None) for other in plan.workers if other != name)
            of_others = tuple(partition for partition in held if partition is not None)
            place = LocalPlace(plan.workers.index(name), len(plan.workers), of_first, of_others)
            return Local(LocalWorker(link), store, Mailbox(store, crawl, name, plan, unsure), settings, place)
        except BaseException:
            store.close()
            raise
    except BaseException:
        link.close()
        raise
