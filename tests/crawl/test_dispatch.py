"""Leases leave by ``next`` alone, each when its host, its address and its reservation are there."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Request

from crawlerproject.crawl import dispatch as send_window
from crawlerproject.crawl.dispatch import LEAST, Fetches, InFlight, LeaseDispatch, SendWindow
from crawlerproject.errors import FetchError, FrontierDamaged, StorageError
from crawlerproject.fetch.resolver import Resolved
from crawlerproject.frontier.hosts.host import Stage
from crawlerproject.frontier.passage import Lease
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import lease_in, leased
from crawlerproject.rules.row_kinds import FLAG_RENDER, FLAG_SEED, ROW_KINDS
from crawlerproject.runtime.loop_budget import LoopBudget
from tests.crawl.sessions import HOST, Bench, requests_of

HOSTS = [f"http://h{number}.test/" for number in range(4)]


class Resolver:
    """Every name has an address, but for those in ``dead``."""

    def __init__(self) -> None:
        self.dead: set[str] = set()
        self.asked: list[str] = []
        self.known: set[str] = set()

    def at_hand(self, name: str) -> Resolved | None:
        """Its address if it is one of those that are ``known``."""
        return Resolved((f"192.0.2.10{name[1]}",), 1e12) if name in self.known else None

    def room(self) -> int:
        """Any number of questions."""
        return 10

    async def resolve(self, name: str, within_seconds: float | None = None) -> Resolved:
        """Its address."""
        self.asked.append(name)
        if name in self.dead:
            raise FetchError(Reason.DNS_NOT_FOUND, "no such name")
        return Resolved((f"192.0.2.{len(self.asked)}",), 1e12)


class EngineDouble:
    """Notes when it is to ask."""

    def __init__(self) -> None:
        self.asks = 0
        self.at: list[float | None] = []
        self.damage = ""

    def ask(self) -> None:
        """Soon."""
        self.asks += 1

    def ask_at(self, moment: float | None, now: float) -> None:
        """Then."""
        self.at.append(moment)

    def stop_for_damage(self, error: FrontierDamaged) -> None:
        """The crawl ends."""
        self.damage = str(error)


class Out(Bench):
    """A session and what hands its leases out."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FRONTIER_MAX_IN_FLIGHT=3)
        self.engine, self.resolver, self.under_way = EngineDouble(), Resolver(), InFlight()
        self.unread = LoopBudget()
        self.add(*HOSTS, flags=FLAG_SEED)
        self.dispatch = self.made()

    def made(self) -> LeaseDispatch:
        """A dispatch of this session."""
        lines = self.unread, self.under_way.line
        parts: Any = (self.engine, Fetches(cast("Any", self.resolver), lines, lambda name: False))
        dispatch = LeaseDispatch(self.session, self.run, requests_of(self), self.under_way, *parts)
        dispatch._budget = LoopBudget(most_seconds=60.0)  # by the clock: a busy machine must not end a turn
        return dispatch

    async def looked_up(self) -> None:
        """Let the names resolve."""
        while self.dispatch._lookups:
            await asyncio.sleep(0.001)


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Out]:
    """With one page of each host queued."""
    made = Out(tmp_path)
    yield made
    made.session.archive.abandon()


def test_a_name_is_looked_up_first_then_the_lease_leaves_by_next(out: Out) -> None:
    """The engine is woken; nothing is handed to it."""

    async def run() -> Any:
        assert out.dispatch.next() is None
        assert out.dispatch
        await out.looked_up()
        assert out.engine.asks == 4
        return out.dispatch.next()

    request = asyncio.run(run())
    exchange = leased(request)
    assert exchange is not None
    assert exchange.lease.row.kind.is_robots
    assert exchange.address.startswith("192.0.2.")
    assert out.under_way.by_host[exchange.lease.host.name] is exchange.lease


def test_a_name_whose_address_is_at_hand_leaves_in_the_same_turn(out: Out) -> None:
    """No task and no turn of the loop; and no more than may be under way, however many are free."""
    out.resolver.known = {f"h{number}.test" for number in range(4)}

    async def run() -> list[Any]:
        return [out.dispatch.next() for _ in range(4)]

    requests = asyncio.run(run())
    assert [request is not None for request in requests] == [True, True, True, False]
    assert out.frontier.state.leased == 3
    assert out.resolver.asked == []


def test_while_answers_wait_to_be_read_nothing_more_goes_out(out: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that ended let the next one out; nothing is lost by it, and it is asked again soon."""
    out.resolver.known = {f"h{number}.test" for number in range(4)}
    monkeypatch.setattr(send_window, "_BEHIND", 1)

    async def run() -> tuple[Any, Any]:
        out.unread.waiting.append(asyncio.get_running_loop().create_future())
        first, second = out.dispatch.next(), out.dispatch.next()
        assert first is not None
        assert second is None
        at = out.engine.at[-1]
        assert at is not None
        assert 0.0 < at - out.run.now() <= 0.02
        lease = lease_in(first)
        assert lease is not None
        out.frontier.requeue(lease, out.now)
        out.unread.waiting.clear()
        return first, out.dispatch.next()

    first, third = asyncio.run(run())
    assert third is not None
    assert third is not first


def test_no_more_than_the_most_in_flight(out: Out) -> None:
    """FRONTIER_MAX_IN_FLIGHT counts leases that are ready as well."""

    async def run() -> list[Any]:
        sent = []
        for _ in range(10):
            if (request := out.dispatch.next()) is not None:
                sent.append(request)
            await out.looked_up()
        return sent

    assert len(asyncio.run(run())) >= 3
    assert out.frontier.state.leased <= 4


def test_a_name_without_an_address_has_its_turn_too(out: Out) -> None:
    """The request fails for that without being sent: the failure is logged and judged like any other."""
    out.resolver.dead = {f"h{number}.test" for number in range(4)}

    async def run() -> Any:
        out.dispatch.next()
        await out.looked_up()
        return out.dispatch.next()

    exchange = leased(asyncio.run(run()))
    assert exchange is not None
    assert exchange.error is not None
    assert exchange.error.reason is Reason.DNS_NOT_FOUND


def test_a_crawl_that_is_halted_leases_nothing(out: Out) -> None:
    """What is ready goes out all the same: it was leased before."""

    async def run() -> tuple[Any, Any]:
        out.dispatch.next()
        await out.looked_up()
        out.run.pause("no room")
        ready = [out.dispatch.next() for _ in range(4)]
        return ready, out.dispatch.next()

    ready, after = asyncio.run(run())
    assert all(lease_in(request) is not None for request in ready)
    assert after is None


@pytest.mark.parametrize("error", [StorageError("away"), FrontierDamaged("broken")])
def test_a_store_that_fails(out: Out, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Without room the crawl pauses; what cannot be read ends it, and is not asked again."""

    def fail(*given: object) -> Any:
        raise error

    monkeypatch.setattr(out.frontier.leasing, "next", fail)

    async def run() -> None:
        assert out.dispatch.next() is None
        assert out.dispatch.next() is None

    asyncio.run(run())
    assert (out.run.paused, out.engine.damage) == (("", "broken") if type(error) is FrontierDamaged else ("away", ""))


def test_when_nothing_is_free_the_engine_is_woken_then(out: Out) -> None:
    """At the moment when the next host is."""

    async def run() -> None:
        out.dispatch.next()
        await out.looked_up()
        while out.dispatch.next() is not None:
            pass

    asyncio.run(run())
    assert out.engine.at[-1] == out.frontier.wake_at()


def test_before_a_session_is_replaced_what_is_ready_goes_back(out: Out) -> None:
    """True once no lease is under way; one that was sent must end first."""

    async def run() -> tuple[bool, bool]:
        out.dispatch.next()
        await out.looked_up()
        request = out.dispatch.next()
        before = out.dispatch.quit()
        lease = lease_in(request) if request is not None else None
        assert lease is not None
        out.frontier.requeue(lease, out.now)
        return before, out.dispatch.quit()

    assert asyncio.run(run()) == (False, True)
    assert not out.dispatch


class Reservations:
    """As IpReservations, with its answers in the test's hand."""

    def __init__(self) -> None:
        self.wanted: list[Lease] = []
        self.rested: list[Lease] = []
        self.closed = False

    def want(self, lease: Lease, error: FetchError | None = None) -> None:
        """Asked for."""
        self.wanted.append(lease)

    def rest(self, lease: Lease) -> None:
        """Over."""
        self.rested.append(lease)

    def close(self) -> None:
        """No more."""
        self.closed = True


@pytest.fixture
def shared(out: Out, monkeypatch: pytest.MonkeyPatch) -> tuple[Out, Reservations]:
    """A worker that shares addresses, with the first host's robots.txt waiting for its address."""
    reservations, allowed = Reservations(), SimpleNamespace(may_ask=True)
    monkeypatch.setattr(out.role, "reservations", lambda run, ends: reservations, raising=False)
    monkeypatch.setattr(out.frontier.state.ownership, "may_ask", lambda host: allowed.may_ask)
    out.dispatch = out.made()

    async def run() -> None:
        out.dispatch.next()
        await out.looked_up()

    asyncio.run(run())
    out.engine.asks = 0
    return out, reservations


def test_in_a_fleet_a_lease_waits_for_its_address(shared: tuple[Out, Reservations]) -> None:
    """It is ready when the address is granted, and its time begins then."""
    out, reservations = shared
    lease = reservations.wanted[0]
    assert out.engine.asks == 0
    out.now += 5
    out.dispatch.granted(lease, None)

    assert out.engine.asks == 1
    assert lease.leased_at == out.now

    async def run() -> Any:
        return out.dispatch.next()

    assert lease_in(asyncio.run(run())) is lease
    out.under_way.over(lease)
    assert reservations.rested == [lease]


def test_an_address_that_is_anothers_is_tried_again(shared: tuple[Out, Reservations]) -> None:
    """Its host keeps its place in the line of the address, which waits as long as it is told."""
    out, reservations = shared
    lease = reservations.wanted[0]
    out.dispatch.refused(lease, 30.0, gives_way=False)

    assert lease.ended
    assert lease.host.stage == Stage.IN_LINE
    assert out.dispatch.quick_waits(lease)
    assert out.frontier.workbench.ips.waiting.wake_at() == out.now + 30.0


@pytest.mark.parametrize("why", ["lost", "halted"])
def test_an_address_that_comes_too_late_rests(shared: tuple[Out, Reservations], why: str) -> None:
    """Nothing is sent for a lease that may be another worker's by now."""
    out, reservations = shared
    (out.run.lose if why == "lost" else out.run.pause)("why")
    lease = reservations.wanted[0]
    out.dispatch.granted(lease, None)

    assert lease.ended
    assert reservations.rested == [lease]
    assert out.engine.asks == 0


def test_at_the_end_nothing_more_is_asked(shared: tuple[Out, Reservations]) -> None:
    """Neither names nor addresses."""
    out, reservations = shared
    out.dispatch.cancel()

    assert reservations.closed
    assert HOST


MOST = 1_000  # FRONTIER_MAX_IN_FLIGHT
TURN_SECONDS = 0.01
READS_A_TURN = 8
SENDS_A_TURN = 20  # what the dispatch's own budget lets through


class Crawl:
    """Turns of a loop: what is free is sent, answers come after some turns, and eight are read in each turn."""

    def __init__(self, answer_turns: int) -> None:
        self.window = SendWindow()
        self.coming: deque[int] = deque([0] * answer_turns)
        self.turns = self.unread = self.under_way = self.idle_turns = self.sent = 0

    def turn(self, free: int) -> int:
        """One turn, with work for ``free`` requests; how many were sent."""
        self.turns += 1
        sent = 0
        while self.window.open(self.sent, self.under_way, self.unread, self.turns * TURN_SECONDS):
            if sent == min(free, SENDS_A_TURN) or self.under_way == MOST:
                break
            self.sent += 1
            self.under_way += 1
            sent += 1
        self.coming.append(sent)
        self.unread += self.coming.popleft()
        read = min(self.unread, READS_A_TURN)
        self.unread -= read
        self.under_way -= read
        self.idle_turns += read < READS_A_TURN
        return sent


@pytest.mark.parametrize("answer_turns", [1, 2, 5, 20, 50, 100])
def test_no_more_are_under_way_than_the_distance_needs_and_no_turn_is_idle(answer_turns: int) -> None:
    """With more work than it can do: those on the wire, and a hundred more that wait."""
    crawl = Crawl(answer_turns)
    for _ in range(1_000):
        crawl.turn(free=MOST)
    crawl.idle_turns = 0
    for _ in range(2_000):
        crawl.turn(free=MOST)
        assert crawl.under_way <= answer_turns * READS_A_TURN + 100

    assert crawl.idle_turns == 0


def test_while_every_answer_is_read_nothing_is_held_back() -> None:
    """Fewer come than could be read."""
    crawl = Crawl(answer_turns=5)
    assert [crawl.turn(free=READS_A_TURN - 1) for _ in range(1_000)] == [READS_A_TURN - 1] * 1_000


def test_hosts_that_never_answer_take_no_place_for_long() -> None:
    """A thousand are under way within five seconds, though none of them ends."""
    crawl = Crawl(answer_turns=10**6)
    crawl.turn(free=MOST)
    while crawl.under_way < MOST:
        crawl.turn(free=MOST)

    assert crawl.turns * TURN_SECONDS <= 5.0


def test_a_wave_of_free_hosts_does_not_go_out_at_once() -> None:
    """All of a thousand are free: the first go, then others as they end."""
    crawl = Crawl(answer_turns=5)
    for _ in range(100):
        crawl.turn(free=3)
    wave = MOST
    while wave > 0:
        wave -= crawl.turn(free=wave)
        assert crawl.under_way <= LEAST

    assert crawl.unread < LEAST


REQUEST = Request("http://a.test/")


def lease(host: str = "a.test", *, render: bool = False) -> Any:
    """A lease of a host."""
    row = SimpleNamespace(kind=ROW_KINDS[FLAG_RENDER if render else 0])
    return SimpleNamespace(host=SimpleNamespace(name=host), row=row, kind=row.kind)


def test_a_host_shows_what_is_asked_of_it_until_that_is_over() -> None:
    """Its end is told to whoever keeps its address."""
    under_way, one, rested = InFlight(), lease(), list[Any]()
    under_way.rest_with(rested.append)
    under_way.sent(one, REQUEST)
    assert under_way.by_host == {"a.test": one}

    under_way.over(one)
    assert under_way.by_host == {}
    assert rested == [one]


def test_a_page_in_the_browser_does_not_hide_what_its_host_is_asked() -> None:
    """Nor does its end."""
    under_way, page, script = InFlight(), lease(render=True), lease()
    under_way.sent(script, REQUEST)
    under_way.sent(page, REQUEST)
    assert under_way.by_host == {"a.test": script}

    under_way.over(page)
    assert under_way.by_host == {"a.test": script}


def test_a_request_that_nobody_has_any_more_is_found() -> None:
    """Until its Page is here."""
    under_way, one, two = InFlight(), lease(), lease("b.test")
    under_way.sent(one, REQUEST)
    under_way.sent(two, Request("http://b.test/"))

    assert under_way.unanswered({REQUEST}) == [two]
    under_way.answered(two)
    assert under_way.unanswered({REQUEST}) == []
    assert under_way.unanswered(set()) == [one]
