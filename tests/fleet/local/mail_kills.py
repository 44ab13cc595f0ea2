"""Two workers in processes of their own, each with its RocksDB, killed again and again, as is their supervisor.

    python -m tests.fleet.local.mail_kills FOLDER KILLS SEED

Each finds links and redirected robots.txt files for the other's hosts. A link that is read twice is known the second
time; of the others it is counted, with the commit, how often they are read. The last lines say what both have.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import IO, Any

from crawlerproject.errors import OperatorError
from crawlerproject.fleet.local.fleet_tables import InboxTable
from crawlerproject.fleet.local.supervisor_link import MAIL, QuestionServer, SupervisorLink
from crawlerproject.frontier.other_workers import Message, RobotsWanted
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.fleet.local.mail_workers import Worker, hosts_of, plan_of

PLAN = plan_of("worker-1", "worker-2")
HOST = {name: hosts_of(PLAN, name, 1)[0] for name in PLAN.workers}
ROUNDS, LINKS = 150, 5
DONE = f"{ROUNDS} 1 {ROUNDS * LINKS}"
"""Causes, whether nothing is on its way, rows."""


class Counting(Worker):
    """Counts each redirected robots.txt that is wanted of it, instead of asking for so many."""

    def __init__(self, crawl: CrawlDir, name: str) -> None:
        self.link = linked(crawl, name)
        super().__init__(name, PLAN, self.link.ask, RocksStore(crawl / name / "frontier"))
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


def linked(crawl: CrawlDir, name: str) -> SupervisorLink:
    """A connection to the supervisor, once it is there and knows that the worker's former process has died."""
    while True:
        try:
            return SupervisorLink(crawl.supervisor_socket, name)
        except OperatorError:
            time.sleep(0.005)


async def supervise(crawl: CrawlDir) -> None:
    """The supervisor's process."""
    inboxes = InboxTable()
    server = QuestionServer(lambda worker, pid: "", lambda worker: None)
    server.answers[MAIL] = lambda worker, *question: inboxes.exchange(*question)
    await server.serve(crawl.supervisor_socket)
    await asyncio.Event().wait()


async def work(crawl: CrawlDir, name: str, said: IO[str]) -> None:
    """A worker's process: it says after each commit how far it is, and whether it waits for nothing.

    It ends with its supervisor.
    """
    worker = Counting(crawl, name)
    own, (other,) = HOST[name], [HOST[each] for each in HOST if each != name]
    done, last = int(worker.store.fact("done") or 0), ""
    while not worker.link.broken:
        if done < ROUNDS:
            worker.find(*(f"http://{other}/{done}/{number}" for number in range(LINKS)))
            wanted = RobotsWanted(f"http://{own}", f"http://{other}/r/{done}", "R", f"http://{own}/robots.txt")
            worker.hosts.send(other, wanted)
            done += 1
            worker.bench.frontier.state.changes.facts.append(("done", b"%d" % done))
        await worker.commit()
        idle = worker.quiet and not worker.mail.unread() and not worker.store.messages.boxes()
        if (now := f"{done} {int(idle)} {len(worker.store.head(own, 10**6))}") != last:
            last = now
            print(now, file=said, flush=True)
        await asyncio.sleep(0.001)


class Process:
    """A worker's, or the supervisor's, which may be killed and started again."""

    def __init__(self, begin: Callable[[IO[str]], Coroutine[Any, Any, None]]) -> None:
        self._begin = begin
        self.start()

    def start(self) -> None:
        """Another one."""
        here, there = os.pipe()
        self.pid, self.said = os.fork(), ""
        if not self.pid:
            os.close(here)
            try:
                asyncio.run(self._begin(os.fdopen(there, "w")))
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

    def end(self, number: int = signal.SIGKILL) -> None:
        """Kill it, unless it ends by itself, and wait for its end."""
        if number:
            os.kill(self.pid, number)
        os.waitpid(self.pid, 0)
        self._says.close()


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill, start again, and judge."""
    crawl, chance = CrawlDir(folder), random.Random(seed)
    for name in HOST:
        (crawl / name).mkdir(parents=True)
    supervisor = Process(lambda said: supervise(crawl))
    running = [Process(partial(work, crawl, name)) for name in HOST]
    try:
        for number in range(kills):
            chance.choice(running).listen(chance.randrange(20))
            one = chance.choice(running)
            one.listen(1)
            if number % 4 == 3:
                supervisor.end()
                for process in running:
                    process.end(0)
                supervisor.start()
                for process in running:
                    process.start()
            else:
                one.end()
                one.start()
        for process in running:
            process.listen(10**6)
    finally:
        for process in [*running, supervisor]:
            process.end()
    print(*map(judged, HOST, [crawl] * len(HOST)), sep="\n")


def judged(name: str, crawl: CrawlDir) -> str:
    """What a worker has: rows, different ones, what was wanted of it, how often each, messages that wait."""
    store = RocksStore(crawl / name / "frontier")
    urls = [row.url for row in store.head(HOST[name], 10**6)]
    counts = [int(count) for _, count in store.facts("count ")]
    return f"{name} {len(urls)} {len(set(urls))} {len(counts)} {set(counts)} {int(bool(store.messages.boxes()))}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
