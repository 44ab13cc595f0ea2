"""Workers that share an IP address, in simulated time: real workbenches over the table of a local fleet, or Redis."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from crawlerproject.fleet.local.fleet_tables import AddressTable
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.stores.redis import scripts
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.keys import address_keys
from tests.fleet.coordinators import SIMULATED_TIME
from tests.stores.redis_servers import redis_server

PACE_SECONDS, REST_SECONDS, QUICK_SECONDS, SLOW_SECONDS = 0.5, 0.1, 0.1, 1.5
#: Of the table in Redis a part: that it answers as the other does has a test of its own.
SECONDS, REDIS_SECONDS = 400.0, 200.0
ADDRESS = "192.0.2.1"
#: A question to the table and its answer take as long as this, at least and at most.
ON_THE_WAY = (0.005, 0.03)
LEAST_SHARE = 0.9


class Table(Protocol):
    """What both kinds of fleet do for an address; ``now`` is the simulation's."""

    def reserve(self, worker: str, domain: str, now: float, *, quick_waits: bool) -> float:
        """What ``AddressTurns.ask`` says."""

    def rest(self, worker: str, now: float, *, quick_waits: bool, took_seconds: float | None) -> None:
        """The worker's request has ended."""


class Local:
    """A local fleet's."""

    def __init__(self) -> None:
        self._table = AddressTable(REST_SECONDS)

    def reserve(self, worker: str, domain: str, now: float, *, quick_waits: bool) -> float:
        return self._table.reserve(worker, ADDRESS, domain, now, quick_waits=quick_waits)

    def rest(self, worker: str, now: float, *, quick_waits: bool, took_seconds: float | None) -> None:
        self._table.rest(worker, ADDRESS, now, quick_waits=quick_waits, took_seconds=took_seconds)


class InRedis:
    """A fleet's in Redis, by the scripts that its workers run."""

    hold_ms = 60_000

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._keys = address_keys(f"crawl{random.random()}", ADDRESS)
        texts = (SIMULATED_TIME + each.text for each in (scripts.RESERVE, scripts.REST))
        self._reserve, self._rest = (scripts.script(text) for text in texts)
        self._marks: dict[str, str] = {}
        self._domains: dict[str, str] = {}
        self._number = 0

    def reserve(self, worker: str, domain: str, now: float, *, quick_waits: bool) -> float:
        self._number += 1
        mark = self._marks[worker] = f"{worker}:{self._number}"
        self._domains[worker] = domain
        given = self.hold_ms, f"{worker}:rest", domain, int(quick_waits), int(REST_SECONDS * 1000)
        return self._call(self._reserve, now, mark, *given) / 1000

    def rest(self, worker: str, now: float, *, quick_waits: bool, took_seconds: float | None) -> None:
        rest_ms, mark = int(REST_SECONDS * 1000), self._marks[worker]
        took = "" if took_seconds is None else round(took_seconds * 1000)
        given = self.hold_ms, self._domains[worker], int(quick_waits), took
        self._call(self._rest, now, mark, rest_ms, f"{worker}:rest", *given)

    def _call(self, script: scripts.Script, now: float, *arguments: object) -> int:
        answer: int = self._link.call(script, self._keys, *arguments, round(now * 1000))
        return answer


class Domain(NamedTuple):
    """A registered domain at the address, all of whose hosts are one worker's."""

    name: str
    worker: str
    hosts: int = 1
    seconds: float = QUICK_SECONDS  # that its pages take; every robots.txt is quick


class Crawl:
    """Workers and their hosts, each of which always has work."""

    def __init__(self, table: Table, domains: list[Domain], rng: random.Random) -> None:
        self.got: Counter[str] = Counter()
        self._table, self._rng = table, rng
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0
        self._free_at = 0.0  # of the address; infinity while a request is under way
        self._pages: dict[str, Iterator[float]] = {}
        self._benches: dict[str, Workbench] = {}
        self._wakes: dict[str, float] = {}
        self._asked: set[Host] = set()  # for robots.txt
        for domain in domains:
            bench = self._benches.setdefault(
                domain.worker, Workbench(ip_pause_seconds=REST_SECONDS, domain_of=lambda name: name.partition(".")[2])
            )
            for number in range(domain.hosts):
                host = Host(f"www{number}.{domain.name}", next_free=rng.uniform(0.0, PACE_SECONDS))
                self._pages[host.name] = iter([QUICK_SECONDS, *[domain.seconds] * 10_000])
                bench.add(host)

    def run(self, seconds: float) -> Counter[str]:
        """Requests by domain."""
        for worker in self._benches:
            self._later(0.0, partial(self._turns, worker))
        while self._events[0][0] < seconds:
            now, _, act = heappop(self._events)
            act(now)
        return self.got

    def _later(self, at: float, act: Callable[[float], None]) -> None:
        self._number += 1
        heappush(self._events, (at, self._number, act))

    def _turns(self, worker: str, now: float) -> None:
        bench = self._benches[worker]
        while (turn := bench.take(now)) is not None:
            if not turn.address:
                turn = bench.found(turn.host, ADDRESS, 1e12, now)
            if turn is not None:
                self._later(now + self._rng.uniform(*ON_THE_WAY), partial(self._ask, worker, turn.host))
        wake = bench.wake_at()
        if wake is not None:
            self._wakes[worker] = at = max(wake, now) + 0.001
            self._later(at, partial(self._wake, worker))

    def _wake(self, worker: str, now: float) -> None:
        if self._wakes[worker] == now:  # else it has looked meanwhile
            self._turns(worker, now)

    def _ask(self, worker: str, host: Host, now: float) -> None:
        bench, domain = self._benches[worker], host.name.partition(".")[2]
        wait = self._table.reserve(worker, domain, now, quick_waits=bench.ips.quick_waits(ADDRESS))
        if wait:
            bench.refused(host, now, now + abs(wait), gives_way=wait < 0)
            self._turns(worker, now)
            return
        assert now >= self._free_at - 0.001, "two at once, or no pause between"
        self._free_at = float("inf")
        host.asked_at = now
        self.got[domain] += 1
        self._later(now + next(self._pages[host.name]), partial(self._ended, worker, host))

    def _ended(self, worker: str, host: Host, now: float) -> None:
        bench, is_page = self._benches[worker], host in self._asked
        self._asked.add(host)
        self._free_at = now + REST_SECONDS
        took = bench.ended(host, now, now + PACE_SECONDS, work=True, is_page=is_page)
        self._table.rest(worker, now, quick_waits=bench.ips.quick_waits(ADDRESS), took_seconds=took)
        self._turns(worker, now)


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisLink]:
    """To a server of this module."""
    folder: Path = tmp_path_factory.mktemp("redis")
    with redis_server(folder) as server:
        link = RedisLink(server.url)
        yield link
        link.close()


@pytest.fixture(params=["local", "redis"])
def tables(request: pytest.FixtureRequest) -> tuple[Callable[[], Table], float]:
    """Makes tables of one kind, for a crawl of so many seconds."""
    if request.param == "local":
        return Local, SECONDS
    link: RedisLink = request.getfixturevalue("link")
    return lambda: InRedis(link), REDIS_SECONDS


QUICK = Domain("quick.test", "a")
BUSY = Domain("busy.test", "b", 20)
#: What is at the address: who is innocent, and who comes to it.
CASES = {
    "another worker's": ([QUICK], [Domain("slow.test", "b", 3, SLOW_SECONDS)]),
    "its own worker's": ([QUICK], [Domain("slow.test", "a", 3, SLOW_SECONDS)]),
    "both workers'": ([QUICK], [Domain(f"slow{n}.test", worker, 3, SLOW_SECONDS) for n, worker in enumerate("ab")]),
    "three workers'": ([QUICK], [Domain(f"slow{n}.test", worker, 2, SLOW_SECONDS) for n, worker in enumerate("abc")]),
    "one of 40 hosts": ([QUICK], [Domain("slow.test", "b", 40, SLOW_SECONDS)]),
    "beside four sites": (
        [Domain(f"quick{n}.test", "ab"[n % 2]) for n in range(4)],
        [Domain(f"slow{n}.test", "abc"[n], 2, SLOW_SECONDS) for n in range(3)],
    ),
    "quick hosts without end": ([QUICK], [BUSY]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_neighbour_takes_less_than_a_tenth(tables: tuple[Callable[[], Table], float], case: str) -> None:
    """Whichever workers have its hosts and the innocent ones."""
    innocent, others = CASES[case]
    new_table, seconds = tables
    alone, got = (Crawl(new_table(), each, random.Random(7)).run(seconds) for each in (innocent, innocent + others))
    shares = {domain.name: got[domain.name] / alone[domain.name] for domain in innocent}
    assert min(shares.values()) >= LEAST_SHARE, shares
    assert all(got[domain.name] > 3 for domain in others), "they have their part"
