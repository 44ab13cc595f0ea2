"""A page's time stands still while it waits for a turn."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack

import pytest

from crawlerproject.render.page_time import PageTime
from tests.web.waiting import busyness


class Clock:
    """Seconds in the test's hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """The clock's time."""
        return self.now


def test_waits_that_overlap_count_once_and_not_as_the_pages_time() -> None:
    """Two requests wait for 3 s and 4 s, 2 s of them together: the page waits from the first to the last."""

    async def waits() -> None:
        clock = Clock()
        page = PageTime(clock=clock)
        clock.now += 7
        page.begin()
        clock.now += 1
        with ExitStack() as second:
            with page.waiting():
                clock.now += 1
                second.enter_context(page.waiting())
                clock.now += 2
                assert (page.now(), page.waited_seconds) == (1.0, 3.0)
            clock.now += 2
        clock.now += 10

        assert (page.now(), page.waited_seconds) == (11.0, 5.0)

    asyncio.run(waits())


def test_only_a_long_wait_leaves_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ends before it is long says nothing; one that is long says so, and when it has ended."""
    told: list[str] = []

    async def waits(seconds: float) -> None:
        with PageTime(lambda: told.append("waits"), lambda: told.append("goes on")).waiting():
            await asyncio.sleep(seconds)

    asyncio.run(waits(0))
    assert told == []
    monkeypatch.setattr("crawlerproject.render.page_time._LONG_SECONDS", 0.0)
    asyncio.run(waits(0.01))

    assert told == ["waits", "goes on"]


def test_a_limit_leaves_waits_out() -> None:
    """Work that waits longer than its limit is done all the same; work that does not wait is cut."""

    async def work(page: PageTime, *, waits: bool) -> str:
        if waits:
            with page.waiting():
                await asyncio.sleep(0.3)
        else:
            await asyncio.sleep(60)
        return "done"

    async def limited(*, waits: bool) -> str:
        page = PageTime()
        return await page.within(0.15, work(page, waits=waits))

    assert asyncio.run(limited(waits=True)) == "done"
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(limited(waits=False))
    assert time.monotonic() - began < 30 * busyness()


def test_what_the_work_raises_comes_through() -> None:
    """As if it had been awaited itself."""

    async def fails() -> None:
        raise ValueError("its own")

    async def limited() -> None:
        await PageTime().within(10, fails())

    with pytest.raises(ValueError, match="its own"):
        asyncio.run(limited())
