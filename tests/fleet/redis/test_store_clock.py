"""A worker's clock is read beside the store's: steered, not relied on when far from it, taken anew after a while."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from crawlerproject.errors import LeaseLost, StorageError
from crawlerproject.fleet.redis.fleet_worker import Fleet, FleetTimes, Identity
from crawlerproject.fleet.redis.store_clock import READ_SECONDS, StoreClock
from crawlerproject.runtime.clock import SteeredClock
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.membership import Epoch, RedisFleet
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from tests.stores.redis_servers import redis_server

EPOCH = 1_000_000.0
MOST_APART = 0.5
PATIENCE = 60.0


class Bench:
    """Two clocks in the test's hand: the machine's, and the store's, which is ``ahead`` of it."""

    def __init__(self) -> None:
        self.seconds = 50.0
        self.ahead = 0.0
        self.doubt_seconds = 0.001
        self.readings = 0
        self.steered = SteeredClock(lambda: self.seconds, EPOCH)
        self.clock = StoreClock(
            self._ask,
            self.steered,
            most_apart_seconds=MOST_APART,
            patience_seconds=PATIENCE,
            boot=lambda: self.seconds,
        )
        self.clock.begin()

    def _ask(self) -> Epoch:
        self.readings += 1
        return Epoch(EPOCH + self.ahead, self.doubt_seconds)

    def minute(self) -> None:
        """A minute, at whose end the worker looks."""
        self.seconds += READ_SECONDS
        if self.clock.due:
            self.clock.check()

    @property
    def apart(self) -> float:
        """How far ours is ahead of the store's."""
        return self.steered.apart(EPOCH + self.ahead)


@pytest.fixture
def bench() -> Bench:
    """A worker that has begun."""
    return Bench()


@pytest.mark.parametrize("drift", [200e-6, -200e-6])
def test_a_machine_that_drifts_stays_near_the_store(bench: Bench, drift: float) -> None:
    """For three hours, by more than any quartz: never further than what it drifts between two readings or so."""
    for _ in range(180):
        bench.ahead += drift * READ_SECONDS
        bench.minute()
        assert abs(bench.apart) < 2 * abs(drift) * READ_SECONDS + bench.doubt_seconds

    assert bench.readings == 181


def test_what_cannot_be_seen_is_not_steered_after(bench: Bench) -> None:
    """A reading is no better than its way to the store and back."""
    bench.ahead, bench.doubt_seconds = 0.01, 0.02
    bench.minute()
    bench.minute()

    assert bench.apart == pytest.approx(-0.01)


def test_too_far_apart_the_worker_pauses_until_it_is_over(bench: Bench) -> None:
    """The store's clock is set, and set back: a word at each look meanwhile, none afterwards."""
    bench.ahead = 180.0
    for _ in range(3):
        with pytest.raises(StorageError, match=r"clock and the store's have come 180 s apart"):
            bench.clock.check()
        assert not bench.clock.trusted
        assert bench.clock.due
        bench.seconds += 1
    bench.ahead = 0.1
    bench.clock.check()

    assert bench.clock.trusted
    assert not bench.clock.due


def test_after_a_lease_the_stores_time_is_taken(bench: Bench) -> None:
    """The machine slept: its clock does not come back by itself. The worker joins again, with all that brings."""
    bench.ahead = 7_200.0
    with pytest.raises(StorageError):
        bench.clock.check()
    bench.seconds += PATIENCE
    with pytest.raises(LeaseLost):
        bench.clock.check()
    bench.steered.follow(EPOCH + bench.clock.begin().seconds - EPOCH)
    bench.clock.check()
    assert bench.clock.trusted


@pytest.mark.parametrize(("store_now", "due"), [(10.4, False), (12.6, False), (9.4, True), (13.6, True)])
def test_a_report_that_cannot_be_true_has_the_clock_read_at_once(bench: Bench, store_now: float, due: bool) -> None:
    """The store's moment of the answer is between question and answer, or less than the most beside."""
    bench.clock.reported(store_now, 10.0, 13.0)

    assert bench.clock.due is due


class SetRedis(RedisFleet):
    """One whose machine's clock is set while we work."""

    ahead = 0.0

    def epoch(self) -> Epoch:
        """As it is now."""
        found = super().epoch()
        return found._replace(seconds=found.seconds + self.ahead)


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Fleet, SetRedis]]:
    """One that has joined."""
    clock = SteeredClock()
    monkeypatch.setattr("crawlerproject.fleet.redis.fleet_worker.CRAWL", clock)
    with redis_server(tmp_path / "redis") as server:
        link = RedisLink(server.url)
        part = SetRedis(link, "web", "w", 60_000)
        fleet = Fleet(
            JournaledStore(tmp_path / "frontier", PartitionJournals(link, "web", "w", 4)),
            part,
            Identity(tmp_path / "w.json", "web", "w"),
            FleetTimes(60.0, 1.0, MOST_APART),
            random.Random(1),
        )
        clock.follow(fleet.begin())
        yield fleet, part
        link.close()


def test_a_worker_commits_and_asks_nothing_while_its_clock_is_wrong(worker: tuple[Fleet, SetRedis]) -> None:
    """A turn ends with a word, and so does the question whether it can go on, until it is over."""
    fleet, redis = worker
    nothing = cast("Any", None)
    redis.ahead = 300.0
    fleet._clock.reported(redis.epoch().seconds, 0.0, 1.0)
    with pytest.raises(StorageError, match="have come 300 s apart"):
        asyncio.run(fleet.turn(nothing, nothing, idle=False, counts={}, paused=""))
    with pytest.raises(StorageError, match="have come 300 s apart"):
        fleet.reach()
    redis.ahead = 0.0
    fleet.reach()

    assert fleet._clock.trusted
