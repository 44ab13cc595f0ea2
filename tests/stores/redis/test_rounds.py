"""What the workers of a fleet do together: who begins a round, who takes part, what is put together of its parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.stores.protocols import A_CRAWL, Posted, RoundOptions
from crawlerproject.stores.redis import journals
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journals import LISTENER, PartitionJournals
from crawlerproject.stores.redis.keys import fleet_keys, worker_keys
from crawlerproject.stores.redis.membership import RedisFleet, Report, Round, Rounds
from tests.stores.redis_crawls import LEASE_MS, PARTITIONS, numbers
from tests.stores.redis_servers import RedisServer

RECRAWL = RoundOptions(recrawl=True, budget=7)


class Worker:
    """One that joins and takes part."""

    def __init__(self, link: RedisLink, crawl: str, name: str) -> None:
        self.fleet = RedisFleet(link, crawl, name, LEASE_MS)
        self.life = f"life-{next(numbers)}"
        self._rounds = Rounds(link, crawl, LEASE_MS)

    def start(self, wanted: RoundOptions, now: float = 1000.0, before: int = 0) -> Round:
        """As a process does."""
        self.fleet.begin(self.life, [], PARTITIONS)
        return self._rounds.begin(wanted, now, before)

    def report(self) -> None:
        """A sign of life."""
        assert self.fleet.report(self.life, Report(False, 1, "{}"), PARTITIONS)


class Crawl:
    """A crawl of its own in a Redis."""

    def __init__(self, link: RedisLink) -> None:
        self.link = link
        self.name = f"crawl-{next(numbers)}"

    def worker(self, name: str) -> Worker:
        """A new process of this name."""
        return Worker(self.link, self.name, name)

    def pass_a_lease(self) -> None:
        """The last sign of life was long ago."""
        self.link.call("HSET", [fleet_keys(self.name).round], "touched", 1)


@pytest.fixture
def crawl(server: RedisServer) -> Iterator[Crawl]:
    """No worker yet."""
    link = RedisLink(server.url)
    yield Crawl(link)
    link.close()


def test_the_first_says_what_is_done_and_the_others_take_part(crawl: Crawl) -> None:
    """One moment and one budget for all, whatever the later ones were started with."""
    first = crawl.worker("one").start(RECRAWL)

    assert first == Round(1, 1000.0, 7)
    assert crawl.worker("two").start(RoundOptions(recrawl=True), now=2000.0) == first


def test_after_the_end_a_start_chooses_anew(crawl: Crawl) -> None:
    """All was done, or all have left; that there were others at the same time does not matter."""
    one, two = crawl.worker("one"), crawl.worker("two")
    one.start(RECRAWL)
    two.start(RECRAWL)
    one.fleet.finish()
    assert crawl.worker("three").start(RoundOptions(recrawl=True), now=3000.0) == Round(2, 3000.0, None)
    for worker in (one, two, crawl.worker("three")):
        worker.fleet.leave()
    assert crawl.worker("four").start(RECRAWL).number == 3
    assert crawl.worker("five").start(RECRAWL).number == 3


def test_while_one_is_at_work_the_round_goes_on(crawl: Crawl) -> None:
    """One that left or died comes back into it."""
    one, two = crawl.worker("one"), crawl.worker("two")
    one.start(RECRAWL)
    two.start(RECRAWL)
    two.report()
    one.fleet.leave()

    assert crawl.worker("one").start(RECRAWL).number == 1


def test_a_crash_of_all_ends_a_round_after_a_lease(crawl: Crawl) -> None:
    """Before that they go on in it, as a process does that forgets what it has not committed, however late."""
    crawl.worker("one").start(RECRAWL)
    rounds = Rounds(crawl.link, crawl.name, LEASE_MS)
    assert rounds.begin(RECRAWL, 2000.0, 0).number == 1
    crawl.pass_a_lease()
    assert rounds.begin(RECRAWL, 2000.0, 1).number == 1
    crawl.pass_a_lease()
    assert rounds.begin(RECRAWL, 2000.0, 0).number == 2


def test_workers_of_one_run_belong_together_however_late(crawl: Crawl) -> None:
    """FLEET_RUN: when the others have ended already, nothing is chosen a second time."""
    run = RECRAWL._replace(run="monday")
    one = crawl.worker("one")
    one.start(run)
    one.fleet.finish()
    one.fleet.leave()

    assert crawl.worker("two").start(run).number == 1
    crawl.pass_a_lease()
    assert crawl.worker("three").start(run._replace(run="tuesday")).number == 2


def test_a_crawl_and_a_recrawl_do_not_mix(crawl: Crawl) -> None:
    """One sentence; when those at work have left the start is what it wants to be."""
    one = crawl.worker("one")
    one.start(A_CRAWL)
    with pytest.raises(OperatorError, match="that are at work crawl; stop them"):
        crawl.worker("two").start(RECRAWL)
    one.fleet.leave()
    crawl.worker("two").fleet.leave()
    assert crawl.worker("two").start(RECRAWL).number == 2
    with pytest.raises(OperatorError, match="visit known pages again"):
        crawl.worker("one").start(A_CRAWL)


def test_what_was_counted_stands_and_is_of_its_round(crawl: Crawl) -> None:
    """Others have gone by a count when its partition is counted again; a new round knows none of the last."""
    rounds = Rounds(crawl.link, crawl.name, LEASE_MS)
    number = rounds.begin(RECRAWL, 1000.0, 0).number
    rounds.count(number, 3, {-4: 2, 17: 1})
    rounds.count(number, 3, {})
    rounds.choose(number, [3, 5])

    assert rounds.counts(number) == {3: {-4: 2, 17: 1}}
    assert rounds.chosen(number) == {3, 5}
    crawl.pass_a_lease()
    later = rounds.begin(RECRAWL, 1000.0, 0).number
    assert (rounds.counts(later), rounds.chosen(later)) == ({}, set())


def fleet_of(store: PartitionJournals, worker: str) -> RedisFleet:
    """A worker that has joined."""
    fleet = RedisFleet(store.link, store.crawl, worker, LEASE_MS)
    fleet.begin(f"life of {worker}", [], PARTITIONS)
    return fleet


def test_the_first_that_joins_listens_until_it_leaves(store: PartitionJournals) -> None:
    """Then the next that asks, and it finds the facts of the one before."""
    one, two = fleet_of(store, "one"), fleet_of(store, "two")
    assert one.listener() == ("one", "")
    assert two.listener() == ("one", "one")
    assert one.listener() == ("one", "one")
    store.link.call("HSET", [worker_keys(store.crawl, "one").state], "fact:websub", b"[]")
    one.leave()

    assert two.listener() == ("two", "one")
    assert two.facts_of("one", ["websub", "websub-hubs"]) == [("websub", b"[]")]
    one.begin("life of one again", ["life of one"], PARTITIONS)
    assert one.listener() == ("two", "two")


def test_what_is_written_to_it_waits(store: PartitionJournals, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, beside messages to partitions; read is what was committed; without a reader the last are kept."""
    one = fleet_of(store, "one")
    box = b"o" * 16
    written = (LISTENER, b"first"), (3, b"a partition's"), (LISTENER, b"second")
    store.post([(partition, Posted(box, number, packed)) for number, (partition, packed) in enumerate(written, 1)])
    assert one.to_listener(1) == [b"first"]
    assert one.to_listener(9) == [b"first", b"second"]
    one.listener_read(1)
    assert one.to_listener(9) == [b"second"]
    assert store.unread([3], 9)[3].messages == [Posted(box, 2, b"a partition's")]

    monkeypatch.setattr(journals, "_MOST_TO_LISTENER", 3)
    store.post([(LISTENER, Posted(box, number + 1, b"%d" % number)) for number in range(5)])
    assert one.to_listener(9) == [b"2", b"3", b"4"]
