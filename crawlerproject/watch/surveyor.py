"""Looks at the hosts in memory again and again while a crawl is watched, between other work of the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from crawlerproject.watch.survey import Survey, Surveyed

if TYPE_CHECKING:
    from crawlerproject.crawl.scheduler import FrontierScheduler
    from crawlerproject.frontier.hosts.host import Host

SLICE_HOSTS = 150
"""Looked at in one go: about a millisecond."""
# A whole look may take a hundredth of the processor, and need not be newer than a row of the last hour.
_COST_SHARE = 0.01
_LEAST_SECONDS = 2.0


class Surveyor:
    """``last`` is the last whole look; None before the first has ended."""

    def __init__(self, scheduler: FrontierScheduler) -> None:
        self.last: Surveyed | None = None
        self._scheduler = scheduler
        self._timer: asyncio.TimerHandle | None = None
        self._spent = 0.0  # seconds of the processor in this look

    def start(self) -> None:
        """Begin the first look."""
        self._begin()

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        self._spent = 0.0
        began = time.thread_time()
        # A copy: it changes while it is looked through.
        hosts = iter(list(self._scheduler.crawl.session.frontier.workbench.hosts.values()))
        self._spent += time.thread_time() - began
        self._go_on(Survey(), hosts)

    def _go_on(self, survey: Survey, hosts: Iterator[Host]) -> None:
        run = self._scheduler.crawl.run
        if run.closed:
            return
        began = time.thread_time()
        some = list(islice(hosts, SLICE_HOSTS))
        survey.look(some, run.now(), self._scheduler.under_way.by_host)
        self._spent += time.thread_time() - began
        loop = asyncio.get_running_loop()
        if len(some) == SLICE_HOSTS:
            self._timer = loop.call_later(0, self._go_on, survey, hosts)
            return
        self.last = survey.result(run.now())
        self._timer = loop.call_later(max(_LEAST_SECONDS, self._spent / _COST_SHARE), self._begin)
