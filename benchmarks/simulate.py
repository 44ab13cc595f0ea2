"""A thousand workers' leases over a million hosts, with an injected clock: balance, take-over time, calls a page.

    python -m benchmarks.simulate --workers 1000 --partitions 4096 --hosts 1_000_000

The workers are real (fleet/redis/fleet_worker.py), as are the scripts and their ``redis-server``; only time is not:
store and workers read one clock that jumps from beat to beat, and no page is fetched. Workers join, a tenth of them is
killed, as many come anew. What the leases cost is counted in calls, round trips and Redis' own CPU time; a page's share
of it follows from how many pages politeness allows a worker with its hosts.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import logging
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from crawlerproject.fleet.redis import fleet_worker as fleet_module
from crawlerproject.fleet.redis.fleet_worker import Fleet, FleetTimes, Identity
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.runtime.clock import SteeredClock
from crawlerproject.stores.redis import membership
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.journals import Granted, PartitionJournals
from crawlerproject.stores.redis.membership import RedisFleet
from crawlerproject.stores.redis.scripts import Script
from tests.stores.redis_servers import redis_server

_TIME = "redis.call('TIME')"
_LEASE_SECONDS = 60.0  # FLEET_LEASE_SECONDS
_BEAT_SECONDS = 1.0  # COMMIT_SECONDS
_HOST_SECONDS = 5.0  # a page a host, at best


class Clock:
    """The time of all workers."""

    now = time.time()

    def __call__(self) -> float:
        return self.now


class SimulatedLink(RedisLink):
    """One connection for all workers; scripts ask it for the time instead of Redis."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._clock = clock
        self.calls = 0
        self._told = (0, 0)
        self._texts: dict[str, Script] = {}
        super().__init__(url)

    def many(self, calls: Sequence[Call]) -> list[Any]:
        """As with real time, but for the time."""
        self.calls += len(calls)
        if len(calls) == 1 and calls[0].name == "TIME":
            return [(int(self._clock.now), int(self._clock.now % 1 * 1e6))]
        return super().many([Call(self._timed(call.name), call.keys, call.arguments) for call in calls])

    def _timed(self, name: Script | str) -> Script | str:
        if isinstance(name, str) or _TIME not in name.text:
            return name
        seconds, micros = int(self._clock.now), int(self._clock.now % 1 * 1e6)
        # In a key: one text a moment would fill Redis with scripts.
        key = "{sim}:now"
        if name.text not in self._texts:
            text = name.text.replace(_TIME, f"redis.call('HMGET', '{key}', 's', 'u')")
            self._texts[name.text] = Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
        if self._told != (seconds, micros):
            self._told = (seconds, micros)
            super().many([Call("HSET", [key], ["s", seconds, "u", micros])])
            self.round_trips -= 1
        return self._texts[name.text]


class Nothing:
    """The frontier, its hosts and the learners of a worker that fetches nothing."""

    @property
    def hosts(self) -> Nothing:
        return self

    @property
    def on_disk(self) -> Nothing:
        return self

    def arrive(self, names: object, now: float) -> None: ...

    def depart(self, names: object) -> None: ...

    def let_go(self, mine: object) -> list[str]:
        return []

    def forget(self, mine: object) -> None: ...

    def unstored(self) -> set[str]:
        return set()


class Leases:
    """The store of a worker without a row: a thousand frontiers would not fit on one machine."""

    quiet = True

    def __init__(self, journals: PartitionJournals) -> None:
        self.journals = journals

    def take_some(
        self, partitions: Sequence[int], lease_ms: int, *, latest: bool, most_seconds: float
    ) -> dict[int, tuple[Granted, list[str]]]:
        taken = self.journals.acquire_some(partitions, lease_ms, latest=latest)
        self.journals.opened(*taken)
        return {partition: (each.granted, []) for partition, each in taken.items()}

    def give_back(self, *partitions: int) -> None:
        self.journals.release(partitions)

    def came(self, hosts: Sequence[str]) -> None: ...

    def hosts_in(self, partition: int) -> list[str]:
        return []

    def sync(self) -> None: ...

    def copy_some(self) -> None: ...


class Crowd:
    """Workers that beat in turn."""

    def __init__(self, link: SimulatedLink, clock: Clock, partitions: int, folder: Path) -> None:
        self.link = link
        self.clock = clock
        self.partitions = partitions
        self.folder = folder
        self.workers: dict[str, Fleet] = {}
        self.rng = random.Random(8)

    def join(self, names: Iterable[str]) -> None:
        """Workers begin."""
        for name in names:
            store: Any = Leases(PartitionJournals(self.link, "sim", name, self.partitions))
            fleet = Fleet(
                store, RedisFleet(self.link, "sim", name, int(_LEASE_SECONDS * 1000)),
                Identity(self.folder / name, "sim", name),
                FleetTimes(_LEASE_SECONDS, answer_seconds=30.0, most_apart_seconds=0.5),
                random.Random(name),
            )  # fmt: skip
            fleet.begin()
            self.workers[name] = fleet

    def kill(self, count: int) -> list[str]:
        """So many are gone without a word."""
        gone = self.rng.sample(sorted(self.workers), count)
        for name in gone:
            del self.workers[name]
        return gone

    async def beat(self) -> None:
        """Every worker's turn, then the time of the next."""
        nothing: Any = Nothing()
        for fleet in list(self.workers.values()):
            self.clock.now += _BEAT_SECONDS / len(self.workers)
            await fleet.turn(nothing, nothing, idle=False, counts={}, paused="")

    async def until(self, done: Callable[[], bool], most_seconds: float) -> float:
        """Beat until it is so; simulated seconds."""
        began = self.clock.now
        while not done():
            assert self.clock.now - began < most_seconds, "never"
            await self.beat()
        return self.clock.now - began

    def held(self) -> list[int]:
        """Partitions by worker."""
        return [len(fleet.leases.held) for fleet in self.workers.values()]

    def all_held(self) -> bool:
        """Whether every partition has a living holder."""
        return sum(self.held()) == self.partitions

    def shared(self) -> bool:
        """Whether all workers hold as many, or one more, and together all."""
        return self.all_held() and max(self.held()) - min(self.held()) <= 1

    async def settle(self, what: str) -> None:
        """Beat until all is held and shared, and say how long each took."""
        print(f"{what:<46}", end="", flush=True)
        held = await self.until(self.all_held, 600)
        print(f"all held after {held:3,.0f} s, ", end="", flush=True)
        print(f"equal shares after {held + await self.until(self.shared, 600):3,.0f} s", flush=True)

    def cpu_micros(self) -> float:
        """What Redis has spent on commands so far."""
        stats = self.link._client.info("commandstats")
        return float(sum(each["usec"] for each in stats.values()))

    def hosts_a_worker(self, hosts: Counter[int]) -> list[int]:
        """Hosts by worker, given those by partition."""
        return sorted(sum(hosts[p] for p in fleet.leases.held) for fleet in self.workers.values())


async def simulate(given: argparse.Namespace, crowd: Crowd) -> None:
    """Join, run, kill, come anew."""
    crowd.join(f"w{number:04}" for number in range(given.workers))
    await crowd.settle(f"{given.workers:,} workers join:")
    print(f"partitions a worker: {min(crowd.held())} to {max(crowd.held())}")
    hosts = Counter(partition_of(f"www.site-{number}.example", given.partitions) for number in range(given.hosts))
    shares, mean = crowd.hosts_a_worker(hosts), given.hosts / given.workers
    print(f"hosts a worker: {shares[0]:,} to {shares[-1]:,}; the most is {shares[-1] / mean:.2f} times the mean")

    trips, calls, cpu = crowd.link.round_trips, crowd.link.calls, crowd.cpu_micros()
    for _ in range(given.beats):
        await crowd.beat()
    seconds = given.beats * _BEAT_SECONDS
    trips, calls, cpu = crowd.link.round_trips - trips, crowd.link.calls - calls, crowd.cpu_micros() - cpu
    total, pages = given.workers * seconds, given.hosts / _HOST_SECONDS * seconds
    print(f"leases of a worker: {trips / total:.2f} round trips/s, {calls / total:.2f} calls/s")
    print(f"leases of all: {cpu / 1e4 / seconds:.1f} % of a core of Redis")
    at_best = f"a page, one in {_HOST_SECONDS:.0f} s a host"
    print(f"{at_best}: {trips / pages:.4f} round trips, {calls / pages:.4f} calls, {cpu / pages:.2f} µs of Redis")

    count = given.workers // 10
    crowd.kill(count)
    await crowd.settle(f"{count:,} workers are killed (lease {_LEASE_SECONDS:.0f} s):")
    crowd.join(f"n{number:04}" for number in range(count))
    await crowd.settle(f"{count:,} workers come anew:")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulate", description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=4096)
    parser.add_argument("--hosts", type=int, default=1_000_000)
    parser.add_argument("--beats", type=int, default=20, help="simulated seconds over which costs are counted")
    given = parser.parse_args()
    logging.disable(logging.WARNING)  # that this machine has another time than all workers
    clock = Clock()
    monkey = cast("Any", fleet_module)
    monkey.since_boot = cast("Any", membership).since_boot = clock
    monkey.CRAWL = SteeredClock(clock, 0.0)  # never apart from the store's
    with tempfile.TemporaryDirectory() as name, redis_server(Path(name) / "redis", "--appendonly", "no") as server:
        link = SimulatedLink(server.url, clock)
        (Path(name) / "lives").mkdir()
        asyncio.run(simulate(given, Crowd(link, clock, given.partitions, Path(name) / "lives")))


if __name__ == "__main__":
    main()
