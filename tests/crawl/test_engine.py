"""The engine is woken at the earliest moment that was asked for, and not when it could take nothing."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from crawlerproject.crawl.engine import Engine
from crawlerproject.errors import FrontierDamaged
from tests.crawl.sessions import run_of


class Scrapys:
    """As far as Scrapy's engine is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.full = False
        self.ended = ""
        self.spider: Any = object()
        self._slot = SimpleNamespace(nextcall=SimpleNamespace(schedule=self._schedule), inprogress={"a request"})

    def _schedule(self) -> None:
        self.asked += 1

    def needs_backout(self) -> bool:
        """Whether it has all that it may have."""
        return self.full

    async def close_spider_async(self, *, reason: str) -> None:
        """The end."""
        self.ended = reason


@pytest.fixture
def scrapys() -> Scrapys:
    """A running engine."""
    return Scrapys()


def engine_of(scrapys: Scrapys | None) -> Engine:
    """Ours, before that one."""
    return Engine(SimpleNamespace(engine=scrapys), run_of())  # type: ignore[arg-type]


def test_it_is_asked_to_ask(scrapys: Scrapys) -> None:
    """One question of the engine's takes all that is ready."""
    engine_of(scrapys).ask()

    assert scrapys.asked == 1


@pytest.mark.parametrize("why", ["full", "no spider", "closed", "not there"])
def test_it_is_left_alone(scrapys: Scrapys, why: str) -> None:
    """A request that ends has a full one ask; one that ends takes nothing more."""
    engine = engine_of(None if why == "not there" else scrapys)
    scrapys.full = why == "full"
    engine._run.closed = why == "closed"
    if why == "no spider":
        scrapys.spider = None
    engine.ask()

    assert scrapys.asked == 0


def test_the_earliest_moment_counts(scrapys: Scrapys) -> None:
    """A later one does not put it off, an earlier one takes its place, none changes nothing."""
    engine = engine_of(scrapys)

    async def run() -> None:
        engine.ask_at(1000.01, 1000.0)
        engine.ask_at(2000.0, 1000.0)
        engine.ask_at(None, 1000.0)
        engine.ask_at(999.0, 1000.0)
        while not scrapys.asked:
            await asyncio.sleep(0)
        await asyncio.sleep(0.03)

    asyncio.run(run())
    assert scrapys.asked == 1


def test_a_moment_that_is_forgotten(scrapys: Scrapys) -> None:
    """At the end of a crawl nothing wakes the engine."""
    engine = engine_of(scrapys)

    async def run() -> None:
        engine.ask_at(1000.0, 1000.0)
        engine.cancel()
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert scrapys.asked == 0


def test_what_it_has_begun(scrapys: Scrapys) -> None:
    """Before it runs there is nothing."""
    assert cast("set[object]", engine_of(scrapys).requests()) == {"a request"}
    assert engine_of(None).requests() == set()


def test_damage_ends_the_crawl(scrapys: Scrapys, caplog: pytest.LogCaptureFixture) -> None:
    """With its sentence, and a reason that a watcher sees."""
    engine = engine_of(scrapys)

    async def run() -> None:
        engine.stop_for_damage(FrontierDamaged("a block is broken."))
        await asyncio.sleep(0)

    asyncio.run(run())
    assert scrapys.ended == "frontier_damaged"
    assert caplog.messages == ["a block is broken. The crawl stops."]
