"""What differs between one process and a worker of a fleet while a crawl runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crawlerproject.crawl.roles import single_process
from crawlerproject.crawl.roles.local_role import LocalPlace, LocalWorker
from crawlerproject.crawl.roles.redis_role import RedisWorker
from crawlerproject.crawl.roles.single_process import SingleProcess, role_of
from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.fleet.local.fleet_tables import Counts
from crawlerproject.fleet.local.local_mail import LocalHosts
from crawlerproject.fleet.questions import IpReservations
from crawlerproject.fleet.redis import fleet_worker as joining
from crawlerproject.frontier.known_seeds import SCOPE_FACT
from crawlerproject.frontier.other_workers import ScopeWidened, pack_message, unpack_message
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import FleetPlan
from crawlerproject.stores.protocols import Changes, RoundOptions
from crawlerproject.stores.redis.membership import Round
from tests.crawl.sessions import HOST, Bench, settings_of

FOUND = [DiscoveredUrl(parse(f"{HOST}/{number}"), 1, "L", HOST, 10) for number in range(3)]


class Fleet:
    """As ``fleet/redis/fleet_worker.py``, with its answers in the test's hand."""

    def __init__(self) -> None:
        told = {"sure": 3, "asked": 1}
        links = SimpleNamespace(filter=SimpleNamespace(take_counts=lambda: told))
        self.store = SimpleNamespace(links=links, at_hand=lambda hosts: None)
        self.fleet = SimpleNamespace(worker="w1")
        self.exchange = SimpleNamespace()
        self.coordinator = SimpleNamespace(reserve=None)
        self.close = self.reach = lambda: None
        self.held = SimpleNamespace()
        self.counts: dict[str, int] = {}
        self.running_seconds = 60.0
        self.done = False
        self.turned: list[bool] = []

    def begin(self) -> float:
        """The store's clock."""
        return 5000.0

    def begin_round(self, wanted: RoundOptions, now: float, before: int) -> Round:
        """The first of the crawl."""
        return Round(before + 1, now, wanted.budget)

    async def turn(self, frontier: Any, learned: Any, *, idle: bool, counts: dict[str, int], paused: str) -> None:
        """Renew, report."""
        self.turned.append(idle)
        self.counts = counts


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session of one process."""
    return Bench(tmp_path)


def member(fleet: Fleet, **settings: Any) -> RedisWorker:
    """A worker."""
    given: Any = fleet
    return RedisWorker(given, settings_of(**settings))


def test_one_process_queues_what_it_finds(bench: Bench) -> None:
    """At once; all hosts are its own, and no lease of it runs out."""
    alone = bench.role

    assert alone.exchange.take(FOUND, bench.frontier, bench.now) == 3
    assert alone.ownership is None
    ownership = bench.frontier.state.ownership
    assert (ownership.sole, ownership.may_ask("any.test"), ownership.ask_until("any.test")) == (True, True, None)
    assert alone.reservations(bench.run, SimpleNamespace()) is None
    assert asyncio.run(alone.after_commit(bench.frontier, bench.session.models, bench.run, lambda: True)) is False


def test_one_process_has_finished_when_it_is_idle(bench: Bench) -> None:
    """Nobody else has work."""
    assert bench.role.finished(lambda: True)
    assert not bench.role.finished(lambda: False)


def test_whether_the_disk_takes_more(bench: Bench) -> None:
    """StorageError while it does not."""
    bench.role.check_store()
    bench.store.full = "no room"
    with pytest.raises(StorageError):
        bench.role.check_store()


def test_a_worker_has_finished_when_all_agree(bench: Bench) -> None:
    """However idle it is itself."""
    fleet = Fleet()
    worker = member(fleet)

    assert not worker.finished(lambda: True)
    fleet.done = True
    assert worker.finished(lambda: False)


def test_a_workers_turn(bench: Bench) -> None:
    """What it has done goes with its report; hosts may have come."""
    fleet = Fleet()
    bench.run.tallies.pages = 9
    came = asyncio.run(member(fleet).after_commit(bench.frontier, bench.session.models, bench.run, lambda: True))

    assert came is True
    assert fleet.turned == [True]
    assert fleet.counts == {"pages": 9, "bytes": 0, "errors": 0}


def test_workers_share_addresses_where_they_are_paced(bench: Bench) -> None:
    """PACE_PER_IP; what cannot be asked pauses the crawl."""
    ends: Any = SimpleNamespace(granted=lambda *given: None, refused=lambda *given: None)
    assert member(Fleet(), PACE_PER_IP=False).reservations(bench.run, ends) is None
    reservations = member(Fleet(), PACE_PER_IP=True).reservations(bench.run, ends)

    assert isinstance(reservations, IpReservations)
    reservations._failed(StorageError("Redis is away"))
    assert bench.run.paused == "Redis is away"


def test_which_of_them_it_is(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By STATE_URL; a worker counts from the store's clock."""
    monkeypatch.setattr(single_process, "open_frontier", lambda folder: bench.store)
    monkeypatch.setattr(joining, "join", lambda settings, folder, accept_loss: Fleet())
    alone = role_of(settings_of(), bench.folder, bench.run)
    followed: list[float] = []
    monkeypatch.setattr(bench.run, "follow", followed.append)
    worker = role_of(settings_of(STATE_URL="redis://127.0.0.1:6379/0"), bench.folder, bench.run)

    assert isinstance(alone, SingleProcess)
    assert isinstance(worker, RedisWorker)
    assert (alone.keeps_hosts, alone.all_hosts) == (True, True)
    assert (worker.keeps_hosts, worker.all_hosts) == (False, False)
    assert followed == [5000.0]
    assert bench.run.round == 1


class Post:
    """As ``LocalMail``, with its answers in the test's hand."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.quiet = True

    async def fetch(self, partitions: Any) -> dict[int, Any]:
        """From the supervisor."""
        self.log.append("fetch")
        return {}

    def answered(self, partition: int, inbox: Any) -> None:
        """What was read."""

    def take_delivered(self) -> list[Any]:
        """None."""
        return []

    def turn(self) -> None:
        """After each commit."""
        self.log.append("turn")

    def unread(self) -> list[str]:
        """By whom."""
        return ["worker-2"]

    def close(self) -> None:
        """At the end."""
        self.log.append("close")


class Link:
    """As ``SupervisorLink``, which hears reports."""

    def __init__(self) -> None:
        self.broken = ""
        self.done = False
        self.reserve = None
        self.said: list[tuple[list[str], Counts, bool]] = []
        self.closed = False

    def report(self, unread: list[str], counts: Counts, *, quiet: bool) -> None:
        """To the supervisor."""
        self.said.append((unread, counts, quiet))

    def close(self) -> None:
        """The connection."""
        self.closed = True


def local(bench: Bench, **settings: Any) -> tuple[LocalWorker, Any, Any]:
    """A worker of a local fleet, its link and its post."""
    link: Any = Link()
    post: Any = Post()
    store: Any = bench.store
    hosts = LocalHosts(FleetPlan(("worker-1", "worker-2"), (0, 1)), "worker-1")
    return LocalWorker(link, store, hosts, post, settings_of(**settings), LocalPlace(0, 3, 0, (7, 9))), link, post


def test_a_budget_of_known_pages_is_shared(bench: Bench) -> None:
    """The first worker has one more where it cannot be shared."""
    worker, _, _ = local(bench)
    assert (worker.part_of(7), worker.part_of(None), bench.role.part_of(7)) == (3, None, 7)


def test_a_local_workers_turn(bench: Bench) -> None:
    """What is durable is posted; the supervisor hears what was done, and whether anything is left."""
    worker, link, post = local(bench)
    bench.run.tallies.pages = 9
    turns = []
    for moved, quiet, idle in ((False, True, True), (True, True, True), (False, False, True), (False, True, False)):
        worker._exchange.moved, post.quiet = moved, quiet
        turns.append(asyncio.run(worker.after_commit(bench.frontier, bench.session.models, bench.run, lambda: idle)))  # noqa: B023
    worker.commit_failed(bench.frontier, bench.run)

    assert turns == [True] * 4
    assert [quiet for _, _, quiet in link.said] == [True, False, False, False, False]
    assert {(tuple(unread), counts.pages) for unread, counts, _ in link.said} == {(("worker-2",), 9)}
    assert post.log == ["turn"] * 4


def test_a_local_worker_reads_before_each_commit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier process has left is durable before any of it is posted."""
    worker, _, post = local(bench)

    async def read() -> None:
        for _ in range(2):
            await worker.read_messages(bench.frontier, lambda: bench.now)

    monkeypatch.setattr(bench.store, "sync", lambda: post.log.append("sync"))
    asyncio.run(read())
    assert post.log == ["sync", "fetch", "fetch"]


def test_every_local_worker_hears_where_seeds_have_moved(bench: Bench) -> None:
    """Once as it happens, and once after a start, since a crash may have kept it from being sent."""
    bench.store.apply(Changes(facts=[(SCOPE_FACT, b"before.test")]))
    worker, _, _ = local(bench)
    sent: list[tuple[int, Any]] = []
    worker._hosts.send_to = lambda partition, message: sent.append((partition, message))  # type: ignore[method-assign]
    moved = ScopeWidened(["www.test"], [])

    async def read() -> None:
        await worker.read_messages(bench.frontier, lambda: bench.now)
        bench.frontier.state.moved.append(moved)
        for _ in range(2):
            await worker.read_messages(bench.frontier, lambda: bench.now)

    asyncio.run(read())
    before = ScopeWidened(["before.test"], [])
    assert sent == [(each, said) for said in (before, moved) for each in (7, 9)]


def test_every_worker_in_redis_hears_where_seeds_have_moved(bench: Bench) -> None:
    """They share one list, in which nothing stands twice; one that joins later reads it from its beginning."""
    said = [pack_message(ScopeWidened(["others.test"], []))]
    fleet = Fleet()
    fleet.fleet.moved, fleet.fleet.announce_scope = (lambda after: said[after:]), said.extend
    fleet.store = bench.store  # type: ignore[assignment]  # it is asked for facts
    bench.store.apply(Changes(facts=[(SCOPE_FACT, b"before.test")]))
    scope = bench.frontier.admission._filters.scope
    scope.mode = "host"

    async def hear(worker: RedisWorker) -> None:
        await worker._widen_scope(fleet.fleet.moved(worker._scope_messages), bench.frontier, bench.now)

    worker = member(fleet)
    asyncio.run(hear(worker))
    bench.frontier.state.moved.append(ScopeWidened(["www.test"], [("http://a.test/", "http://www.test/")]))
    asyncio.run(hear(worker))
    asyncio.run(hear(worker))
    asyncio.run(hear(member(fleet)))

    wanted = [(["others.test"], []), (["before.test"], []), (["www.test"], [("http://a.test/", "http://www.test/")])]
    assert [unpack_message(packed) for packed in said] == [ScopeWidened(*each) for each in wanted]
    assert {*(bench.store.fact(SCOPE_FACT) or b"").split()} == {b"before.test", b"others.test", b"www.test"}


def test_a_local_worker_ends_with_all_or_without_its_supervisor(bench: Bench) -> None:
    """Not when it is idle itself."""
    worker, link, post = local(bench)
    assert not worker.finished(lambda: True)
    assert [worker.forsaken] == [""]
    link.done, link.broken = True, "the supervisor has exited"
    assert worker.finished(lambda: False)
    assert [worker.forsaken] == ["the supervisor has exited"]
    worker.close()
    assert (post.log, link.closed) == (["close"], True)


def test_a_local_worker_reserves_addresses_where_they_are_paced(bench: Bench) -> None:
    """At its supervisor."""
    ends: Any = SimpleNamespace(granted=lambda *given: None, refused=lambda *given: None)
    assert local(bench, PACE_PER_IP=False)[0].reservations(bench.run, ends) is None
    assert isinstance(local(bench, PACE_PER_IP=True)[0].reservations(bench.run, ends), IpReservations)


def test_a_local_worker_without_a_supervisor(bench: Bench) -> None:
    """One sentence, and its store is not opened."""
    settings = settings_of(STATE_URL="rocksdb:fleet", FLEET_WORKER="worker-1")
    with pytest.raises(OperatorError, match="the same scrapy fleet continues"):
        role_of(settings, CrawlDir(bench.folder / "worker-1"), bench.run)
    assert not (bench.folder / "worker-1").exists()
