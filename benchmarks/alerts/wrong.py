"""Runs within a crawl that is to have a fault of its own: spiders and extensions that are wrong on purpose.

They are wrong while the file exists that the environment names, and otherwise as they should be.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.guard.guard import PaceGuard
from crawlerproject.runtime.services import services_of
from crawlerproject.spiders.web import WebSpider

TROUBLE = "ALERTS_TROUBLE"
"""The variable of the environment that names the file."""
_WAIT_SECONDS = PaceGuard._wait_seconds  # as it should be
_HOLD_SECONDS = 0.5
_HOARD_BYTES = 8 * 2**20  # a page
_HOARD_SHARE = 0.95  # of the limit: above what the alert has, below what the kernel kills for
_LOOK_SECONDS = 0.2
_TURN_SECONDS = 10  # hasty for one of so many: pages that are refused again and again are given up


def troubled() -> bool:
    """Whether to be wrong now."""
    return Path(os.environ[TROUBLE]).exists()


class Raising(WebSpider):
    """Has an error in its callback."""

    name = "raising"

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        """Scrapy's callback."""
        if troubled():
            raise KeyError("price")
        yield from ()


class Holding(WebSpider):
    """Computes in its callback for long."""

    name = "holding"

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        """Scrapy's callback."""
        if troubled():
            time.sleep(_HOLD_SECONDS)
        yield from ()


class Hoarding(WebSpider):
    """Keeps what it should let go."""

    name = "hoarding"
    _kept: list[bytearray] = []  # one crawl a process

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        """Scrapy's callback."""
        if not troubled():
            self._kept.clear()
        elif _resident_bytes() < _HOARD_SHARE * int(Path(os.environ[TROUBLE]).read_text()):
            self._kept.append(bytearray(os.urandom(1) * _HOARD_BYTES))
        yield from ()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Hasty:
    """An extension that reaches into the frontier: hosts are free again at once, whatever was promised to them.

    The pace guard, which is below, refuses what comes too soon.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._stretch: float | None = None  # as it should be
        crawler.signals.connect(self.start, signal=signals.engine_started)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Hasty:
        """Scrapy's."""
        return cls(crawler)

    def start(self) -> None:
        """Look from now on whether to be wrong."""
        from twisted.internet.task import LoopingCall

        LoopingCall(lambda: self.haste(troubled() and time.monotonic() % _TURN_SECONDS < 1)).start(_LOOK_SECONDS)

    def haste(self, wrong: bool) -> None:
        """Pauses of no length, or of the promised one."""
        politeness: Any = services_of(self._crawler)[FrontierScheduler].crawl.session.frontier._politeness
        if self._stretch is None:
            self._stretch = politeness._stretch
        politeness._stretch = 0.0 if wrong else self._stretch


class Deaf(Hasty):
    """The same, and it has taken the guard away as well: what must never be is done, and is to be seen."""

    def haste(self, wrong: bool) -> None:
        """No pause, and no guard."""
        super().haste(wrong)
        pace: Any = PaceGuard  # one crawl a process
        pace._wait_seconds = (lambda guard, ticket, now: 0.0) if wrong else _WAIT_SECONDS
