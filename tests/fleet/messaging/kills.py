"""Two workers in processes of their own, each with its RocksDB, killed again and again.

    python -m tests.fleet.messaging.kills FOLDER KILLS SEED

Each finds links and redirected robots.txt files for the other's hosts. A link that is read twice is known the second
time; of the others it is counted, with the commit, how often they are read. The last lines say what both have.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path
from typing import IO

from crawlerproject.frontier.other_workers import Message, RobotsWanted
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.fleet.messaging.workers import Worker, hosts_of, plan_of

PLAN = plan_of("worker-1", "worker-2")
HOST = {name: hosts_of(PLAN, name, 1)[0] for name in PLAN.workers}
ROUNDS, LINKS = 150, 5
DONE = f"{ROUNDS} 1 {ROUNDS * LINKS}"
"""Causes, whether nothing is on its way, rows."""


class Counting(Worker):
    """Counts each redirected robots.txt that is wanted of it, instead of asking for so many."""

    def __init__(self, crawl: CrawlDir, name: str) -> None:
        super().__init__(crawl, name, PLAN, RocksStore(crawl / name / "frontier"))
        self._read, self._counts = self.bench.frontier.read, dict[str, int]()
        self.bench.frontier.read = self.read  # type: ignore[method-assign]

    def read(self, message: Message, now: float) -> None:
        """As the frontier's."""
        if not isinstance(message, RobotsWanted):
            self._read(message, now)
            return
        name = f"count {message.target}"
        self._counts[name] = 1 + (self._counts.get(name) or int(self.store.fact(name) or 0))
        self.bench.frontier.state.changes.facts.append((name, b"%d" % self._counts[name]))


async def work(crawl: CrawlDir, name: str, said: IO[str]) -> None:
    """A worker's process: it says after each commit how far it is, and whether it waits for nothing."""
    worker = Counting(crawl, name)
    await worker.box.start()
    own, (other,) = HOST[name], [HOST[each] for each in HOST if each != name]
    done, last = int(worker.store.fact("done") or 0), ""
    while True:
        if done < ROUNDS:
            worker.find(*(f"http://{other}/{done}/{number}" for number in range(LINKS)))
            wanted = RobotsWanted(f"http://{own}", f"http://{other}/r/{done}", "R", f"http://{own}/robots.txt")
            worker.box.hosts.send(other, wanted)
            done += 1
            worker.bench.frontier.state.changes.facts.append(("done", b"%d" % done))
        await worker.commit()
        idle = worker.box.quiet and not worker.box.unread() and not worker.store.messages.holds()
        if (now := f"{done} {int(idle)} {len(worker.store.head(own, 10**6))}") != last:
            last = now
            print(now, file=said, flush=True)
        await asyncio.sleep(0.001)


class Process:
    """A worker's, which may be killed and started again."""

    def __init__(self, crawl: CrawlDir, name: str) -> None:
        (crawl / name).mkdir(parents=True)
        self._crawl, self._name = crawl, name
        self.start()

    def start(self) -> None:
        """Another one."""
        here, there = os.pipe()
        self.pid, self.said = os.fork(), ""
        if not self.pid:
            os.close(here)
            try:
                asyncio.run(work(self._crawl, self._name, os.fdopen(there, "w")))
            finally:
                os._exit(1)
        os.close(there)
        self._says = os.fdopen(here)

    def listen(self, times: int) -> None:
        """Wait until it has said so much, or that it is done."""
        while times and self.said != DONE:
            times -= 1
            self.said = self._says.readline().strip()
            assert self.said, "it has died by itself"

    def end(self) -> None:
        """Kill it, and wait for its end."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._says.close()


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill, start again, and judge."""
    crawl, chance = CrawlDir(folder), random.Random(seed)
    running = [Process(crawl, name) for name in HOST]
    try:
        for _ in range(kills):
            chance.choice(running).listen(chance.randrange(20))
            one = chance.choice(running)
            one.listen(1)
            one.end()
            one.start()
        for process in running:
            process.listen(10**6)
    finally:
        for process in running:
            process.end()
    print(*map(judged, HOST, [crawl] * len(HOST)), sep="\n")


def judged(name: str, crawl: CrawlDir) -> str:
    """What a worker has: rows, different ones, what was wanted of it, how often each, messages that wait."""
    store = RocksStore(crawl / name / "frontier")
    urls = [row.url for row in store.head(HOST[name], 10**6)]
    counts = [int(count) for _, count in store.facts("count ")]
    return f"{name} {len(urls)} {len(set(urls))} {len(counts)} {set(counts)} {int(store.messages.holds())}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
