"""Leases of partitions, names of workers, and reservations of addresses in Redis."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.errors import LeaseLost, NameTaken, OperatorError, StoreForgot
from crawlerproject.fleet.redis.fleet_worker import Fleet, FleetTimes, Identity
from crawlerproject.rules.politeness.address_turns import LATEST_SECONDS, LONGEST_APART_SECONDS, Claim
from crawlerproject.runtime.clock import since_boot
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.journal_view import crawl_in_redis
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.keys import CRAWL_ID, address_keys, fleet_keys, partition_keys
from crawlerproject.stores.redis.membership import FleetStatus, RedisFleet, Report
from crawlerproject.stores.redis.scripts import COUNT_QUESTIONS
from crawlerproject.stores.redis.worker_log import Append
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from tests.stores.redis_crawls import LEASE_MS, PARTITIONS, add, added, numbers, opened
from tests.stores.redis_servers import RedisServer, redis_server
from tests.web.waiting import busyness, wait_until

_LATE_SECONDS = 0.1
# Between two looks at two clocks a busy machine may let us wait.
_READING_SECONDS = 0.02


def claim(address: str, mark: str) -> Claim:
    """Of one site."""
    return Claim(address, mark, "site.test", quick_waits=False)


def end_lease(store: PartitionJournals, partition: int) -> None:
    """Let a lease's time be over, as if its holder had not renewed it."""
    store.link.call("HSET", [partition_keys(store.crawl, partition).lease], "until", 1)


def test_a_lease_keeps_others_out_until_it_ends_or_is_given_back(
    store: PartitionJournals, rival: PartitionJournals
) -> None:
    """Held: refused. Given back: taken at once, and known as clean. Run out: taken, and not clean."""
    assert rival.acquire(3, LEASE_MS) is None
    store.release([3])
    left = rival.acquire(3, LEASE_MS)
    assert left is not None
    assert left.granted.clean
    assert store.acquire(3, LEASE_MS) is None
    end_lease(store, 3)
    taken = store.acquire(3, LEASE_MS)
    assert taken is not None
    assert not taken.granted.clean
    assert taken.granted.token > left.granted.token


def test_a_worker_that_comes_back_settles_its_own_last_change(
    cluster: list[RedisServer], spread: PartitionJournals
) -> None:
    """The same name in a new process need not wait for its own lease, and loses nothing that was decided."""
    spread.append([Append(number, 1, [b"1"]) for number in range(PARTITIONS)], {})
    assert spread.link.call("LLEN", [partition_keys(spread.crawl, 0).journal]) == 0
    with closing(opened(cluster[0].url, "one", spread.crawl, take=False)) as again:
        assert again.acquire(1, LEASE_MS)
        for clean in (b"0", b"1"):  # they have the place of the last change, which other partitions still need
            again.append([], {"clean": clean})
        assert again.acquire(0, LEASE_MS)
        add(again, 2)
        assert added(again) == [b"1", b"2"]
        with pytest.raises(LeaseLost):
            spread.append([], {"clean": b"late"})


def test_nobody_thinks_that_a_new_life_holds_what_the_last_one_held(server: RedisServer) -> None:
    """A worker that comes back holds nothing yet: its partitions are free for whoever has room."""
    link = RedisLink(server.url)
    crawl = f"crawl-{next(numbers)}"
    one, two = (RedisFleet(link, crawl, name, LEASE_MS) for name in ("one", "two"))
    one.begin("life-1", [], PARTITIONS)
    two.begin("life-2", [], PARTITIONS)
    one.report("life-1", Report(True, 1, "{}", taken=range(PARTITIONS)), PARTITIONS)
    told = two.report("life-2", Report(True, 1, "{}"), PARTITIONS)
    assert told is not None
    assert told.all_quiet
    assert two.free(PARTITIONS, told.now) == []
    one.begin("life-3", ["life-0", "life-1"], PARTITIONS)
    told = two.report("life-2", Report(True, 1, "{}"), PARTITIONS)
    assert told is not None
    assert not told.all_quiet
    assert two.free(PARTITIONS, told.now) == list(range(PARTITIONS))
    with pytest.raises(NameTaken):
        one.begin("life-4", ["another", "life-"], PARTITIONS)
    link.close()


class Killed(Exception):
    """What a test has in place of a kill."""


class Dying(RedisFleet):
    """Is killed when Redis has heard of it, and the worker not yet of that."""

    def begin(self, life: str, earlier: Sequence[str], partitions: int) -> FleetStatus:
        """Report, and die."""
        super().begin(life, earlier, partitions)
        raise Killed


@pytest.mark.parametrize("kills", [1, 2])
def test_a_worker_killed_while_it_begins_finds_its_name_free(
    store: PartitionJournals, tmp_path: Path, kills: int
) -> None:
    """Again and again, also after a life that had begun; a stranger finds it taken."""
    life_file, frontier = tmp_path / "worker.json", JournaledStore(tmp_path / "frontier", store)

    def fleet(kind: type[RedisFleet], file: Path = life_file) -> Fleet:
        part = kind(store.link, store.crawl, "w", LEASE_MS)
        rng = random.Random(1)
        return Fleet(
            frontier,
            part,
            Identity(file, store.crawl, "w"),
            FleetTimes(LEASE_MS / 1000, 1.0, 0.5),
            rng,
        )

    fleet(RedisFleet).begin()
    for _ in range(kills):
        with pytest.raises(Killed):
            fleet(Dying).begin()
    with pytest.raises(NameTaken):
        fleet(RedisFleet, tmp_path / "another.json").begin()
    fleet(RedisFleet).begin()

    assert json.loads(life_file.read_text())["before"] == []


class HeldUp(RedisLink):
    """A connection of which three answers in four come late."""

    def many(self, calls: Sequence[Call]) -> list[Any]:
        """As on a machine that is busy."""
        answers = super().many(calls)
        if self.round_trips % 4:
            time.sleep(_LATE_SECONDS)
        return answers


def test_a_worker_that_begins_slowly_has_the_stores_time(server: RedisServer, tmp_path: Path) -> None:
    """Redis is on this machine: both clocks are one. Who hands a host on with a clock behind lets others hurry it."""
    link = HeldUp(server.url)
    part = RedisFleet(link, "slow", "w", LEASE_MS)
    store = JournaledStore(tmp_path / "frontier", PartitionJournals(link, "slow", "w", PARTITIONS))
    rng = random.Random(1)
    fleet = Fleet(
        store,
        part,
        Identity(tmp_path / "w.json", "slow", "w"),
        FleetTimes(LEASE_MS / 1000, 1.0, 0.01),
        rng,
    )
    before = time.time() - since_boot()

    assert abs(fleet.begin() - before) < fleet.held.doubt_seconds < _LATE_SECONDS
    epoch = part.epoch()
    assert abs(epoch.seconds - before) < epoch.doubt_seconds + _READING_SECONDS * busyness()
    link.close()


def test_held_is_held_until_the_lease_is_over(store: PartitionJournals) -> None:
    """The leases themselves say whether every partition has a holder."""
    seconds, micros = store.link.call("TIME")
    now = int(seconds) + int(micros) / 1e6
    assert store.all_held(now)
    assert not store.all_held(now + LEASE_MS / 1000 + 1)
    store.release([3])
    assert not store.all_held(now)


@pytest.mark.parametrize("left", [{}, {"holder": "one", "token": "0"}])
def test_a_lease_that_redis_does_not_know_is_no_lease_that_another_has(
    store: PartitionJournals, left: dict[str, str]
) -> None:
    """It is missing, or as of before it was granted: the worker stops instead of joining a crawl that begins again."""
    lease = partition_keys(store.crawl, 0).lease
    store.link.call("DEL", [lease])
    if left:
        store.link.call("HSET", [lease], *(part for item in left.items() for part in item))
    with pytest.raises(StoreForgot, match="who holds partition 0"):
        store.renew(LEASE_MS)


def test_an_address_rests_as_long_as_it_is_told(store: PartitionJournals) -> None:
    """Kept from other workers while it is asked and while it rests; a rest of nothing is none."""
    ours, theirs = (RedisFleet(store.link, store.crawl, name, LEASE_MS) for name in ("one", "two"))
    assert ours.addresses([claim("192.0.2.1", "one:1")], [], LEASE_MS, 0) == [0.0]
    assert 0.0 < theirs.addresses([claim("192.0.2.1", "two:1")], [], LEASE_MS, 0)[0] <= LATEST_SECONDS
    assert ours.addresses([], [claim("192.0.2.1", "one:1")], LEASE_MS, LEASE_MS) == []
    assert theirs.addresses([claim("192.0.2.1", "two:2")], [], LEASE_MS, 0) > [1.0]
    store.link.call("DEL", [address_keys(store.crawl, "192.0.2.1")[1]])  # it is the others' turn
    assert ours.addresses([claim("192.0.2.1", "one:2")], [], LEASE_MS, 0) == [0.0], "only ours knows when it is over"
    ours.addresses([], [claim("192.0.2.1", "one:2")], LEASE_MS, 0)
    assert theirs.addresses([claim("192.0.2.1", "two:3")], [], LEASE_MS, 0) == [0.0]


@pytest.mark.parametrize("lost", ["all", "the last questions"])
def test_a_redis_that_lost_reservations_grants_nothing(store: PartitionJournals, lost: str) -> None:
    """The address may be another worker's: emptied, or with data from before."""
    facts = fleet_keys(store.crawl).facts
    store.link.call("HSET", [facts], CRAWL_ID, "first")
    fleet = RedisFleet(store.link, store.crawl, "one", LEASE_MS, "first")
    fleet.addresses([claim("192.0.2.1", "one:1")], [], LEASE_MS, 0)
    before = store.link.call("HGET", [facts], "questions")
    fleet.addresses([claim("192.0.2.2", "one:2")], [], LEASE_MS, 0)
    if lost == "all":
        store.link.call("DEL", [facts])
    else:
        store.link.call("HSET", [facts], "questions", before)

    with pytest.raises(StoreForgot, match="questions about addresses"):
        fleet.addresses([claim("192.0.2.3", "one:3")], [], LEASE_MS, 0)


def test_every_worker_hears_where_seeds_have_moved(store: PartitionJournals) -> None:
    """From the beginning, or from where it has read."""
    ours, theirs = (RedisFleet(store.link, store.crawl, name, LEASE_MS) for name in ("one", "two"))
    assert theirs.moved(0) == []
    ours.announce_scope([b"first"])
    theirs.announce_scope([b"second", b"third"])

    assert [theirs.moved(0), ours.moved(1)] == [[b"first", b"second", b"third"], [b"second", b"third"]]


@pytest.mark.parametrize(
    ("step", "words"), [(2, "by a newer version .* use that version"), (-2, "by an older version")]
)
def test_a_crawl_of_another_layout_is_refused(store: PartitionJournals, step: int, words: str) -> None:
    """In one sentence, to workers and to those who look on."""
    store.link.call("HINCRBY", [fleet_keys(store.crawl).facts], "format", step)
    openings: list[Callable[[], object]] = [
        lambda: PartitionJournals(store.link, store.crawl, "two", PARTITIONS),
        lambda: crawl_in_redis(store.link.place, store.crawl),
    ]
    for opening in openings:
        with pytest.raises(OperatorError, match=words):
            opening()


class Ahead(RedisLink):
    """A connection to a server whose clock can be set; its keys end as if it had been."""

    seconds = 0.0

    def many(self, calls: Sequence[Call]) -> list[Any]:
        """As the server answers with such a clock."""
        answers = super().many(calls)
        for call, answer in zip(calls, answers, strict=True):
            if call.name is COUNT_QUESTIONS:
                answer[1] += int(1000 * self.seconds)
        return answers


def test_where_the_stores_clock_was_set_forward_no_address_is_granted_for_a_while(store: PartitionJournals) -> None:
    """Reservations and rests of before have ended too soon: for as long as one may last, of any worker."""
    link, hold_ms = Ahead(store.link.place), 600
    one, two = (RedisFleet(link, store.crawl, name, LEASE_MS) for name in ("one", "two"))
    assert one.addresses([claim("192.0.2.1", "one:1")], [], hold_ms, 0) == [0.0]
    link.seconds = -3600.0
    assert one.addresses([claim("192.0.2.2", "one:2")], [], hold_ms, 0) == [0.0], "the pauses are longer then"

    link.seconds = 3600.0
    store.link.call("DEL", address_keys(store.crawl, "192.0.2.1")[:1])
    first, second = one.addresses([claim("192.0.2.3", "one:3"), claim("192.0.2.4", "one:4")], [], hold_ms, 100)
    assert first == second == 0.7
    assert 0.0 < two.addresses([claim("192.0.2.1", "two:1")], [], hold_ms, 100)[0] <= 0.7, "it has joined just now"
    assert store.link.call("EXISTS", address_keys(store.crawl, "192.0.2.3")[:1]) == 0, "nor is it kept from others"
    wait_until(lambda: two.addresses([claim("192.0.2.1", "two:1")], [], hold_ms, 100) == [0.0], seconds=60)
    wait_until(lambda: one.addresses([claim("192.0.2.3", "one:5")], [], hold_ms, 100) == [0.0], seconds=60)
    two._unsure_until = since_boot() + 60.0  # the question leaves just before the end, and comes just behind it
    assert two.addresses([claim("192.0.2.5", "two:5")] * 2, [], hold_ms, 100) == [0.001, 0.001]


def test_where_the_stores_clock_was_set_back_no_address_waits_longer_than_ever(store: PartitionJournals) -> None:
    """Not by as much as it was set: what is kept for later than anything can be is of the clock of before."""
    one, two = (RedisFleet(store.link, store.crawl, name, LEASE_MS) for name in ("one", "two"))
    assert one.addresses([claim("192.0.2.9", "one:1")], [], 600, 100) == [0.0]
    assert 0.0 < two.addresses([claim("192.0.2.9", "two:1")], [], 600, 100)[0] <= 0.7
    for key in address_keys(store.crawl, "192.0.2.9"):
        store.link.call("PEXPIRE", [key], int(3_600_000 + 2000 * LONGEST_APART_SECONDS))
    assert 0.0 < two.addresses([claim("192.0.2.9", "two:1")], [], 600, 100)[0] <= 0.7
    wait_until(lambda: two.addresses([claim("192.0.2.9", "two:1")], [], 600, 100) == [0.0], seconds=60)


def test_keys_that_are_thrown_away_are_a_loss(tmp_path: Path) -> None:
    """Though the server was set right as the worker joined."""
    with redis_server(tmp_path) as own, closing(RedisLink(own.url)) as link:
        fleet = RedisFleet(link, "web", "one", LEASE_MS)
        fleet.begin("life", [], PARTITIONS)
        assert fleet.report("life", Report(False, 0, "{}"), PARTITIONS) is not None
        link.call("CONFIG", [], "SET", "maxmemory-policy", "allkeys-random", "maxmemory", "3mb")
        for number in range(64):
            link.call("SET", [f"junk{number}"], b"x" * 100_000)
        with pytest.raises(StoreForgot, match="keys away"):
            fleet.report("life", Report(False, 0, "{}"), PARTITIONS)
