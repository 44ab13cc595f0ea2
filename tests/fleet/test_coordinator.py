"""What all workers of a crawl share, by one contract, whichever way they reach it: addresses, sums, texts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from crawlerproject.fleet.local.fleet_tables import AddressTable, QuotaTable
from crawlerproject.fleet.redis import fleet_worker
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.rules.fleet_shares import QuotaRequest
from crawlerproject.rules.politeness.address_turns import LATEST_SECONDS, LONGEST_APART_SECONDS, Claim
from crawlerproject.stores.protocols import NearText
from tests.fleet.coordinators import (
    ANSWER_SECONDS,
    FREE_SECONDS,
    NAMES,
    REST_SECONDS,
    BySocket,
    Crawl,
    InProcess,
    InRedis,
)
from tests.stores.conftest import cluster as cluster
from tests.stores.conftest import server as server
from tests.stores.redis.test_texts import clusters, on_disk, text

#: Redis counts milliseconds.
EXACT_SECONDS = 0.0015
MOST = 40


WAYS = ("in process", "socket", "redis")


@pytest.fixture(params=WAYS)
def crawl(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crawl]:
    """A new one."""
    made: Crawl
    if request.param in ("redis", "cluster"):
        found = request.getfixturevalue("server" if request.param == "redis" else "cluster")
        made = InRedis(found.url if request.param == "redis" else found[0].url, monkeypatch)
    else:
        made = (InProcess if request.param == "in process" else BySocket)(tmp_path)
    yield made
    made.close()


# --- addresses -----------------------------------------------------------------------------------


class Asker:
    """A worker that asks sites, and keeps the rest of an address by its own clock, too."""

    def __init__(self, crawl: Crawl, name: str) -> None:
        self.crawl, self.name = crawl, name
        self.way = crawl.join(name)
        self.began = crawl.now
        self.numbers = count(1)
        self.under_way: dict[str, tuple[Claim, float]] = {}
        self.ended: dict[str, float] = {}
        self.to_rest: list[Claim] = []

    def wants(self, address: str) -> bool:
        """Whether it may want the address by what it knows itself."""
        free_at = self.ended.get(address, 0.0 if self.began == 1000.0 else self.began) + REST_SECONDS
        return address not in self.under_way and self.crawl.now >= free_at

    def claim(self, address: str, domain: str = "site.test") -> Claim:
        """For a new request."""
        return Claim(address, str(next(self.numbers)), domain, quick_waits=False)

    def ask(self, *claims: Claim) -> list[float]:
        """One question, with what is given back."""
        rested, self.to_rest = self.to_rest, []
        waits = self.crawl.ask(self.way.reserve(claims, rested))
        for claim, wait in zip(claims, waits, strict=True):
            if not wait:
                self.under_way[claim.address] = claim, self.crawl.now
        return waits

    def lose(self, *claims: Claim) -> None:
        """One question whose answer does not come."""
        rested, self.to_rest = self.to_rest, []
        self.crawl.ask(self.way.reserve(claims, rested))
        self.to_rest += [*rested, *claims]

    def end(self, address: str) -> None:
        """A request has ended."""
        claim, began = self.under_way.pop(address)
        self.ended[address] = self.crawl.now
        self.to_rest.append(claim._replace(took_seconds=self.crawl.now - began))


class Sites:
    """Addresses that workers ask, each request judged as it begins."""

    def __init__(self, crawl: Crawl, chance: random.Random) -> None:
        self.crawl, self.chance = crawl, chance
        self.workers = {name: Asker(crawl, name) for name in NAMES}
        self.ended = {f"192.0.2.{number}": 0.0 for number in range(3)}  # when the last request had
        self.granted = 0

    def ask(self, worker: Asker, addresses: list[str]) -> None:
        """For some domain at each."""
        busy = {address for each in self.workers.values() for address in each.under_way}
        claims = [worker.claim(address, f"{self.chance.choice('abc')}.test") for address in addresses]
        for claim, wait in zip(claims, worker.ask(*claims), strict=True):
            if not wait:
                self.granted += 1
                assert claim.address not in busy
                assert self.crawl.now >= self.ended[claim.address] + REST_SECONDS - EXACT_SECONDS

    def end(self, worker: Asker, older_seconds: float = 0.0) -> None:
        """The worker's requests that have lasted so long."""
        for address in [
            each for each, (_, began) in worker.under_way.items() if self.crawl.now >= began + older_seconds
        ]:
            worker.end(address)
            self.ended[address] = self.crawl.now

    def die(self, worker: Asker) -> None:
        """So do its requests; another process of its name begins."""
        self.ended |= dict.fromkeys(worker.under_way, self.crawl.now)
        self.workers[worker.name] = Asker(self.crawl, worker.name)

    def step(self) -> None:
        """Something happens."""
        self.crawl.now += self.chance.choice((0.01, 0.1, 0.3, 0.7))
        for worker in self.workers.values():
            self.end(worker, ANSWER_SECONDS)
        worker = self.workers[self.chance.choice(NAMES)]
        some = [each for each in self.chance.sample([*self.ended], self.chance.randint(1, 3)) if worker.wants(each)]
        [step] = self.chance.choices(["ask", "end", "lose", "die", "set"], [12, 6, 1, 1, 0.2])
        if step == "ask":
            self.ask(worker, some)
        elif step == "end":
            self.end(worker)
        elif step == "set":
            self.crawl.set_clock(self.chance.choice((-3600.0, 3600.0)))
        elif step == "lose":
            worker.lose(*map(worker.claim, some))
        if step == "die" or (step == "lose" and not self.crawl.outlives_questions):
            self.die(worker)


@pytest.mark.parametrize("seed", range(2))
def test_no_two_at_once_and_no_pause_too_short(crawl: Crawl, seed: int) -> None:
    """Whoever asks, dies, comes back, gets no answer, whatever becomes of the clock; at last everyone has a turn."""
    sites = Sites(crawl, random.Random(seed))
    for _ in range(200):
        sites.step()
    assert sites.granted > 20

    for worker in sites.workers.values():
        sites.end(worker)
        worker.ask()
    crawl.now += 2 * LONGEST_APART_SECONDS
    for worker in sites.workers.values():
        crawl.now += FREE_SECONDS
        sites.ask(worker, list(sites.ended))
        assert worker.under_way.keys() == sites.ended.keys()
        sites.end(worker)
        worker.ask()


@pytest.mark.parametrize("seed", range(2))
def test_turns_at_an_address_are_those_of_the_table(crawl: Crawl, seed: int) -> None:
    """Whatever workers want and give back, they get the answers of the pure table."""
    chance, table, address = random.Random(seed), AddressTable(REST_SECONDS), "192.0.2.1"
    ways = {name: crawl.join(name) for name in NAMES}
    has, claims, numbered = "", dict[str, Claim](), count(1)
    for _ in range(400):
        crawl.now = round(crawl.now + chance.choice((0.01, 0.1, 0.4, 1.5)), 3)
        name, quick_waits = chance.choice(NAMES), chance.random() < 0.3
        if has and chance.random() < 0.4:
            took = chance.choice((None, 0.1, 0.4, 2.0, 6.0))
            table.rest(has, address, crawl.now, quick_waits=quick_waits, took_seconds=took)
            rested = claims[has]._replace(quick_waits=quick_waits, took_seconds=took)
            assert crawl.ask(ways[has].reserve([], [rested])) == []
            has = ""
        elif name != has:  # the last one also while the address rests: it keeps that by its own clock
            claim = claims[name] = Claim(address, str(next(numbered)), f"{chance.choice('abc')}.test", quick_waits)
            wait = table.reserve(name, address, claim.domain, crawl.now, quick_waits=quick_waits)
            assert crawl.ask(ways[name].reserve([claim], [])) == pytest.approx([wait], abs=EXACT_SECONDS)
            has = has if wait else name


def test_what_a_worker_does_not_have_it_cannot_give_back(crawl: Crawl) -> None:
    """Another's reservation stands, and a later one of its own."""
    one, two = (Asker(crawl, name) for name in NAMES[:2])
    claim = one.claim("192.0.2.1")
    assert one.ask(claim, one.claim("192.0.2.2")) == [0.0, 0.0]
    two.to_rest = [two.claim("192.0.2.1"), claim._replace(mark="77")]
    crawl.now += ANSWER_SECONDS
    assert two.ask(two.claim("192.0.2.1")) > [0.0]


@pytest.mark.parametrize("loses", ["the answer", "the worker"])
def test_what_is_lost_is_free_again(crawl: Crawl, loses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rest, where the worker says so or its end is known; else after the longest request and a rest."""
    monkeypatch.setattr(fleet_worker, "_HOLD_MARGIN_SECONDS", 0.0)  # the loop's lag has it, and not the rest
    one, two = (Asker(crawl, name) for name in NAMES[:2])
    asked = crawl.now
    one.lose(one.claim("192.0.2.1"))
    crawl.now += ANSWER_SECONDS  # the last moment at which it may ask the site
    if loses == "the worker" or not crawl.outlives_questions:
        crawl.die(one.name)
    else:
        one.ask()
    died = crawl.now
    while wait := two.ask(two.claim("192.0.2.1"))[0]:
        crawl.now += abs(wait)
    assert crawl.now >= died + REST_SECONDS - EXACT_SECONDS
    knows = loses == "the answer" or not crawl.outlives_questions
    assert crawl.now <= (died + REST_SECONDS if knows else asked + ANSWER_SECONDS + REST_SECONDS) + LATEST_SECONDS


# --- sums ----------------------------------------------------------------------------------------


class Spender:
    """A worker that fetches pages and commits them."""

    def __init__(self, crawl: Crawl, name: str) -> None:
        self.crawl, self.name = crawl, name
        self.committed = 0
        self.begin()

    def begin(self) -> None:
        """A new process knows what was committed."""
        self.way = self.crawl.join(self.name)
        self.used, self.granted, self.all_committed = self.committed, 0, 0

    def ask(self, *, gives: bool = False, lost: bool = False) -> bool:
        """One exchange; whether others want some."""
        wants = self.used >= self.granted
        claim = QuotaRequest("pages", MOST, self.committed, self.used, wants, gives, 1, 7)
        if gives:  # what is given back is not used from here on
            self.granted = self.used
        [(granted, committed, wanted)] = self.crawl.ask(self.way.shares([claim]))
        if not lost:
            self.granted, self.all_committed = granted, committed
        elif not self.crawl.outlives_questions:
            self.begin()
        return wanted

    def fetch(self) -> None:
        """One more page, if it may."""
        self.used += self.granted > self.used

    def commit(self) -> None:
        """What another took for dead begins anew: nothing of it counts."""
        if self.crawl.commits(self.name, self.used):
            self.committed = self.used
        else:
            self.begin()


@pytest.mark.parametrize("seed", range(3))
def test_a_sum_is_spent_to_the_last_and_never_exceeded(crawl: Crawl, seed: int) -> None:
    """Workers in any order of fetches, commits, kills, answers lost, and absences after which they do not return."""
    chance = random.Random(seed)
    workers = [Spender(crawl, name) for name in NAMES]
    away, doubtful = set[str](), False
    steps = {"fetch": 20, "ask": 6, "commit": 6, "give": 3, "kill": 1, "lose": 1, "stop": 2, "set": 0.2}
    for _ in range(400):
        worker = chance.choice(workers)
        [step] = chance.choices(list(steps), list(steps.values()))
        if worker.name in away:
            if chance.random() < 0.1:  # it goes on where it was; the others may have taken it for dead
                away.discard(worker.name)
                crawl.back(worker.name)
        elif step == "fetch":
            worker.fetch()
        elif step == "commit":
            worker.commit()
        elif step == "kill":
            worker.begin()
        elif step == "stop":
            away.add(worker.name)
            doubtful |= crawl.away(worker.name)
        elif step == "set":
            crawl.set_clock(3600.0)
            doubtful = True
        else:
            worker.ask(gives=step == "give", lost=step == "lose")
        assert sum(each.committed for each in workers) <= MOST
        assert doubtful or sum(each.used for each in workers) <= MOST

    last = next((each for each in workers if each.name not in away), workers[0])
    for other in workers:
        if other is not last:
            crawl.leave(other.name)
    last.begin()
    for _ in range(3 * MOST):
        last.ask()
        last.fetch()
        last.commit()
    last.ask()
    assert sum(each.committed for each in workers) == last.all_committed == MOST
    assert last.granted == last.used


@pytest.mark.parametrize("seed", range(2))
def test_grants_are_those_of_the_table(crawl: Crawl, seed: int) -> None:
    """To the same requests, in their order, until the sum is spent."""
    chance, wanted, most = random.Random(seed), 0, 10 * MOST
    workers = [Spender(crawl, name) for name in NAMES]
    table = QuotaTable({"pages": dict.fromkeys(NAMES, 0)}, len(NAMES))
    for _ in range(200):
        worker = chance.choice(workers)
        worker.used += chance.randint(0, max(0, worker.granted - worker.used)) + (chance.random() < 0.05)  # or too much
        worker.committed = chance.randint(worker.committed, worker.used)
        claim = QuotaRequest(
            "pages", most, worker.committed, worker.used, chance.random() < 0.6, chance.random() < 0.2,
            chance.choice([1, 5]), chance.choice([7, 100]),
        )  # fmt: skip
        share = table.exchange(worker.name, claim)
        assert crawl.ask(worker.way.shares([claim])) == [share]
        worker.granted, wanted = share.granted, wanted + share.wanted
    assert wanted > 5
    assert share.committed > most // 2


def test_what_is_wanted_in_vain_the_others_hear_of(crawl: Crawl) -> None:
    """They give back what they do not use."""
    one, two = Spender(crawl, NAMES[0]), Spender(crawl, NAMES[1])
    while one.granted < MOST:
        one.used = one.granted
        one.ask()
    one.used = 0
    two.ask()
    assert two.granted == 0
    assert one.ask(gives=True)
    two.ask()
    assert (one.granted, two.granted > 0) == (0, True)
    one.granted = 1  # it wants none itself
    assert not one.ask()


# --- texts: their places in a cluster are of many nodes --------------------------------------------

ALL_WAYS = pytest.mark.parametrize("crawl", [*WAYS, "cluster"], indirect=True)


@ALL_WAYS
def test_the_same_pages_get_the_same_marks_as_on_disk(crawl: Crawl, tmp_path: Path) -> None:
    """In the same order, whichever worker has them: which page is near which, and by how many bits."""
    pages, found, chance = clusters(30, seed=7), list[Duplicate | None](), random.Random(1)
    ways = [crawl.join(name) for name in NAMES]
    for page in pages:
        near = crawl.ask(chance.choice(ways).texts([], [page.value], 3))[0]
        found.append(Duplicate("near", near[0].url, near[0].bits) if near else None)
        if not near:
            crawl.ask(chance.choice(ways).texts([page], [], 3))

    assert found == on_disk(pages, tmp_path / "alone")
    assert any(found)


@ALL_WAYS
def test_all_pairs_are_found_in_whatever_order(crawl: Crawl) -> None:
    """As comparing each with each would; added in several batches, asked about in one, also with an addition."""
    pages, chance = clusters(30, seed=8), random.Random(9)
    ways = [crawl.join(name) for name in NAMES]
    unlike = list({page.value: page for page in reversed(pages)}.values())  # the first page of each fingerprint
    shuffled = chance.sample(unlike, len(unlike))
    for way, first, last in zip(ways, (0, 1, 70), (1, 70, len(shuffled)), strict=True):
        found = crawl.ask(way.texts(shuffled[first:last], [page.value for page in pages], 3))

    for page, near in zip(pages, found, strict=True):
        apart = ((other, (other.value ^ page.value).bit_count()) for other in unlike)
        assert near == sorted(NearText(bits, other.key, other.url) for other, bits in apart if bits <= 3)
    assert crawl.ask(ways[0].texts([], [], 3)) == []


@ALL_WAYS
def test_what_was_answered_of_a_text_stays(crawl: Crawl) -> None:
    """Added again, since an answer was lost, or by a page of another worker that had it at the same time."""
    one, two = (crawl.join(name) for name in NAMES[:2])
    first, other = text(0x0000_0102_0304_0506, 1), text(0x0000_0102_0304_0507, 2)
    crawl.ask(one.texts([first, first, other], [], 3))
    crawl.die(NAMES[0])
    near = [NearText(0, first.key, first.url), NearText(1, other.key, other.url)]
    for again in (first, text(first.value, 3)):
        assert crawl.ask(two.texts([again, text(first.value, 4)], [first.value], 3)) == [near]
    assert crawl.ask(crawl.join(NAMES[0]).texts([], [first.value], 0)) == [near[:1]]
