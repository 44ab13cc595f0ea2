"""The hosts of an earlier run are taken up some at a time, whatever comes between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crawlerproject.crawl.start import loader
from crawlerproject.crawl.start.loader import QueueLoader
from crawlerproject.errors import FrontierDamaged, StorageError


class Frontier:
    """With so many parts to be taken up; ``errors`` come after the first."""

    def __init__(self, parts: int, *errors: Exception) -> None:
        self.parts = parts
        self.errors = list(errors)
        self.first = True

    def begin_loading(self) -> None:
        """The first call."""

    def load_some(self, count: int) -> bool:
        """One part."""
        if self.errors and not self.first:
            raise self.errors.pop(0)
        self.first = False
        self.parts -= 1
        return self.parts > 0


class Engine:
    """Notes why it ends."""

    ended = ""

    def stop(self, reason: str) -> None:
        """For a reason."""
        self.ended = reason

    def stop_for_damage(self, error: FrontierDamaged) -> None:
        """For one that is known."""
        self.ended = "damage"


def load(frontier: Frontier, until: Callable[[list[str]], bool], seconds: float = 2.0) -> tuple[list[str], Engine]:
    """What is called, in order."""
    engine, called = Engine(), list[str]()

    async def run() -> None:
        loaded_by: Any = engine
        of: Any = frontier
        QueueLoader(loaded_by, of, lambda: called.append("wake"), lambda: called.append("done")).begin()
        end = asyncio.get_running_loop().time() + seconds
        while not until(called) and not engine.ended and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.001)

    asyncio.run(run())
    return called, engine


def test_it_is_done_when_the_last_is_taken_up() -> None:
    """Meanwhile the engine is woken: the first are fetched from."""
    called, engine = load(Frontier(4), lambda called: called.count("wake") == 3)

    assert called == ["wake", "wake", "done", "wake"]
    assert engine.ended == ""


def test_a_small_frontier_is_taken_up_at_once() -> None:
    """Before the start is over."""
    assert load(Frontier(1), bool)[0] == ["done"]


def test_without_room_it_goes_on_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The crawl pauses for that by itself."""
    monkeypatch.setattr(loader, "_AGAIN_SECONDS", 0.01)
    called, engine = load(Frontier(2, StorageError("no room")), lambda called: "done" in called)

    assert called[0] == "done"
    assert engine.ended == ""


@pytest.mark.parametrize(
    ("error", "reason"), [(FrontierDamaged("broken"), "damage"), (ValueError("a fault"), "loading_failed")]
)
def test_what_cannot_be_read_ends_the_crawl(error: Exception, reason: str) -> None:
    """Without the rest it would never be over."""
    called, engine = load(Frontier(2, error), lambda called: False)

    assert engine.ended == reason
    assert "done" not in called
