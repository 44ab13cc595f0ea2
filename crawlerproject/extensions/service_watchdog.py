"""Tells systemd that the crawl's event loop turns, so that a crawl that hangs is started again (sd_notify(3))."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from crawlerproject.extensions.crawl_task import only_in_a_crawl

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

# Silence after which systemd ends the crawl. No hold of the loop comes near it but the choice of a recrawl: the longest
# were seconds (LoopLatency), and a machine that pages for minutes is not helped by another start.
SILENT_SECONDS = 600.0
# What systemd's own sd_watchdog_enabled(3) advises: half of the time at most.
_BEATS_A_SILENCE = 4
_MICROSECONDS = 1_000_000


class ServiceWatchdog:
    """Switches systemd's watchdog on when the crawl has opened, keeps it quiet, and switches it off as it closes.

    A start may take long and so may an end: both have limits of their own in the unit. ``WatchdogSec=`` of the unit
    is another time than ``SILENT_SECONDS``. A recrawl begins by choosing among all known pages, which holds the loop
    for 25 us each: its silence counts once the loop turns again.
    """

    def __init__(self, address: str, silent_seconds: float) -> None:
        """``address`` as in NOTIFY_SOCKET; "@" begins one that is no file."""
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._silent_seconds = silent_seconds
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Only in a crawl, and where a service manager listens."""
        only_in_a_crawl(crawler)
        address = os.environ.get("NOTIFY_SOCKET", "")
        if not address:
            raise NotConfigured
        given = os.environ.get("WATCHDOG_USEC", "")
        extension = cls(address, int(given) / _MICROSECONDS if given.isdigit() and int(given) else SILENT_SECONDS)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        """From now on silence counts; in a recrawl from the first beat on."""
        loop = asyncio.get_running_loop()
        if getattr(spider, "recrawl", False):
            self._timer = loop.call_later(self._silent_seconds / _BEATS_A_SILENCE, self._begin, loop)
        else:
            self._begin(loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._say(f"WATCHDOG_USEC={int(self._silent_seconds * _MICROSECONDS)}")
        self._beat(loop)

    def spider_closed(self) -> None:
        """From now on the unit's time for a stop counts."""
        if self._timer is not None:
            self._timer.cancel()
        self._say("WATCHDOG_USEC=0")

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._say("WATCHDOG=1")
        self._timer = loop.call_later(self._silent_seconds / _BEATS_A_SILENCE, self._beat, loop)

    def _say(self, what: str) -> None:
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as way,
        ):
            way.sendto(what.encode(), self._address)  # one that is not heard is followed by others
