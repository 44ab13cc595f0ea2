"""Which tasks begin at once: for real where Python can, and by what the factory asks of asyncio elsewhere."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

import pytest
import uvloop
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.core.scraper import Scraper
from scrapy.utils.asyncio import _parallel_asyncio

from crawlerproject.runtime import eager_tasks
from crawlerproject.runtime.eager_tasks import EAGER, begin_as_usual, begin_early, task_factory


class Stand:
    """Stands for Scrapy's."""

    async def _wait_for_processing(self, seen: list[str]) -> None:
        seen.append("scrapy's")
        await asyncio.sleep(0)


Stand._wait_for_processing.__qualname__ = "Scraper._wait_for_processing"


async def others(seen: list[str]) -> None:
    """A task of a project."""
    seen.append("a project's")


def test_they_are_scrapys_of_this_version() -> None:
    """A name that Scrapy has no more would be eager no more."""
    nested = {code.co_qualname for code in _parallel_asyncio.__code__.co_consts if inspect.iscode(code)}
    methods = (DownloaderMiddlewareManager.download_async, Downloader._wait_for_download, Scraper._wait_for_processing)

    assert {method.__qualname__ for method in methods} | nested >= EAGER
    assert all(inspect.iscoroutinefunction(method) for method in methods)


@pytest.mark.parametrize(
    ("asked", "coroutine", "expected"),
    [
        ({}, Stand()._wait_for_processing, True),
        ({}, others, False),
        ({"eager_start": None, "context": None}, Stand()._wait_for_processing, True),
        ({"eager_start": False}, Stand()._wait_for_processing, False),
        ({"eager_start": True, "name": "n"}, others, True),
    ],
)
def test_the_factory_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], coroutine: Any, expected: bool
) -> None:
    """Of the named coroutines alone, whatever uvloop and asyncio of several versions hand on; a caller's word wins."""
    made: list[dict[str, Any]] = []

    def task(coro: Coroutine[Any, Any, None], **options: Any) -> None:
        coro.close()
        made.append(options)

    monkeypatch.setattr(asyncio, "Task", task)
    loop: Any = object()
    task_factory(loop, coroutine([]), **asked)

    kept = {name: value for name, value in asked.items() if name != "eager_start"}
    assert made == [{"loop": loop, "eager_start": expected, **kept}]


@pytest.mark.skipif(not eager_tasks.POSSIBLE, reason="Python 3.12 brought them")
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_they_begin_before_the_next_line(new_loop: Any) -> None:
    """Scrapy's run until they wait; a project's begins in the next turn."""
    seen: list[str] = []

    async def crawl() -> None:
        loop = asyncio.get_running_loop()
        assert begin_early(loop)
        tasks = [loop.create_task(Stand()._wait_for_processing(seen)), loop.create_task(others(seen))]
        seen.append("the next line")
        await asyncio.wait(tasks)
        begin_as_usual(loop)
        assert loop.get_task_factory() is None

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(crawl())

    assert seen == ["scrapy's", "the next line", "a project's"]


def test_a_loop_with_a_factory_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one of an older Python is left as it is."""
    loop = asyncio.new_event_loop()
    try:
        monkeypatch.setattr(eager_tasks, "POSSIBLE", False)
        assert not begin_early(loop)
        assert loop.get_task_factory() is None
        monkeypatch.setattr(eager_tasks, "POSSIBLE", True)

        def own(loop: Any, coro: Any, **_: Any) -> Any:
            raise NotImplementedError

        loop.set_task_factory(own)
        assert not begin_early(loop)
        begin_as_usual(loop)
        assert loop.get_task_factory() is own
    finally:
        loop.close()
