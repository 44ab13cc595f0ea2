"""One crawl of the shared web by a fleet, and what the web's log and the archives say of it."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.broken_fleet.machines import Machine, Power, PoweredRedis, folders_of
from tests.web.judge import judge_captures, judge_pauses, judge_references, read_attempts, read_captures, read_visits
from tests.web.running import RunningWeb

HOSTS = 24  # three at each address
PAGES_A_SECOND = 16  # two at each address: the preset mirror
HOST_SECONDS, IP_SECONDS = 0.25, 0.5
_LOOK_SECONDS = 0.25
_MOST_SECONDS = 1200.0


class Found(NamedTuple):
    """A row of the table."""

    requests: int
    missing: int  # pages that were never answered
    short: int  # pauses at hosts and addresses below the promise
    overlaps: int
    twice: int  # pages asked for once more
    archive: list[str]  # what is missing in the archives or there twice: the latter is what a worker had committed
    faults: list[str]  # all that was seen of the above
    seconds: float


class Trial:
    """A web, a Redis and three machines; ``seconds``: how long an undisturbed crawl lasts, about."""

    def __init__(self, folder: Path, web: RunningWeb, redis: PoweredRedis, shim: Path, seed: int) -> None:
        self.folder = folder
        self.web = web
        self.redis = redis
        self.shim = shim
        self.chance = random.Random(seed)
        self.machines: dict[str, Machine] = {}
        self.notes: list[str] = []
        self.began = time.monotonic()
        world = json.loads((web.folder / "world.json").read_text())
        self.expected = set((web.folder / "expected.txt").read_text().splitlines())
        self.port = world["port"]
        hosts = sorted({url.split("/")[2].split(":")[0] for url in self.expected})
        (web.folder / "allowed").write_text("".join(f"{host}\n" for host in hosts))

    def machine(self, name: str, redis: PoweredRedis | str | None = None) -> Machine:
        """A machine by name, made when it is not there."""
        if name not in self.machines:
            self.machines[name] = Machine(name, self.folder / "machines", self.web, redis or self.redis, self.shim)
        return self.machines[name]

    def power(self, name: str) -> Power:
        """Of a server that is none of the machines."""
        return Power(self.folder / f"{name}-power", self.shim)

    def begin(self, *names: str) -> list[Machine]:
        """Start a worker on each of these machines, or three; return when all ask for pages."""
        made = [self.machine(name) for name in names or ("m1", "m2", "m3")]
        for machine in made:
            machine.start()
        self.until_asked(0.03)
        return made

    def asked(self) -> int:
        """Requests until now."""
        log = self.web.folder / "server.jsonl"
        return log.read_bytes().count(b"\n") if log.exists() else 0

    def until_asked(self, share: float) -> None:
        """Until so much of all pages was asked for."""
        self.until(lambda: self.asked() >= share * len(self.expected), f"{share:.0%} asked for")

    def until(self, done: Callable[[], bool], what: str) -> None:
        """RuntimeError when it does not come."""
        until = time.monotonic() + _MOST_SECONDS
        while not done():
            if time.monotonic() > until:
                raise RuntimeError(f"never: {what}")
            time.sleep(_LOOK_SECONDS)

    def note(self, text: str) -> None:
        """What was seen beside, for the table."""
        self.notes.append(text)
        print(f"  {time.monotonic() - self.began:5.0f} s: {text}", flush=True)

    def until_all_ended(self) -> set[int]:
        """Until no worker runs any more; the statuses of those that ended by themselves since the last call."""
        before = {name: len(machine.ends) for name, machine in self.machines.items()}

        def over() -> bool:
            for machine in self.machines.values():
                machine.look()
            return not any(machine.running for machine in self.machines.values())

        self.until(over, "all workers ended")
        return {status for name, machine in self.machines.items() for _, status in machine.ends[before[name] :]}

    def finish(self) -> None:
        """Until every worker has ended in good order. RuntimeError."""
        if (statuses := self.until_all_ended()) - {0}:
            raise RuntimeError(f"workers ended with {sorted(statuses)}")

    def judge(self) -> Found:
        """Of a crawl that has come to its end."""
        visits = read_visits(self.web.folder / "server.jsonl")
        folders = folders_of(self.machines.values())
        attempts = read_attempts(*(folder / "log" for folder in folders))
        paused = judge_pauses(visits, host_seconds=HOST_SECONDS, ip_seconds=IP_SECONDS, logged=attempts)
        asked = Counter(f"http://{visit.host}:{self.port}{visit.path}" for visit in visits if not visit.cut)
        pages = Counter({url: count for url, count in asked.items() if not url.endswith("/robots.txt")})
        missing = sorted(self.expected - pages.keys())
        archive = judge_captures(read_captures(*(folder / "warc" for folder in folders)), self.expected)
        archive.add(judge_references(*(folder / "warc" for folder in folders)))
        overlaps = [fault for fault in paused.faults if fault.startswith("overlap")]
        short = [fault for fault in paused.faults if not fault.startswith("overlap")]
        faults = [f"never asked for: {url}" for url in missing] + paused.faults + archive.faults
        twice = pages.total() - len(pages)
        seconds = time.monotonic() - self.began
        return Found(len(visits), len(missing), len(short), len(overlaps), twice, archive.faults, faults, seconds)
