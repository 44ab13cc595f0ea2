"""What tunes and watches a crawl's process: collector, event loop, first steps of tasks, systemd's watchdog.

``GarbageCollectorTuning`` suits Python's collector to thousands of requests in flight. ``LoopLatency`` measures how
long the event loop was held up: while one piece of work runs, nothing is answered and no pause ends.
``LargePages`` has the kernel keep in pages of 2 MB what the process has in memory.
``ServiceWatchdog`` tells systemd that the loop turns, so that a crawl that hangs is started again (sd_notify(3)).
``EagerTasks`` has Scrapy's tasks begin at once instead of in the next turn of the loop (Python 3.12 and later). Scrapy
makes five tasks for each request, most of which have nothing to wait for at first: begun at once they are 0.73 of 12.3
million instructions a page cheaper. What begins earlier happens in another order, so only the tasks of ``EAGER`` do;
those of a project's code begin when asyncio says.
https://docs.python.org/3/library/asyncio-task.html#eager-task-factory
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Self

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.statscollectors import StatsCollector

from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.extensions.crawl_task import CrawlExtension
from crawlerproject.runtime.services import services_of

EAGER = frozenset(
    {
        "DownloaderMiddlewareManager.download_async",
        "Downloader._wait_for_download",
        "Scraper._wait_for_processing",
        "_parallel_asyncio.<locals>.fill_queue",
        "_parallel_asyncio.<locals>.worker",
    }
)
"""Scrapy's own, a request's, by their qualified names."""

POSSIBLE = sys.version_info >= (3, 12)
"""Whether this Python has them."""

# With Python's (700, 10, 10) half the CPU of a busy crawl goes into walking live requests (our measurement). Beyond
# these Python collects by itself, in a burst; else a timer does. What Python counts says little of what it then walks:
# each older object that goes is counted against a new one, and tuples and coroutines from its free lists never count.
# With 10,000 hosts it waited for 57,000 objects, and a collection held the event loop for 40 to 100 ms.
# Everything is looked at after as many collections of survivors as two hours have.
GC_THRESHOLDS = (20_000, 160, 1_800)
# From one collection of the youngest to the next: 500 requests at 500 a second. What is in flight then is walked once,
# so that shorter intervals cost more in all; longer ones hardly more at a time, for no more than LEAST of the window
# and what hosts keep of each request are alive.
_YOUNG_SECONDS = 1.0
# Collections of the youngest for each of what survived them: hosts and requests of four seconds, not of a minute.
_YOUNG_A_SURVIVORS = 4

_TICK_SECONDS = 0.01  # what a hold is measured to; a thousandth of the processor

_HOLD_SECONDS = 0.05  # what nothing should hold the loop for (runtime/loop_budget.py)

HELD, WORKED = "loop/longest_hold_seconds", "loop/longest_work_seconds"

HOLDS, HELD_SUM = "loop/holds", "loop/held_seconds"

_LARGE_BYTES = 2 << 20  # of x86-64, and of ARM with small pages of 4 KB; where large ones are larger nothing happens
# From one look to the next, which takes 10 ms, and 5 for each large page that the kernel makes (measured).
_LARGE_PAGES_SECONDS = 30.0
# Of a mapping so much is in memory at least: a thread's stack, of which nearly nothing is, would grow to all of it.
_LEAST_RESIDENT = 0.75
_MADV_COLLAPSE = 25  # madvise(2), Linux 6.1 and later

# Silence after which systemd ends the crawl. No hold of the loop comes near it but the choice of a recrawl: the longest
# were seconds (LoopLatency), and a machine that pages for minutes is not helped by another start.
SILENT_SECONDS = 600.0

# What systemd's own sd_watchdog_enabled(3) advises: half of the time at most.
_BEATS_A_SILENCE = 4

_MICROSECONDS = 1_000_000


class _Timed(CrawlExtension):
    """Works by a timer of its own."""

    _timer: asyncio.TimerHandle | None = None

    def _arm(self, seconds: float, ring: Callable[[], None]) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, ring)

    def spider_closed(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()


class GarbageCollectorTuning(_Timed):
    """Freezes what start-up made and collects in small parts. Our own code makes no cycles on the hot path.

    After the crawl Python collects by its counts alone.
    """

    def __init__(self) -> None:
        self._ticks = 0

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """A shell keeps Python's defaults."""
        return cls()

    def spider_opened(self) -> None:
        """Everything made by now stays: never look at it again. A collection first would take 0.08 s for little."""
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        self._arm(_YOUNG_SECONDS, self._ring)

    def _ring(self) -> None:
        self.tick()
        self._arm(_YOUNG_SECONDS, self._ring)

    def tick(self) -> None:
        """Collect what was made since the last tick; now and then its survivors, rarely everything."""
        self._ticks += 1
        if self._ticks % _YOUNG_A_SURVIVORS:
            gc.collect(0)
        elif gc.get_count()[2] < GC_THRESHOLDS[2]:
            gc.collect(1)
        else:
            gc.collect()


class LoopLatency(_Timed):
    """A timer that should ring each hundredth of a second, how late it rang at worst, and how often very late.

    ``longest_hold`` is by the clock, a busy machine included; ``longest_work`` is what of one such delay this thread
    spent on the processor.
    """

    def __init__(self, stats: StatsCollector, closed: Callable[[], bool] = lambda: False) -> None:
        self._stats = stats
        self._closed = closed  # the last figures, commit and index hold the loop when nothing waits
        self._due = self._worked = 0.0
        self._longest = dict.fromkeys((HELD, WORKED), 0.0)

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """Into the crawler's statistics."""

        def closed() -> bool:
            scheduler = services_of(crawler).get(FrontierScheduler)
            return scheduler is not None and scheduler.crawl.run.ending

        assert crawler.stats is not None
        return cls(crawler.stats, closed)

    def spider_opened(self) -> None:
        """From now on; opening the frontier of an earlier run is over."""
        self._begin()

    def _begin(self) -> None:
        self._due, self._worked = time.monotonic() + _TICK_SECONDS, time.thread_time()
        self._arm(_TICK_SECONDS, self._ring)

    def _ring(self) -> None:
        if self._closed():
            return
        held = time.monotonic() - self._due
        if held >= _HOLD_SECONDS:
            self._stats.inc_value(HOLDS)
            self._stats.set_value(HELD_SUM, round(self._stats.get_value(HELD_SUM, 0.0) + held, 4))
        for name, seconds in ((HELD, held), (WORKED, min(held, time.thread_time() - self._worked))):
            if seconds > self._longest[name]:
                self._longest[name] = seconds
                self._stats.set_value(name, round(seconds, 4))
        self._begin()


class LargePages(_Timed):
    """By and by, in a thread: what a crawl knows of its hosts lies all over some hundred megabytes.

    With pages of 4 KB the processor looks for their places at every other step, in a virtual machine twice: a request
    of a broad crawl takes 15 % less CPU with large ones (ours: two workers of one fleet side by side).
    """

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """Where the machine's operator has not forbidden them."""
        allowed = Path("/sys/kernel/mm/transparent_hugepage/enabled")
        if not allowed.exists() or "[never]" in allowed.read_text():
            raise NotConfigured
        return cls(crawler)

    def spider_opened(self) -> None:
        """Not at once: a short crawl does not pay for it."""
        self._arm(_LARGE_PAGES_SECONDS, self._ring)

    def _ring(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, enlarge_pages)
        self._arm(_LARGE_PAGES_SECONDS, self._ring)


def enlarge_pages() -> int:
    """Ask the kernel for large pages where this process's memory lies by now; how many are."""
    import ctypes

    advise = ctypes.CDLL(None).madvise  # called without Python's lock
    advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    places = large_extents(Path("/proc/self/smaps").read_text().splitlines())
    return sum(advise(place, _LARGE_BYTES, _MADV_COLLAPSE) == 0 for place in places)


def large_extents(smaps: Iterable[str]) -> list[int]:
    """Where large pages may begin in memory of the process's own, as far as it is in use (proc(5), smaps)."""
    found: list[int] = []
    first = end = 0
    for line in smaps:
        name, *fields = line.split()
        if name == "Rss:" and int(fields[0]) * 1024 >= _LEAST_RESIDENT * (end - first):
            found += range(-(-first // _LARGE_BYTES) * _LARGE_BYTES, end // _LARGE_BYTES * _LARGE_BYTES, _LARGE_BYTES)
        elif not name.endswith(":"):
            mode, _, _, inode, *file = fields
            own = mode == "rw-p" and inode == "0" and file in ([], ["[heap]"])
            first, end = (int(each, 16) for each in name.split("-")) if own else (0, 0)
    return found


class ServiceWatchdog(_Timed):
    """Switches systemd's watchdog on when the crawl has opened, keeps it quiet, and switches it off as it closes.

    A start may take long and so may an end: both have limits of their own in the unit. ``WatchdogSec=`` of the unit
    is another time than ``SILENT_SECONDS``. A recrawl begins by choosing among all known pages, which holds the loop
    for 25 us each: its silence counts once the loop turns again.
    """

    def __init__(self, address: str, silent_seconds: float) -> None:
        """``address`` as in NOTIFY_SOCKET; "@" begins one that is no file."""
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._silent_seconds = silent_seconds

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """Only where a service manager listens."""
        address = os.environ.get("NOTIFY_SOCKET", "")
        if not address:
            raise NotConfigured
        given = os.environ.get("WATCHDOG_USEC", "")
        return cls(address, int(given) / _MICROSECONDS if given.isdigit() and int(given) else SILENT_SECONDS)

    def spider_opened(self, spider: Spider) -> None:
        """From now on silence counts; in a recrawl from the first beat on."""
        if getattr(spider, "recrawl", False):
            self._arm(self._silent_seconds / _BEATS_A_SILENCE, self._begin)
        else:
            self._begin()

    def _begin(self) -> None:
        self._say(f"WATCHDOG_USEC={int(self._silent_seconds * _MICROSECONDS)}")
        self._beat()

    def spider_closed(self) -> None:
        """From now on the unit's time for a stop counts."""
        super().spider_closed()
        self._say("WATCHDOG_USEC=0")

    def _beat(self) -> None:
        self._say("WATCHDOG=1")
        self._arm(self._silent_seconds / _BEATS_A_SILENCE, self._beat)

    def _say(self, what: str) -> None:
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as way,
        ):
            way.sendto(what.encode(), self._address)  # one that is not heard is followed by others


class EagerTasks(CrawlExtension):
    """From the start of a crawl by the frontier to its end: other spiders keep the order that they know."""

    def spider_opened(self) -> None:
        """Begin, if this is a crawl by the frontier."""
        if self.scheduler is not None:
            begin_early(asyncio.get_running_loop())

    def spider_closed(self) -> None:
        """Give the loop its own way of making tasks back."""
        begin_as_usual(asyncio.get_running_loop())


def task_factory(
    loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], *, eager_start: bool | None = None, **options: Any
) -> asyncio.Task[Any]:
    """For ``loop.set_task_factory``. uvloop hands on ``eager_start``, which asyncio's own eager factory refuses."""
    options["eager_start"] = getattr(coro, "__qualname__", "") in EAGER if eager_start is None else eager_start
    return asyncio.Task(coro, loop=loop, **options)


def begin_early(loop: asyncio.AbstractEventLoop) -> bool:
    """Have the loop make such tasks where Python has them, unless another factory is set; whether it does."""
    if not POSSIBLE or loop.get_task_factory() is not None:
        return False
    factory: Any = task_factory  # what uvloop hands on is more than the type says
    loop.set_task_factory(factory)
    return True


def begin_as_usual(loop: asyncio.AbstractEventLoop) -> None:
    """Undo ``begin_early``."""
    factory: Any = task_factory
    if loop.get_task_factory() is factory:
        loop.set_task_factory(None)
