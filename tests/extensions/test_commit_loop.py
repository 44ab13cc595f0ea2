"""When the commit loop commits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from crawlerproject.crawl.run import Tallies
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.errors import StorageError
from crawlerproject.extensions import commit_loop
from crawlerproject.extensions.commit_loop import CommitLoop
from crawlerproject.fleet.local.supervisor_link import SUPERVISOR_GONE
from crawlerproject.runtime.services import services_of


class _Crawler:
    """One without a scheduler: nothing but the test calls ``tick``."""

    signals = SimpleNamespace(connect=lambda *_, **__: None)


class _Crawl:
    """A scheduler as far as commits go: they are counted."""

    def __init__(self) -> None:
        self.commits = 0
        self.state = SimpleNamespace(uncommitted=0)
        self.run = SimpleNamespace(closed=False, lost="", paused="", halted="", tallies=Tallies(), now=lambda: 7.0)
        self.committing = asyncio.Lock()
        frontier = SimpleNamespace(state=self.state, hosts=SimpleNamespace(probe_again=lambda now: False))
        self.commit_failed = 0
        self.took_seconds, self.clock = 0.0, SimpleNamespace(at=0.0)  # of each commit
        self.role = SimpleNamespace(
            forsaken="", mend=lambda: None, reach=lambda: None, commit_failed=self._commit_failed
        )
        self.trouble = ""
        self.folder, self.min_free_bytes = Path("."), 0
        commits = SimpleNamespace(commit=self._commit)
        self.session = SimpleNamespace(frontier=frontier, commits=commits, role=self.role)
        self.crawl = self

    def _commit_failed(self, frontier: Any, run: Any) -> None:
        self.commit_failed += 1

    async def _commit(self, idle: Any) -> bool:
        self.clock.at += self.took_seconds
        if self.trouble:
            raise StorageError(self.trouble)
        self.commits += 1
        return False

    async def complete_replaced(self) -> None:
        """None was."""

    def idle(self) -> bool:
        """It works."""
        return False


def test_commits_when_the_interval_is_over_and_sooner_when_very_much_has_ended() -> None:
    """What one commit encodes is bounded; a crawl that halts keeps its interval."""
    clock = SimpleNamespace(at=100.0)
    crawler: Any = _Crawler()
    loop, crawl = CommitLoop(crawler, 1.0, lambda: clock.at), _Crawl()
    loop.engine_started()
    scheduler: Any = crawl

    async def ticks() -> list[int]:
        seen = []
        for seconds, uncommitted, halted in (
            (0.5, 499, ""),
            (0.6, 500, "paused"),
            (0.6, 500, ""),
            (1.5, 499, ""),
            (1.6, 0, "paused"),
            (2.5, 9999, ""),
        ):
            clock.at = 100.0 + seconds
            crawl.state.uncommitted, crawl.run.halted = uncommitted, halted
            assert await loop.tick(scheduler)
            seen.append(crawl.commits)
        return seen

    assert commit_loop._MOST_AT_A_TIME == 500
    assert asyncio.run(ticks()) == [0, 0, 1, 1, 2, 3]
    assert crawl.run.tallies.committed_at == 7.0


def test_a_long_commit_holds_up_no_other() -> None:
    """Its time counts from its beginning, so that a long way to Redis has as many; a failure's from its end."""
    clock = SimpleNamespace(at=100.0)
    crawler: Any = _Crawler()
    loop, crawl = CommitLoop(crawler, 1.0, lambda: clock.at), _Crawl()
    crawl.took_seconds, crawl.clock = 0.5, clock
    crawl.run.pause = crawl.run.go_on = lambda *why: None
    loop.engine_started()

    async def seconds_until_the_next() -> float:
        before, began = crawl.commits, clock.at
        while crawl.commits == before:
            clock.at += 0.25
            await loop.tick(cast("Any", crawl))
        return float(clock.at - began)

    async def commits() -> list[float]:
        found = [await seconds_until_the_next() for _ in range(3)]
        crawl.trouble = "Redis does not answer"
        clock.at += 0.5
        await loop.tick(cast("Any", crawl))
        crawl.trouble = ""
        return [*found, await seconds_until_the_next()]

    assert asyncio.run(commits()) == [1.5, 1.0, 1.0, 1.5]


def test_what_was_never_durable_is_late_from_the_start_on() -> None:
    """A first commit that does not come to its end is seen: the lag counts from the engine's start."""

    async def begun() -> float | None:
        crawler, crawl = cast("Any", _Crawler()), _Crawl()
        scheduler = FrontierScheduler.__new__(FrontierScheduler)
        scheduler.crawl = cast("Any", crawl)
        services_of(crawler).provide(scheduler)
        loop = CommitLoop(crawler, 1.0)
        loop.engine_started()
        loop.engine_stopped()
        at: float | None = crawl.run.tallies.committed_at
        return at

    assert asyncio.run(begun()) == 7.0


def test_a_worker_whose_supervisor_died_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, whatever else it waits for: it may be paused, and its next commit may be far off."""
    crawler: Any = _Crawler()
    loop, crawl = CommitLoop(crawler, 1.0, lambda: 100.0), _Crawl()
    loop.engine_started()
    closed: list[str] = []
    monkeypatch.setattr(loop, "close_crawl", closed.append)
    scheduler: Any = crawl
    crawl.run.halted = "paused"
    crawl.role.forsaken = "the supervisor has exited"

    assert asyncio.run(loop.tick(scheduler)) is False
    assert closed == [SUPERVISOR_GONE]
    assert crawl.commits == 0


def test_a_commit_that_cannot_be_made_pauses_the_crawl_and_is_reported() -> None:
    """Others may wait to hear of this worker."""
    crawler: Any = _Crawler()
    loop, crawl = CommitLoop(crawler, 0.0, lambda: 100.0), _Crawl()
    loop.engine_started()
    paused: list[str] = []
    crawl.run.pause, crawl.run.halted = paused.append, "paused"
    crawl.trouble = "no room"
    scheduler: Any = crawl

    assert asyncio.run(loop.tick(scheduler))
    assert (paused, crawl.commit_failed, crawl.commits) == (["no room"], 1, 0)
    assert (crawl.run.tallies.as_dict()["commit_failures"], crawl.run.tallies.committed_at) == (1, None)
