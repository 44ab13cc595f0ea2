"""What a supervisor does for its workers beside keeping them running: addresses, the end, seeds, a word on progress."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.fleet.local.fleet_tables import Counts
from crawlerproject.fleet.local.local_fleet import LocalFleet
from crawlerproject.fleet.local.supervisor_link import SupervisorLink
from crawlerproject.fleet.supervisor import Worker
from crawlerproject.rules.politeness.address_turns import Claim
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.operator_files.control import Control, spool_seeds

#: An address for a host of a domain; no quick one of the worker waits for it.
WANTED = [Claim("1.1.1.1", "1", "b.test", quick_waits=False)]
NAMES = ("worker-1", "worker-2")
SECONDS = 60.0


class Clock:
    """In the test's hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Process(subprocess.Popen[bytes]):
    """The process of the test, as a supervisor would know it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.returncode = 0


def workers_of(folder: CrawlDir) -> list[Worker]:
    """Both run in this process."""
    made = [Worker(name, [sys.executable], folder / f"{name}.log") for name in NAMES]
    for worker in made:
        worker.process = Process()
    return made


@pytest.fixture
def folder(tmp_path: Path) -> CrawlDir:
    """Of the crawl."""
    return CrawlDir(tmp_path)


def fleet_of(folder: CrawlDir, clock: Clock, *, is_new: bool = True) -> LocalFleet:
    """A supervisor's side."""
    return LocalFleet(folder, NAMES, rest_seconds=0.5, log_seconds=10.0, is_new=is_new, clock=clock)


async def link_of(folder: CrawlDir, name: str) -> SupervisorLink:
    """A worker's."""
    return await asyncio.to_thread(SupervisorLink, folder.supervisor_socket, name)


async def reported(worker: SupervisorLink, counts: Counts, *, quiet: bool) -> bool:
    """Report, and wait for the answer: whether the crawl is done."""
    worker.report([], counts, quiet=quiet)
    async with asyncio.timeout(SECONDS):
        while worker._reporting is not None:
            await asyncio.sleep(0.001)
    return worker.done


def test_workers_share_addresses_and_agree_on_the_end(folder: CrawlDir, caplog: pytest.LogCaptureFixture) -> None:
    """A worker that is gone gives its addresses back, and is waited for; at the end all is summed up."""
    caplog.set_level(logging.INFO)
    clock = Clock()

    async def run() -> None:
        fleet = fleet_of(folder, clock)
        await fleet.begin(workers_of(folder))
        one, two = [await link_of(folder, name) for name in NAMES]
        assert await one.reserve([WANTED[0]._replace(domain="a.test"), WANTED[0]._replace(address="2.2.2.2")], []) == [
            0.0,
            0.0,
        ]
        assert await two.reserve(WANTED, []) == [0.05]
        first, second = one, two
        assert not await reported(first, Counts(3, 100, 1, 7), quiet=True)
        assert not await reported(second, Counts(4, 100, 0, 5, "no room"), quiet=False)
        clock.now += 10.0
        fleet.look()
        one.close()
        while NAMES[0] in fleet.server.connected:
            await asyncio.sleep(0.001)
        assert await two.reserve(WANTED, []) == [0.5]
        clock.now += 0.5
        assert await two.reserve(WANTED, []) == [0.0]
        assert not any([await reported(second, Counts(5), quiet=True) for _ in range(4)])
        first = await link_of(folder, NAMES[0])
        done = [await reported(worker, Counts(2), quiet=True) for worker in (first, second) * 2]
        assert done == [False, False, False, True]
        assert await reported(first, Counts(2), quiet=True)
        for worker in (first, second):
            worker.close()
        for name in NAMES:
            fleet.ended(name)
        fleet.close()

    asyncio.run(run())
    said = "\n".join(record.message for record in caplog.records)
    assert "worker-2 pauses: no room; the others go on." in said
    assert "7 pages · 0.7 pages/s · 200 B · 1 error · 12 queued · 2 of 2 workers at work" in said
    assert "The crawl is done: 7 pages (worker-1 5, worker-2 2)" in said
    assert not folder.supervisor_socket.exists()


def test_only_its_own_processes_may_ask(folder: CrawlDir) -> None:
    """One of another name, and one that it has not started."""

    async def run() -> None:
        fleet, workers = fleet_of(folder, Clock()), workers_of(folder)
        workers[1].process = None
        await fleet.begin(workers)
        with pytest.raises(OperatorError, match="'worker-9' is none of its workers"):
            await link_of(folder, "worker-9")
        with pytest.raises(OperatorError, match="it starts worker-2 itself"):
            await link_of(folder, "worker-2")
        fleet.close()

    asyncio.run(run())


def test_after_a_restart_every_address_rests_once(folder: CrawlDir) -> None:
    """Whatever a process before it had asked."""
    clock = Clock()

    async def run() -> None:
        fleet = fleet_of(folder, clock, is_new=False)
        await fleet.begin(workers_of(folder))
        link = await link_of(folder, NAMES[0])
        assert await link.reserve(WANTED, []) == [0.5]
        clock.now += 0.5
        assert await link.reserve(WANTED, []) == [0.0]
        link.close()
        fleet.close()

    asyncio.run(run())


def test_a_worker_that_left_early_leaves_the_crawl_undone(folder: CrawlDir, caplog: pytest.LogCaptureFixture) -> None:
    """The others finish, and the last word says that something is left."""
    caplog.set_level(logging.INFO)

    async def run() -> None:
        fleet = fleet_of(folder, Clock())
        await fleet.begin(workers_of(folder))
        one, two = await link_of(folder, NAMES[0]), await link_of(folder, NAMES[1])
        await reported(one, Counts(1, queued_urls=9), quiet=False)
        one.close()
        fleet.ended(NAMES[0])
        assert [await reported(two, Counts(3), quiet=True) for _ in range(2)] == [False, True]
        two.close()
        fleet.ended(NAMES[1])
        fleet.close()

    asyncio.run(run())
    said = "\n".join(record.message for record in caplog.records)
    assert "This run has ended: 4 pages" in said
    assert "Left for another start: 9 URLs." in said


def test_added_seeds_come_to_every_worker(folder: CrawlDir) -> None:
    """And the crawl does not end before."""
    clock = Clock()

    async def run() -> None:
        fleet = fleet_of(folder, clock)
        await fleet.begin(workers_of(folder))
        links = [await link_of(folder, name) for name in NAMES]
        spool_seeds(folder, ["http://a.test/"])
        assert not any([await reported(worker, Counts(), quiet=True) for _ in range(4) for worker in links])
        fleet.look()
        assert Control(folder).added() == []
        for name in NAMES:
            [path] = Control(folder, folder / name).added()
            assert path.read_text() == "http://a.test/\n"
        for worker in links:
            worker.close()
        fleet.close()

    asyncio.run(run())
