"""The start of a local fleet: one at a time in a folder, after the workers of one that was killed, by its plan."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.fleet.local import local_fleet as local_start
from crawlerproject.fleet.local.local_fleet import LockedCrawl
from crawlerproject.runtime.unix_sockets import listening
from crawlerproject.stores import crawl_dir
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock
from crawlerproject.stores.crawl_folders import alone, read_plan, shared_out, write_plan

# Longer than a worker may take to start.
LOOKS = 40
NAMES = ("worker-1", "worker-2", "worker-3")


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that is held is not asked for again and again."""
    monkeypatch.setattr(crawl_dir, "_LOCK_TRIES", 1)


@pytest.fixture
def folder(tmp_path: Path) -> CrawlDir:
    """Of a crawl that has not begun."""
    made = CrawlDir(tmp_path / "crawl")
    made.mkdir()
    return made


def test_a_new_crawl_is_shared_out(folder: CrawlDir) -> None:
    """Evenly, durably; the folder is another process's no more until it ends."""
    with LockedCrawl(folder) as whole:
        plan = whole.plan("", 3, 16)
        assert (plan.workers, plan.partitions, whole.is_new) == (NAMES, 16, True)
        assert sorted(len(plan.held(name)) for name in NAMES) == [5, 5, 6]
        with pytest.raises(OperatorError, match="in use"):
            take_lock(folder)
    assert read_plan(folder) == plan
    os.close(take_lock(folder))


def test_a_later_start_goes_on_as_before(folder: CrawlDir) -> None:
    """With as many workers, be they named or not."""
    with LockedCrawl(folder) as whole:
        plan = whole.plan("w", 2, 16)
    for name, workers in (("", None), ("", 2), ("w", 2)):
        with LockedCrawl(folder) as whole:
            assert whole.plan(name, workers, 99) == plan
            assert not whole.is_new


def test_another_number_shares_out_anew(folder: CrawlDir) -> None:
    """Before anything runs: three workers of two, and the first has what it is given."""
    with LockedCrawl(folder) as whole:
        whole.plan("", 2, 16)
    with LockedCrawl(folder) as whole:
        plan = whole.plan("", 3, 99)
    assert (plan.workers, plan.partitions) == (NAMES, 16)
    assert read_plan(folder) == plan


def test_by_default_there_is_one_a_core(folder: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a new crawl."""
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    with LockedCrawl(folder) as whole:
        assert whole.plan("", None, 16).workers == NAMES


def test_two_fleets_in_one_folder(folder: CrawlDir) -> None:
    """The second is refused at once, since the first answers."""
    with LockedCrawl(folder), listening(folder.supervisor_socket), pytest.raises(OperatorError, match="in use"):
        LockedCrawl(folder, sleep=lambda seconds: pytest.fail("it waits"))


def test_a_crawl_alone_in_the_folder(folder: CrawlDir) -> None:
    """No worker of its has a lock: after some seconds, in which one might start, it is refused."""
    lock, slept = take_lock(folder), list[float]()
    with pytest.raises(OperatorError, match="in use"):
        LockedCrawl(folder, sleep=slept.append)
    os.close(lock)
    assert sum(slept) >= local_start._STARTING_SECONDS


def test_workers_of_a_killed_supervisor_are_waited_for(folder: CrawlDir, caplog: pytest.LogCaptureFixture) -> None:
    """However long they take; they are named once."""
    assert LOOKS * local_start._LOOK_SECONDS > local_start._STARTING_SECONDS
    write_plan(folder, shared_out(alone(16), NAMES))
    inherited, own = take_lock(folder), take_lock(CrawlDir(folder / NAMES[1]))
    looks = 0

    def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == LOOKS:
            os.close(own)
            os.close(inherited)

    with LockedCrawl(folder, sleep):
        assert looks == LOOKS
    assert [record.message for record in caplog.records] == ["Waiting for workers of an earlier start to end: worker-2"]
