"""The share of requests that falls into the busiest quarter of servers' days, with quiet hours and without.

    python -m benchmarks.quiet_hours --days 7

Servers of a daily curve in simulated time: each has its busiest hour by chance, those with a country's name in its
evening. Response times follow the curve and chance. The frontier is the real one; only time is not.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from heapq import heappop, heappush
from typing import NamedTuple

from crawlerproject.frontier.passage import Lease
from crawlerproject.frontier.politeness import QuietHours
from crawlerproject.rules.politeness.quiet_hours import BUSY_HOURS, HOURS
from crawlerproject.stores.protocols import Changes
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

_DAY = 86_400.0
_PRESET = "thirtyfold"  # 15 s: a third of the default pace's requests to simulate
_QUEUED = 1_000  # URLs of each host: work for hours
_BEGIN = 1_790_000_000.0 // _DAY * _DAY  # midnight in UTC, September 2026


class Server(NamedTuple):
    """One with a daily curve: ``busiest_hour`` of UTC, response times between quiet and busy."""

    host: str
    busiest_hour: float
    quiet_seconds: float
    busy_seconds: float

    def load(self, now: float) -> float:
        """Its visitors, from 0 to 1."""
        return (1 + math.cos((now % _DAY / 3600 - self.busiest_hour) * math.tau / HOURS)) / 2

    def response_seconds(self, now: float, rng: random.Random) -> float:
        """As its visitors have it, and chance: a log-normal factor, and one answer in fifty that is late by seconds."""
        mean = self.quiet_seconds + (self.busy_seconds - self.quiet_seconds) * self.load(now)
        return mean * rng.lognormvariate(0, 0.5) + (2.0 if rng.random() < 0.02 else 0.0)

    def in_busiest_quarter(self, now: float) -> bool:
        """Whether most visitors are there now."""
        from_busiest = (now % _DAY / 3600 - self.busiest_hour) % HOURS
        return min(from_busiest, HOURS - from_busiest) <= BUSY_HOURS / 2


def servers(count: int, rng: random.Random) -> list[Server]:
    """Of each kind so many: of a country, of none with an hour by chance, and of none without a curve to be seen."""
    found = []
    for number in range(count):
        found += [
            Server(f"site{number}.de", 18.0 + rng.uniform(-2, 2), 0.1, 0.3),
            Server(f"site{number}.com", rng.uniform(0, HOURS), 0.1, 0.3),
            Server(f"site{number}.org", rng.uniform(0, HOURS), 0.1, 0.1),
        ]
    return found


class Outcome(NamedTuple):
    """What one run came to, by the last part of hosts' names."""

    requests: Counter[str]
    busy: Counter[str]
    shortest_seconds: float  # pause of any host


def crawl(every: list[Server], days: float, *, quiet: bool) -> Outcome:
    """Ask each as the frontier says, for so many days; behind each page waits another one."""
    rng, store = random.Random(7), MemoryStore()
    bench = Bench(store, now=_BEGIN, preset=_PRESET, max_urls=10**9)
    hours = bench.politeness.quiet_hours = QuietHours(store) if quiet else None
    by_host = {server.host: server for server in every}
    for server in every:
        bench.add(*(f"http://{server.host}/{number}" for number in range(_QUEUED)))
    out = Outcome(Counter(), Counter(), math.inf)
    under_way: list[tuple[float, int, float, Lease]] = []
    ended: dict[str, float] = {}
    commit_at, asked = _BEGIN, 0
    while bench.now < _BEGIN + days * _DAY:
        while (lease := bench.next()) is not None:
            server, asked = by_host[lease.row.host], asked + 1
            if lease.row.host in ended:
                out = out._replace(shortest_seconds=min(out.shortest_seconds, bench.now - ended[lease.row.host]))
            if not lease.row.kind.is_robots:
                kind = server.host.rpartition(".")[2]
                out.requests[kind] += 1
                out.busy[kind] += server.in_busiest_quarter(bench.now)
                bench.add(f"http://{server.host}/next/{asked}")
            seconds = server.response_seconds(bench.now, rng)
            heappush(under_way, (bench.now + seconds, asked, seconds, lease))
        wake = bench.frontier.wake_at()
        if under_way and (wake is None or under_way[0][0] <= wake):
            bench.now, _, seconds, lease = heappop(under_way)
            bench.answer(lease, ttfb_seconds=seconds)
            ended[lease.row.host] = bench.now
        else:
            bench.now = max(bench.now + 1e-6, wake or 0.0)
        if bench.now >= commit_at:
            commit_at = bench.now + 60.0
            bench.commit()
            if hours is not None:
                facts = hours.facts()
                store.apply(Changes(facts=facts))
                hours.stored(Changes(), facts)
    return out


def main() -> None:
    """Both ways on the same servers, and what it costs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--days", type=float, default=5.0)
    parser.add_argument("--servers", type=int, default=1, help="of each kind")
    given = parser.parse_args()
    every = servers(given.servers, random.Random(1))
    without, with_them = (crawl(every, given.days, quiet=quiet) for quiet in (False, True))
    print(f"{len(every)} servers, {given.days:g} days; share of requests in each server's busiest quarter of the day")
    kinds = {"de": "of a country", "com": "of none, with a curve", "org": "of none, without one to be seen"}
    for kind, words in kinds.items():
        before, after = (run.busy[kind] / run.requests[kind] for run in (without, with_them))
        longer = without.requests[kind] / with_them.requests[kind]
        print(f"{words:32} {before:6.1%} without, {after:6.1%} with; a crawl takes {longer:.2f} times as long")
    for words, run in (("without", without), ("with", with_them)):
        print(f"shortest pause {words}: {run.shortest_seconds:.3f} s")


if __name__ == "__main__":
    main()
