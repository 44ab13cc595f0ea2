"""What tunes and watches a crawl's process: collector, event loop, first steps of tasks, systemd's watchdog."""

from __future__ import annotations

import asyncio
import gc
import inspect
import mmap
import re
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.core.scraper import Scraper
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.signalmanager import SignalManager
from scrapy.spiders import Spider
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.asyncio import _parallel_asyncio

from crawlerproject.extensions import process_tuning
from crawlerproject.extensions.process_tuning import (
    EAGER,
    GC_THRESHOLDS,
    HELD,
    SILENT_SECONDS,
    WORKED,
    GarbageCollectorTuning,
    LargePages,
    LoopLatency,
    ServiceWatchdog,
    begin_as_usual,
    begin_early,
    task_factory,
)
from tests.web.waiting import eventually

TICKS = 20  # of a second each


class Thing:
    """One that the collector walks."""


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generations that are collected while the test runs, which alone starts collections."""
    found: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            found.append(info["generation"])

    gc.disable()
    gc.collect()
    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)
    gc.enable()


def test_each_tick_collects_what_is_young_and_the_fourth_its_survivors(collections: list[int]) -> None:
    """Five of survivors in twenty seconds, none of everything."""
    tuning = GarbageCollectorTuning()
    for _ in range(TICKS):
        tuning.tick()

    assert collections == [0, 0, 0, 1] * 5


def test_what_python_does_not_count_is_walked_in_parts(collections: list[int]) -> None:
    """New objects for old ones: Python's own count stays where it was, and would let the young become all."""
    tuning = GarbageCollectorTuning()
    things = [Thing() for _ in range(2_000)]
    tuning.tick()
    most = 0
    for start in range(0, len(things), 100):
        things[start : start + 100] = [Thing() for _ in range(100)]
        assert gc.get_count()[0] < GC_THRESHOLDS[0]
        most = max(most, sum(type(each) is Thing for each in gc.get_objects(generation=0)))
        tuning.tick()

    assert most == 100


def test_a_circle_goes_that_lived_through_many_ticks(collections: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is looked at once its time has come."""
    monkeypatch.setattr(process_tuning, "GC_THRESHOLDS", (5_000, 160, 3))
    tuning, thing = GarbageCollectorTuning(), Thing()
    thing.__dict__["itself"] = thing
    for _ in range(2 * TICKS):
        tuning.tick()
    del thing
    before = len(collections)
    for _ in range(2 * TICKS):
        tuning.tick()

    assert 2 in collections[before:]
    assert not any(type(each) is Thing for each in gc.get_objects())


SMAPS = """\
55d000000000-55d000a00000 rw-p 00000000 00:00 0                          [heap]
Size:              10240 kB
Rss:               10000 kB
VmFlags: rd wr mr mw me ac
7f0000100000-7f0000700000 rw-p 00000000 00:00 0
Rss:                6144 kB
7f1000000000-7f1000800000 rw-p 00000000 00:00 0
Rss:                 132 kB
7f2000000000-7f2000800000 rw-s 00000000 00:01 77                         /dev/zero (deleted)
Rss:                8192 kB
7f3000000000-7f3000800000 r-xp 00000000 08:01 12                         /usr/lib/libpython3.11.so.1.0
Rss:                8192 kB
7ffd00000000-7ffd00800000 rw-p 00000000 00:00 0                          [stack]
Rss:                8192 kB
"""


def test_large_pages_are_of_own_memory_that_is_in_use() -> None:
    """The heap and what was mapped for the process; no file, no stack, nothing of which little is in memory."""
    heap = range(0x55D000000000, 0x55D000A00000, 2 << 20)
    assert process_tuning.large_extents(SMAPS.splitlines()) == [*heap, 0x7F0000200000, 0x7F0000400000]


def test_what_is_in_large_pages_is_what_it_was() -> None:
    """Where the kernel can: eight megabytes in use are in large pages, and say the same."""
    with mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.write(bytes(range(256)) * (1 << 15))
        if not process_tuning.enlarge_pages():
            pytest.skip("this kernel makes none when it is asked to")
        large = re.findall(r"AnonHugePages: +(\d+)", Path("/proc/self/smaps").read_text())
        assert sum(map(int, large)) >= 6 << 10
        assert memory[:] == bytes(range(256)) * (1 << 15)


def test_pages_are_enlarged_until_the_crawl_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Again and again, in a thread of its own; where the machine's operator forbids it never."""
    threads: list[threading.Thread] = []
    monkeypatch.setattr(process_tuning, "_LARGE_PAGES_SECONDS", 0.001)
    monkeypatch.setattr(process_tuning, "enlarge_pages", lambda: threads.append(threading.current_thread()))

    async def crawl() -> int:
        tuning = LargePages(Crawler(Spider))
        tuning.spider_opened()
        while len(threads) < 3:
            await asyncio.sleep(0.001)
        tuning.spider_closed()
        await asyncio.get_running_loop().shutdown_default_executor()
        return len(threads)

    assert asyncio.run(crawl()) == len(threads)
    assert threading.main_thread() not in threads
    monkeypatch.setattr(Path, "read_text", lambda path: "always madvise [never]\n")
    with pytest.raises(NotConfigured):
        LargePages.of(Crawler(Spider))


_HOLD_SECONDS = 0.2


def _longest(hold: Callable[[], None]) -> tuple[float, float]:
    """What is measured while ``hold`` is called once within the loop."""
    stats = MemoryStatsCollector(Crawler(Spider))

    async def run() -> None:
        holds = LoopLatency(stats)
        holds.spider_opened()
        await eventually(lambda: stats.get_value(HELD) is not None)  # it looks, and sees nothing yet
        hold()
        await eventually(lambda: stats.get_value(HELD) >= _HOLD_SECONDS * 0.9)
        holds.spider_closed()

    asyncio.run(run())
    return stats.get_value(HELD), stats.get_value(WORKED)


def _work() -> None:
    until = time.thread_time() + _HOLD_SECONDS
    while time.thread_time() < until:
        pass


def test_work_is_a_hold() -> None:
    """A callback that computes for long is the loop's hold and the thread's work."""
    held, worked = _longest(_work)

    assert held >= worked >= _HOLD_SECONDS * 0.9


def test_waiting_is_a_hold_without_work() -> None:
    """What blocks without computing holds the loop all the same."""
    held, worked = _longest(lambda: time.sleep(_HOLD_SECONDS))

    assert held >= _HOLD_SECONDS * 0.9
    assert worked < held / 2


class CrawlerDouble:
    """As far as an extension needs one."""

    def __init__(self, *, crawling: bool = True) -> None:
        self.crawling = crawling
        self.signals = SignalManager(self)


class Manager:
    """systemd's end of the socket."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(address)
        self.heard: list[str] = []

    def listen(self) -> list[str]:
        """All that has been said so far."""
        while True:
            try:
                self.heard.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return self.heard

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    """One that listens, as the environment says."""
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    listening = Manager(str(tmp_path / "notify"))
    yield listening
    listening.close()


def made(**state: bool) -> ServiceWatchdog:
    """As Scrapy makes it."""
    return ServiceWatchdog.from_crawler(CrawlerDouble(**state))  # type: ignore[arg-type]


SPIDER: Any = SimpleNamespace(recrawl=False)
RECRAWL: Any = SimpleNamespace(recrawl=True)


async def opened_and_closed(watchdog: ServiceWatchdog, manager: Manager, least: int, spider: Any = SPIDER) -> None:
    """A crawl of which so many words were heard; then a time in which an open one would have said more."""
    watchdog.spider_opened(spider)
    assert bool(manager.listen()) == bool(least and spider is SPIDER)
    await eventually(lambda: len(manager.listen()) >= least)
    watchdog.spider_closed()
    said = len(manager.listen())
    loop = asyncio.get_running_loop()
    later = loop.create_future()
    loop.call_later(0.05, later.set_result, None)  # after what is left of the watchdog's timer
    await later
    assert len(manager.listen()) == said


def test_silence_counts_while_the_crawl_is_open(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, again and again, and not while it closes; the unit's own time goes before ours."""
    monkeypatch.setenv("WATCHDOG_USEC", "40000")
    asyncio.run(opened_and_closed(made(), manager, 4))
    first, *beats, last = manager.heard

    assert first == "WATCHDOG_USEC=40000"
    assert set(beats) == {"WATCHDOG=1"}
    assert last == "WATCHDOG_USEC=0"


def test_a_recrawl_chooses_first(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    """That may hold the loop for minutes: systemd hears of the watchdog when it turns again."""
    monkeypatch.setenv("WATCHDOG_USEC", "40000")
    asyncio.run(opened_and_closed(made(), manager, 2, RECRAWL))

    assert manager.heard[:2] == ["WATCHDOG_USEC=40000", "WATCHDOG=1"]
    assert manager.heard[-1] == "WATCHDOG_USEC=0"


def test_without_a_time_of_the_units_it_is_ours(manager: Manager) -> None:
    """Which is longer than any hold of the loop."""
    asyncio.run(opened_and_closed(made(), manager, 2))

    assert manager.heard == [f"WATCHDOG_USEC={int(SILENT_SECONDS * 1_000_000)}", "WATCHDOG=1", "WATCHDOG_USEC=0"]


def test_a_manager_that_is_gone_stops_nothing(manager: Manager, tmp_path: Path) -> None:
    """Nothing is raised."""
    (tmp_path / "notify").unlink()
    asyncio.run(opened_and_closed(made(), manager, 0))

    assert manager.heard == []


def test_an_address_that_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux's abstract names, which systemd gives in a container."""
    name = f"polite-crawler-test-{id(monkeypatch)}"
    listening = Manager(f"\0{name}")
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
    made().spider_closed()

    assert listening.listen() == ["WATCHDOG_USEC=0"]
    listening.close()


@pytest.mark.parametrize("crawling", [True, False])
def test_where_nothing_listens_there_is_none(crawling: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside systemd, and in a shell."""
    monkeypatch.setenv("NOTIFY_SOCKET", "" if crawling else "/run/nowhere")
    with pytest.raises(NotConfigured):
        made(crawling=crawling)


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


@pytest.mark.skipif(not process_tuning.POSSIBLE, reason="Python 3.12 brought them")
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
        monkeypatch.setattr(process_tuning, "POSSIBLE", False)
        assert not begin_early(loop)
        assert loop.get_task_factory() is None
        monkeypatch.setattr(process_tuning, "POSSIBLE", True)

        def own(loop: Any, coro: Any, **_: Any) -> Any:
            raise NotImplementedError

        loop.set_task_factory(own)
        assert not begin_early(loop)
        begin_as_usual(loop)
        assert loop.get_task_factory() is own
    finally:
        loop.close()
