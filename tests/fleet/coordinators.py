"""A crawl's coordinator and its workers' ways to it: in process, by the supervisor's socket, in Redis, in a cluster.

Time is in the test's hand; the tables, the socket, the scripts and the server are those of a crawl.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Coroutine, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pytest

from crawlerproject.fleet.local.local_fleet import LocalFleet
from crawlerproject.fleet.local.supervisor_link import QuestionServer, SupervisorLink, json_line
from crawlerproject.fleet.questions import Coordinator
from crawlerproject.fleet.redis.fleet_worker import FleetTimes, RedisCoordinator
from crawlerproject.fleet.supervisor import Worker
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis import membership
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import fleet_keys, worker_keys
from crawlerproject.stores.redis.membership import RedisFleet
from crawlerproject.stores.redis.scripts import Script, script
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.stores.redis_crawls import numbers

NAMES = ("worker-1", "worker-2", "worker-3")
REST_SECONDS, ANSWER_SECONDS, LEASE_SECONDS = 0.5, 2.0, 60.0
#: Until then whatever a worker that died has reserved is free again.
FREE_SECONDS = 10.0
_BEGAN = 1000.0
_SECONDS = 60.0

T = TypeVar("T")

#: Put before a script it gives Redis the simulation's time (the last of ARGV, in ms), also where an address expires.
SIMULATED_TIME = """
local real, at = redis, tonumber(ARGV[#ARGV])
local redis = {}
local function left(key) return (tonumber(real.call('HGET', key .. ':at', 'until') or 0)) - at end
function redis.call(name, key, ...)
  local given = {...}
  if name == 'TIME' then return {math.floor(at / 1000), at % 1000 * 1000} end
  if name == 'PTTL' then return left(key) end
  if name == 'GET' and left(key) <= 0 then return false end
  if name == 'PEXPIRE' then
    if string.sub(key, -5) ~= 'turns' then real.call('HSET', key .. ':at', 'until', at + given[1]) end
    return 1
  end
  if name == 'SET' then
    real.call('HSET', key .. ':at', 'until', at + given[3])
    return real.call('SET', key, given[1])
  end
  return real.call(name, key, ...)
end
"""


class Crawl:
    """Its workers by name. A process that joins follows one that has died."""

    outlives_questions = True  # a worker whose question got no answer goes on

    def __init__(self) -> None:
        self.now = _BEGAN
        self.runner = asyncio.Runner()

    def ask(self, question: Coroutine[Any, Any, T]) -> T:
        """What is answered."""
        return self.runner.run(question)

    def join(self, name: str) -> Coordinator:
        """A new process of the worker begins."""
        raise NotImplementedError

    def die(self, name: str) -> None:
        """Its process is killed."""

    def commits(self, name: str, pages: int) -> bool:
        """The worker has had so many pages; whether that counts, or it was taken for dead."""
        raise NotImplementedError

    def away(self, name: str) -> bool:
        """It stands still for long; whether others take it for dead."""
        return False

    def back(self, name: str) -> None:
        """It goes on."""

    def leave(self, name: str) -> None:
        """Its process has died and none follows it."""

    def set_clock(self, seconds: float) -> None:
        """The clock of what is asked is set by so much, where it has one that can be."""

    def close(self) -> None:
        """At the end."""
        self.runner.close()


class _Process(subprocess.Popen[bytes]):
    """The process of the test, as a supervisor would know it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.returncode = 0


class _Direct(SupervisorLink):
    """Questions as they come out of a socket, without one."""

    def __init__(self, server: QuestionServer, worker: str) -> None:
        self._server, self._worker = server, worker

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Through JSON and back."""
        return orjson.loads(json_line(self._server.answers[name](self._worker, *orjson.loads(json_line(arguments)))))


class InProcess(Crawl):
    """A supervisor's tables."""

    outlives_questions = False  # none gets lost but with the supervisor or the worker

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.pages = CrawlDir(folder), dict.fromkeys(NAMES, 0)
        self.fleet = LocalFleet(
            self.folder, NAMES, rest_seconds=REST_SECONDS, log_seconds=0.0, is_new=True, clock=lambda: self.now
        )
        workers = [Worker(name, [sys.executable], folder / f"{name}.log") for name in NAMES]
        for worker in workers:
            worker.process = _Process()
            CrawlDir(folder / worker.name).mkdir()
        self.ask(self.fleet.begin(workers))
        self.links: dict[str, SupervisorLink] = {}

    def join(self, name: str) -> Coordinator:
        self.die(name)
        self.links[name] = link = self.connected(name)
        return link

    def connected(self, name: str) -> SupervisorLink:
        """A new connection of the worker's."""
        return _Direct(self.fleet.server, name)

    def die(self, name: str) -> None:
        if self.links.pop(name, None) is not None:
            self.fleet.server.disconnected(name)

    def commits(self, name: str, pages: int) -> bool:
        self.pages[name] = pages
        return True

    def leave(self, name: str) -> None:
        self.die(name)
        with closing(RocksStore(CrawlDir(self.folder / name).frontier)) as store:
            store.apply(Changes(facts=[("totals", orjson.dumps([self.pages[name], 0, 0, 0.0]))]))
        self.fleet.ended(name)

    def close(self) -> None:
        for name in NAMES:
            self.die(name)
        self.fleet.close()
        super().close()


class BySocket(InProcess):
    """The same, as workers ask them."""

    def connected(self, name: str) -> SupervisorLink:
        return self.ask(asyncio.to_thread(SupervisorLink, self.folder.supervisor_socket, name))

    def die(self, name: str) -> None:
        if (link := self.links.pop(name, None)) is not None:
            link.close()
            self.ask(self._gone(name))

    async def _gone(self, name: str) -> None:
        async with asyncio.timeout(_SECONDS):
            while name in self.fleet.server.connected:
                await asyncio.sleep(0)


class _SimulatedLink(RedisLink):
    """A connection to a server that goes by the crawl's time."""

    def __init__(self, url: str, crawl: InRedis) -> None:
        super().__init__(url)
        self._crawl = crawl
        self._scripts: dict[str, Script] = {}

    def many(self, calls: Sequence[Call]) -> list[Any]:
        return super().many(list(map(self._simulated, calls)))

    def _simulated(self, call: Call) -> Call:
        name, milliseconds = call.name, round(1000 * (self._crawl.now + self._crawl.set_by))
        if isinstance(name, str) or "call('TIME')" not in name.text:
            return call
        if name.sha not in self._scripts:
            self._scripts[name.sha] = script(SIMULATED_TIME + name.text)
        return Call(self._scripts[name.sha], call.keys, [*call.arguments, milliseconds])


class InRedis(Crawl):
    """What Redis has."""

    def __init__(self, url: str, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.set_by = 0.0
        patch.setattr(membership, "since_boot", lambda: self.now)
        self.link, self.crawl = _SimulatedLink(url, self), f"coordinated-{next(numbers)}"
        self.lives: dict[str, str] = {}
        self._life = count()
        self._keys = fleet_keys(self.crawl)

    def join(self, name: str) -> Coordinator:
        fleet = RedisFleet(self.link, self.crawl, name, int(1000 * LEASE_SECONDS))
        before, life = [self.lives[name]] if name in self.lives else [], f"life-{next(self._life)}"
        self.lives[name] = life
        fleet.begin(life, before, len(NAMES))
        self.link.call("HSET", [worker_keys(self.crawl, name).state], "life", life)
        coordinator = RedisCoordinator(fleet, FleetTimes(LEASE_SECONDS, ANSWER_SECONDS, 0.5, REST_SECONDS))
        coordinator.quotas.incarnation = life
        return coordinator

    def commits(self, name: str, pages: int) -> bool:
        state = worker_keys(self.crawl, name).state
        if self.link.call("HGET", [state], "life") != self.lives[name].encode():
            return False
        self.link.call("HSET", [state], "fact:totals", orjson.dumps([pages, 0, 0, 0.0]))
        return True

    def away(self, name: str) -> bool:
        self.link.call("ZADD", [self._keys.seen], 0, name)
        return True

    def back(self, name: str) -> None:
        self.link.call("ZADD", [self._keys.seen], round(1000 * (self.now + self.set_by)), name)

    def leave(self, name: str) -> None:
        self.away(name)

    def set_clock(self, seconds: float) -> None:
        self.set_by += seconds

    def close(self) -> None:
        self.link.close()
        super().close()
