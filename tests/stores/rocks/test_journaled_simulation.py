"""Workers fetch, hand partitions over, lose answers and leases, and die anywhere: nothing is lost or done twice.

In one of the crawls copies go to a folder, which fails and in which they die as well.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from math import inf
from pathlib import Path
from typing import Any

import pytest
from xxhash import xxh3_64_digest

from crawlerproject.errors import LeaseLost, StorageError, StoreForgot, TargetError
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.stores.protocols import Box, Changes, QueuedPage
from crawlerproject.stores.redis import copies, copy_place
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.copies import copy_key
from crawlerproject.stores.redis.copy_place import placed
from crawlerproject.stores.redis.keys import partition_keys
from crawlerproject.stores.rocks import giving_store, journaled_store, partition_rows
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from crawlerproject.stores.rocks.rocks_tables import RawBatch, Tables
from tests.stores.journaled_crawls import (
    LEASE_MS,
    PARTITIONS,
    decided,
    end_lease,
    numbers,
    opened,
    rows_here,
    rows_in_redis,
)
from tests.stores.redis_servers import RedisServer, redis_cluster, redis_server

NAMES = ("one", "two", "three")
HOSTS = [f"h{number}.test" for number in range(9)]
PAGES_A_HOST = 12
STEPS = 220
ARCHIVE = "warc"
# Pipelines of which a part never comes to Redis.
_CUT = 0.5
_AWAY_TURNS = 5


class Killed(BaseException):
    """A process dies here."""


def key(host: str, number: int) -> bytes:
    """As rules/url/urls.py makes them."""
    return xxh3_64_digest(host.encode()) + number.to_bytes(16, "big")


def page(host: str, number: int) -> QueuedPage:
    """Of this web."""
    return QueuedPage(host, key(host, number), f"https://{host}/{number}", 1, number, 1, "L", "")


def links(host: str, number: int) -> list[QueuedPage]:
    """What a page names."""
    chance = random.Random(f"{host}/{number}")
    return [page(chance.choice(HOSTS), chance.randrange(PAGES_A_HOST)) for _ in range(3)]


class Worker:
    """One worker: its folder and its archive stay from process to process."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.machine, self.name = machine, name
        self.archive: list[bytes] = []  # keys of pages, in the order of their coming
        self.store: JournaledStore | None = None

    def start(self) -> None:
        """A process begins; its archive is cut to what counts."""
        machine = self.machine
        self.store = opened(machine.folder, machine.url, self.name, machine.crawl, place_url=machine.place_url)
        del self.archive[int(self.store.fact(ARCHIVE) or 0) :]

    def end(self) -> None:
        """The process is gone, whatever it was about to do."""
        if self.store is not None:
            self.store.close()
            self.store = None

    @property
    def held(self) -> list[int]:
        """The partitions that it may change."""
        assert self.store is not None
        return sorted(self.store._numbers)

    def queue(self, found: list[QueuedPage], changes: Changes) -> None:
        """Rows for own hosts, messages for others."""
        assert self.store is not None
        for row in {row.key: row for row in found}.values():
            number = partition_of(row.host, PARTITIONS)
            if number not in self.held:
                changes.messages.append((number, row.url.encode()))
            elif not self.store.known([row.key])[0]:
                changes.queued.append(row)

    def fetch(self) -> None:
        """The first page of some host: archived first, then decided, with what it names."""
        assert self.store is not None
        own = [host for host in HOSTS if partition_of(host, PARTITIONS) in self.held]
        for host in self.machine.chance.sample(own, len(own)):
            if rows := self.store.head(host, 1):
                [row] = rows
                self.archive.append(row.key)
                changes = Changes(removed=[row], pages=[(row.key, decided(host, row.arrival))])
                changes.facts.append((ARCHIVE, b"%d" % len(self.archive)))
                changes.hosts.append((host, b"state %d" % row.arrival))
                self.queue(links(host, row.arrival), changes)
                self.store.apply(changes)
                return

    def read(self) -> None:
        """Some of what others wrote."""
        assert self.store is not None
        for partition, inbox in self.store.unread(self.held, 3).items():
            changes, done = Changes(), dict[Box, int]()
            for outbox, number, packed, _ in inbox.messages:
                box = Box(partition, outbox)
                if number > (done.get(box) or self.store.messages.read_up_to(box)):
                    host, _, path = packed.decode().removeprefix("https://").partition("/")
                    self.queue([page(host, int(path))], changes)
                    done[box] = number
            changes.queued = list({row.key: row for row in changes.queued}.values())
            changes.read += done.items()
            self.store.apply(changes)
            self.store.read(partition, inbox)

    def take(self) -> None:
        """Those of some partitions that are free, as far as there is time."""
        assert self.store is not None
        others, chance = [number for number in range(PARTITIONS) if number not in self.held], self.machine.chance
        some = chance.sample(others, min(len(others), chance.choice((1, 1, 1, 3))))
        for taken in self.store.take_some(some, LEASE_MS, most_seconds=chance.choice((0.0, inf))).values():
            if isinstance(taken, TargetError):
                self.machine.happened["unread"] += 1
            else:
                self.store.came(taken[1])

    def give(self) -> None:
        """One of its partitions back, or two."""
        assert self.store is not None
        held, chance = self.held, self.machine.chance
        self.store.give_back(*chance.sample(held, min(len(held), chance.choice((1, 2)))))

    def sync(self) -> None:
        """As each commit does."""
        assert self.store is not None
        self.store.sync()

    def copy(self) -> None:
        """As between commits."""
        assert self.store is not None
        self.store._copied_next = 0.0  # the place is asked again however often it has refused
        while self.store.copy_some():
            self.machine.happened["extended"] += 1
        self.machine.happened["refused"] += bool(self.store._refused)


class Machine:
    """All workers and what may happen to them."""

    def __init__(self, seed: int, url: str, folder: Path, *, has_place: bool = False) -> None:
        self.chance, self.url, self.folder = random.Random(seed), url, folder / str(seed)
        self.place = self.folder / "place"
        self.place_url = self.place.as_uri() if has_place else ""
        self.crawl = f"simulated-{next(numbers)}"
        self.workers = [Worker(self, name) for name in NAMES]
        self.happened: Counter[str] = Counter()
        self.trouble, self.is_away = 0.0, False
        for worker in self.workers:
            worker.start()

    def seed(self) -> None:
        """The crawl begins with one page of a host."""
        [first, *_] = self.workers
        assert first.store is not None
        for number in range(PARTITIONS):
            assert first.store.take(number, LEASE_MS)
        first.store.apply(Changes(queued=[page(HOSTS[0], 0)]))
        first.store.sync()

    def run(self, steps: int) -> None:
        """So many things happen."""
        acts = {"fetch": 12, "read": 5, "sync": 5, "take": 5, "give": 1, "copy": 8, "lose_lease": 0.7, "die": 0.7}
        acts["lose_disk"] = 0.3
        for _ in range(steps):
            [act] = self.chance.choices(list(acts), list(acts.values()))
            self.step(self.chance.choice(self.workers), act)

    def step(self, worker: Worker, act: str) -> None:
        """One act of a worker, which may fail or die in it."""
        self.happened[act] += 1
        what = ""
        try:
            if act in ("lose_lease", "die", "lose_disk"):
                getattr(self, act)(worker)
            else:
                getattr(worker, act)()
        except StoreForgot:
            raise
        except LeaseLost:
            what = "lost"
        except StorageError:
            what = "failed"
        except Killed:
            what = "killed"
        self.happened[what] += 1
        if what in ("lost", "killed"):  # the error is gone, and with it what it has kept open
            self.revive(worker)

    def revive(self, worker: Worker, *, keep: bool = True) -> None:
        """Another process of this worker; what it held is free after a while."""
        with self.quietly():
            worker.end()
            if not keep:
                shutil.rmtree(self.folder / worker.name)
            worker.start()

    def die(self, worker: Worker) -> None:
        """A kill between two acts; the leases of all that is dead end."""
        self.revive(worker)

    def lose_disk(self, worker: Worker) -> None:
        """All that is left of a worker is what others have, and its archive."""
        self.revive(worker, keep=False)

    def lose_lease(self, worker: Worker) -> None:
        """It was away for too long: any other may take what it holds."""
        assert worker.store is not None
        with self.quietly():
            for number in range(PARTITIONS):
                end_lease(worker.store, number)

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """Nothing breaks."""
        before, self.trouble = self.trouble, 0.0
        try:
            yield
        finally:
            self.trouble = before

    def fail(self, failure: type[StorageError] = StorageError, times: int = 1, *, surely: bool = False) -> None:
        """Something may break here."""
        if surely or (self.trouble and self.chance.random() < self.trouble * times):
            raise self.chance.choice((Killed, failure))("here")

    def come_to_rest(self) -> None:
        """Nothing breaks any more: all is fetched. The place of copies comes back last."""
        self.trouble, self.is_away = 0.0, True
        for worker in self.workers:
            self.revive(worker)
        self.lose_lease(self.workers[0])
        for turn in range(400):
            self.is_away = turn < _AWAY_TURNS
            for worker in self.workers:
                for act in ("take", "read", "fetch", "fetch", "fetch", "sync", "copy"):
                    self.step(worker, act)
            if self.at_rest():
                return
        raise AssertionError("something is left for ever")

    def at_rest(self) -> bool:
        """Whether all is held and nothing is left to do."""
        stores = [worker.store for worker in self.workers if worker.store is not None]
        held = [number for worker in self.workers for number in worker.held]
        return len(held) == PARTITIONS and all(
            store.quiet and not next(store.hosts_with_work(), "") and not store.unread(range(PARTITIONS), 1)
            for store in stores
        )

    def judge(self) -> None:
        """Each page that can be reached was archived once, and each partition is the same in Redis."""
        reached, todo = {page(HOSTS[0], 0).key}, [(HOSTS[0], 0)]
        while todo:
            for row in links(*todo.pop()):
                if row.key not in reached:
                    reached.add(row.key)
                    todo.append((row.host, row.arrival))
        archived = Counter(each for worker in self.workers for each in worker.archive)
        known: set[bytes] = set()
        for worker in self.workers:
            assert worker.store is not None
            for number in worker.held:
                here = rows_here(worker.store, number)
                assert here == rows_in_redis(worker.store, number)
                known |= {each for table, each in here if table == "pages"}
                assert not any(table == "queue" for table, _ in here)
        assert known == reached
        assert archived == dict.fromkeys(reached, 1)
        assert {file.as_uri() for file in self.place.rglob("*") if file.is_file()} <= set(self.objects())

    def objects(self) -> Iterator[str]:
        """Those of copies, and those that may go."""
        for worker in self.workers:
            assert worker.store is not None
            link = worker.store.journals.link
            for number in worker.held:
                keys = partition_keys(self.crawl, number)
                copy = int(link.call("HGET", [keys.lease], "copy") or 0)
                entries = link.call("LRANGE", [copy_key(self.crawl, number, copy)], 0, -1)
                yield from (found.address for entry in entries if (found := placed(entry)) is not None)
                yield from (address.decode() for address in link.call("ZRANGE", [keys.unnamed], 0, -1))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One server for the module."""
    with redis_server(tmp_path_factory.mktemp("redis"), "--appendfsync", "no") as started:
        yield started


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One of three servers in a cluster."""
    with redis_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started[0]


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> list[Machine]:
    """Those whose troubles come between any two calls of Redis and any two writes of a disk."""
    made: list[Machine] = []
    at_once, write = RedisLink._at_once, Tables.write

    def called(link: RedisLink, calls: list[Call], *, whole: bool = False) -> Any:
        made[-1].fail()
        if not whole and made[-1].trouble and len(calls) > 1 and made[-1].chance.random() < _CUT:
            at_once(link, calls[: made[-1].chance.randrange(1, len(calls))])  # the rest never comes to Redis
            made[-1].happened["cut"] += 1
            made[-1].fail(surely=True)
        answer = at_once(link, calls, whole=whole)
        made[-1].fail()
        return answer

    def written(tables: Tables, batch: RawBatch) -> None:
        made[-1].fail()
        write(tables, batch)
        made[-1].fail()

    def asked(do: Callable[[], Any]) -> Future[Any]:
        made[-1].fail(TargetError, 10)
        if made[-1].is_away:
            raise TargetError("away")
        future: Future[Any] = Future()
        future.set_result(do())
        made[-1].fail(TargetError, 10)
        return future

    for module in (copies, copy_place):
        monkeypatch.setattr(module, "begun", asked)
    monkeypatch.setattr(copies, "_KEPT_MS", 0)
    monkeypatch.setattr(copies, "_MOST_GROUPED", 1000)
    monkeypatch.setattr(RedisLink, "_at_once", called)
    monkeypatch.setattr(Tables, "write", written)
    monkeypatch.setattr(journaled_store, "_LEAST_COPIED_BYTES", 20)
    monkeypatch.setattr(giving_store, "_MOST_LETTERS", 1)
    monkeypatch.setattr(giving_store, "_LOG_BYTES", 1500)
    monkeypatch.setattr(giving_store, "_WINDOW_BYTES", 500)
    for module in (journaled_store, partition_rows):
        monkeypatch.setattr(module, "ROWS_AT_A_TIME", 10)
    return made


def simulate(made: list[Machine], seed: int, url: str, folder: Path, *, has_place: bool = False) -> Counter[str]:
    """A whole crawl; what happened in it."""
    machine = Machine.__new__(Machine)
    made.append(machine)
    machine.trouble = 0.0
    machine.__init__(seed, url, folder, has_place=has_place)  # type: ignore[misc]
    try:
        machine.seed()
        machine.trouble = 0.02
        machine.run(STEPS)
        machine.come_to_rest()
        machine.judge()
    finally:
        machine.trouble = 0.0
        for worker in machine.workers:
            worker.end()
    return machine.happened


def test_each_page_is_archived_once_whatever_dies(machines: list[Machine], server: RedisServer, tmp_path: Path) -> None:
    """On one server, with and without a place for copies; and all that may happen does."""
    happened = simulate(machines, 1, server.url, tmp_path) + simulate(machines, 7, server.url, tmp_path, has_place=True)
    assert min(happened[what] for what in ("refused", "extended")) > 0
    assert min(happened[what] for what in ("killed", "failed", "lost", "lose_disk", "die", "copy", "give", "cut")) > 0


def test_each_page_is_archived_once_in_a_cluster(machines: list[Machine], cluster: RedisServer, tmp_path: Path) -> None:
    """Where the partitions of one change are on several servers."""
    simulate(machines, 3, cluster.url, tmp_path)
