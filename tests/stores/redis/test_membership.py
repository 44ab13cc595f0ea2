"""What Redis has of workers: their parts of sums, who is at work, who is quiet."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from crawlerproject.errors import StoreForgot
from crawlerproject.rules.fleet_shares import QuotaRequest, part
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import fleet_keys, worker_keys
from crawlerproject.stores.redis.membership import RedisFleet, RedisQuotas, Report
from crawlerproject.stores.redis.redis_crawl import RedisCrawl
from tests.stores.redis_crawls import numbers
from tests.stores.redis_servers import RedisServer

_LEASE_MS = 1_000_000
_MOST = 40


class Worker:
    """Fetches pages, commits them, and dies; its facts are in Redis as a worker's batches write them."""

    def __init__(self, link: RedisLink, crawl: str, name: str) -> None:
        self.link, self.name = link, name
        self.shares = RedisQuotas(link, crawl, name, _LEASE_MS)
        self._fleet = fleet_keys(crawl)
        self._state = worker_keys(crawl, name).state
        self.life = ""
        self.committed = self.used = self.granted = 0
        self.all_committed = 0
        self.begin()

    def begin(self) -> None:
        """Join, with what was committed."""
        self.life = self.shares.incarnation = f"life-{next(numbers)}"
        self.link.call("HSET", [self._fleet.incarnations], self.name, self.life)
        self.link.call("HSET", [self._state], "life", self.life)
        now = int(self.link.call("TIME")[0]) * 1000
        self.link.call("ZADD", [self._fleet.seen], now, self.name)
        self.used, self.granted = self.committed, 0

    def ask(self, *, wants: bool = True, gives: bool = False) -> None:
        """One exchange."""
        claim = QuotaRequest("pages", _MOST, self.committed, self.used, wants, gives, 1, 7)
        [share] = self.shares.exchange([claim])
        self.granted, self.all_committed, _ = share


def test_another_life_says_nothing(server: RedisServer) -> None:
    """A process that goes by a name which another took since is granted nothing, and changes nothing."""
    link, crawl = RedisLink(server.url), f"shares-{next(numbers)}"
    one = Worker(link, crawl, "one")
    before = one.life
    one.begin()
    one.ask()
    granted, one.shares.incarnation = one.granted, before
    one.ask()

    assert granted > 0
    assert one.granted == 0


def test_what_was_spent_before_counts(server: RedisServer) -> None:
    """By workers of an older version, and in the folder that the crawl was copied from; neither counts twice."""
    link, crawl = RedisLink(server.url), f"shares-{next(numbers)}"
    for name, pages in (("", 5), ("old", 7)):
        link.call("HSET", [worker_keys(crawl, name).state], "fact:totals", orjson.dumps([pages, 100, 0, 0.0]))
    link.call("HSET", [fleet_keys(crawl).incarnations], "old", "life")
    one = Worker(link, crawl, "one")
    for _ in range(2):
        one.shares.begin(["pages", "bytes"])
    one.ask()

    assert one.all_committed == 12
    assert RedisCrawl(link, crawl, 1).fact_of("one", "totals") is None


def test_the_parts_get_smaller(server: RedisServer) -> None:
    """As the rule says, to which the script keeps."""
    link, crawl = RedisLink(server.url), f"shares-{next(numbers)}"
    workers = [Worker(link, crawl, name) for name in ("one", "two")]
    left, given = _MOST, 0
    while left:
        expected = part(left, 2, 1, 7)
        worker = workers[given % 2]
        before, given = worker.granted, given + 1
        worker.ask()
        assert worker.granted - before == expected
        left -= expected
    assert part(0, 2, 1, 7) == part(-5, 0, 1, 7) == 0
    assert part(5, 2, 100, 200) == 5


def test_a_fleet_has_run_since_its_first_worker_began(server: RedisServer) -> None:
    """Anew when none is at work."""
    link, crawl = RedisLink(server.url), f"shares-{next(numbers)}"
    fleet, keys = RedisFleet(link, crawl, "one", _LEASE_MS), fleet_keys(crawl)
    assert fleet.running_seconds() == 0
    fleet.begin("life", [], 8)
    link.call("HINCRBY", [keys.facts], "began", -100_000)

    assert fleet.running_seconds() >= 100
    fleet.leave()
    assert fleet.running_seconds() < 100


def test_reports_know_who_is_at_work_whoever_comes_and_goes(server: RedisServer) -> None:
    """How many, and how many of their names come before: together the shares of all are all partitions."""
    chance, link, crawl = random.Random(5), RedisLink(server.url), f"reports-{next(numbers)}"
    fleets = {name: RedisFleet(link, crawl, name, _LEASE_MS) for name in ("a", "aa", "b", "c", "d")}
    alive: set[str] = set()
    for number in range(300):
        name, what = chance.choice(list(fleets)), chance.choices(["report", "die", "leave"], [6, 2, 1])[0]
        if what == "die":
            link.call("ZADD", [fleet_keys(crawl).seen], "XX", 0, name)
            alive.discard(name)
        elif what == "leave":
            fleets[name].leave()
            alive.discard(name)
        else:
            status = fleets[name].begin(f"life-{number}", [f"life-{each}" for each in range(number)], 8)
            alive.add(name)
            assert (status.workers, status.rank) == (len(alive), sorted(alive).index(name))
    link.close()


def test_all_are_quiet_when_the_last_of_them_is(server: RedisServer) -> None:
    """And each partition has a holder; of a worker that died it has none."""
    link, crawl = RedisLink(server.url), f"reports-{next(numbers)}"
    fleets = [RedisFleet(link, crawl, name, _LEASE_MS) for name in ("one", "two")]
    for fleet in fleets:
        fleet.begin(fleet.worker, (), 2)
    said = [
        fleets[at].report(fleets[at].worker, Report(quiet, 1, "{}", [at], []), 2)
        for at, quiet in ((0, True), (1, False), (1, True), (0, True), (1, False), (0, True))
    ]
    assert [status and status.all_quiet for status in said] == [False, False, True, True, False, False]
    link.call("ZADD", [fleet_keys(crawl).seen], 0, "two")
    status = fleets[0].report("one", Report(True, 1, "{}", [0], []), 2)
    assert status is not None and (status.workers, status.all_quiet) == (1, False)
    link.close()


def test_a_server_without_a_question_that_was_under_way_has_forgotten(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two that are under way together each is counted by itself: what was reserved with one may be lost."""
    link, crawl = RedisLink(server.url), f"questions-{next(numbers)}"
    fleet, many, other = RedisFleet(link, crawl, "one", _LEASE_MS), link.many, [True]

    def under_way(calls: Sequence[Call]) -> list[Any]:
        if other:
            other.clear()
            fleet.addresses((), (), 1000, 0)
            many([Call("HSET", [fleet_keys(crawl).facts], ["questions", 0])])  # a replica that lacked it took over
        return many(calls)

    monkeypatch.setattr(link, "many", under_way)
    with pytest.raises(StoreForgot, match="questions about addresses"):
        fleet.addresses((), (), 1000, 0)
    link.close()
