"""What differs between one process and a worker of a fleet while a crawl runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crawlerproject.crawl import membership
from crawlerproject.crawl.membership import Member, Solo, membership_of
from crawlerproject.errors import StorageError
from crawlerproject.fleet.ip_reservations import IpReservations
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.redis.rounds import Round, Wanted
from tests.crawl.sessions import HOST, Bench, settings_of

FOUND = [DiscoveredUrl(parse(f"{HOST}/{number}"), 1, "L", HOST, 10) for number in range(3)]


class Fleet:
    """As ``fleet/worker.py``, with its answers in the test's hand."""

    def __init__(self) -> None:
        told = {"sure": 3, "asked": 1}
        links = SimpleNamespace(filter=SimpleNamespace(take_counts=lambda: told))
        self.store = SimpleNamespace(links=links, at_hand=lambda hosts: None)
        self.fleet = SimpleNamespace(worker="w1")
        self.exchange = SimpleNamespace(outbox=list[DiscoveredUrl](), changed=list[Any]())
        self.exchange.read = self.exchange.deliver = self.exchange.deliver_now = lambda *given: None
        self.exchange.settle = self.close = self.reach = lambda: None
        self.held = SimpleNamespace(may_ask=lambda host: host == "a.test", ask_until=lambda host: 77.0)
        self.counts: dict[str, int] = {}
        self.running_seconds = 60.0
        self.done = False
        self.turned: list[bool] = []

    def begin(self) -> float:
        """The store's clock."""
        return 5000.0

    def begin_round(self, wanted: Wanted, now: float, before: int) -> Round:
        """The first of the crawl."""
        return Round(before + 1, now, wanted.budget)

    async def turn(self, frontier: Any, learned: Any, *, idle: bool) -> None:
        """Renew, report."""
        self.turned.append(idle)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session of one process."""
    return Bench(tmp_path)


def member(fleet: Fleet, **settings: Any) -> Member:
    """A worker."""
    given: Any = fleet
    return Member(given, settings_of(**settings))


def test_one_process_queues_what_it_finds(bench: Bench) -> None:
    """At once; all hosts are its own, and no lease of it runs out."""
    solo = bench.member

    assert solo.take(FOUND, bench.frontier, bench.now) == 3
    assert solo.ownership is None
    assert solo.may_ask("any.test")
    assert solo.ask_until("any.test") is None
    assert solo.reservations(bench.run, SimpleNamespace()) is None
    assert asyncio.run(solo.turn(bench.frontier, bench.session.learned.hosts, bench.run, lambda: True)) is False


def test_one_process_has_finished_when_it_is_idle(bench: Bench) -> None:
    """Nobody else has work."""
    assert bench.member.finished(lambda: True)
    assert not bench.member.finished(lambda: False)


def test_whether_the_disk_takes_more(bench: Bench) -> None:
    """StorageError while it does not."""
    bench.member.reach()
    bench.store.full = "no room"
    with pytest.raises(StorageError):
        bench.member.reach()


def test_a_worker_keeps_what_it_finds_for_the_next_commit(bench: Bench) -> None:
    """Its own hosts' as well: the store is asked about all of it together."""
    fleet = Fleet()

    assert member(fleet).take(FOUND, bench.frontier, bench.now) == 0
    assert fleet.exchange.outbox == FOUND
    changed = [(FOUND[0].address, bench.now)]
    assert member(fleet).changed(changed, bench.frontier, bench.now) == 0
    assert fleet.exchange.changed == changed


def test_a_worker_has_finished_when_all_agree(bench: Bench) -> None:
    """However idle it is itself."""
    fleet = Fleet()
    worker = member(fleet)

    assert not worker.finished(lambda: True)
    fleet.done = True
    assert worker.finished(lambda: False)


def test_a_workers_turn(bench: Bench) -> None:
    """What it has done goes with its report, what its filter saved into the statistics; hosts may have come."""
    fleet = Fleet()
    bench.run.tallies.pages = 9
    came = asyncio.run(member(fleet).turn(bench.frontier, bench.session.learned.hosts, bench.run, lambda: True))

    assert came is True
    assert fleet.turned == [True]
    assert fleet.counts == {"pages": 9, "bytes": 0, "errors": 0}
    assert (bench.stats["links/sure"], bench.stats["links/asked"]) == (3, 1)


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
    monkeypatch.setattr(membership, "open_frontier", lambda folder: bench.store)
    monkeypatch.setattr(membership, "join", lambda settings, folder: Fleet())
    alone = membership_of(settings_of(), bench.folder, bench.run)
    followed: list[float] = []
    monkeypatch.setattr(bench.run, "follow", followed.append)
    worker = membership_of(settings_of(STATE_URL="redis://127.0.0.1:6379/0"), bench.folder, bench.run)

    assert isinstance(alone, Solo)
    assert isinstance(worker, Member)
    assert (alone.alone, worker.alone) == (True, False)
    assert followed == [5000.0]
    assert bench.run.round == 1
