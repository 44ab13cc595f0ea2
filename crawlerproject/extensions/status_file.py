"""What only the running process knows, written about once a second for ``scrapy status``, ``why`` and ``hosts``."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections import deque
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import scrapy
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import create_looping_call

from crawlerproject import __version__, native
from crawlerproject.config.old_settings import ours_of
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.errors import StorageError
from crawlerproject.extensions.crawl_task import CrawlExtension
from crawlerproject.fetch.resolver import resolver_for
from crawlerproject.inspection.crawl_progress import Progress
from crawlerproject.rules.printable import without_passwords
from crawlerproject.stores.crawl_dir import read_facts, write_facts
from crawlerproject.stores.operator_files.user_settings import user_path
from crawlerproject.watch.machine import StoreSizes, machine_facts

# Soon enough for a person who looks on; a look and a file of some kilobytes cost a thousandth of a core.
BEAT_SECONDS = 1.0
# A look at every host in memory: with very many it may take a hundredth of the processor, no more. Not of the clock: a
# machine that is busy with something else for a tenth of a second would put off the next look by ten.
COST_SHARE = 0.01
# Rates are means over this: shorter jumps about, longer lags behind.
RATE_SECONDS = 60.0

_BUILD = {"version": __version__, "python": platform.python_version(), "scrapy": scrapy.__version__}


class _Sample(NamedTuple):
    at: float  # monotonic seconds
    pages: int
    bytes: int
    cpu_seconds: float


class StatusFile(CrawlExtension):
    """Writes ``run.json`` at the start and ``status.json`` at each tick, into the crawl's folder."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._loop = create_looping_call(self.tick)
        self._samples: deque[_Sample] = deque()
        self._not_before = 0.0
        self._lag = 0.0
        self._due = 0.0
        self._sizes: StoreSizes | None = None
        self._run: dict[str, Any] = {}  # how the crawl was started, until that is written
        self.last: dict[str, Any] = {}  # as written last, for who watches in this process

    def spider_opened(self, spider: Spider) -> None:
        """Say how the crawl was started, and begin to look."""
        if (scheduler := self.scheduler) is None:
            return
        seeds: Any = getattr(spider, "seeds", None) or []
        self._run = {
            "pid": os.getpid(),
            "cwd": os.getcwd(),
            "spider": spider.name,
            "started": time.time(),
            "scope": getattr(spider, "scope", "any"),
            "seed_hosts": sorted({seed.host for seed in seeds}),
            "arguments": asdict(spider.arguments) if hasattr(spider, "arguments") else {},
            "settings": {name: _plain(value) for name, value in ours_of(self._crawler.settings).items()}
            | {"NEVERCRAWL_USER_FILE": user_path(self._crawler.settings["NEVERCRAWL_USER_FILE"] or "")},
        }
        self._sizes = StoreSizes(scheduler.crawl.folder, partial(asyncio.get_running_loop().run_in_executor, None))
        self._loop.start(BEAT_SECONDS, now=True)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        """The last word: the crawl has ended, and why."""
        if (scheduler := self.scheduler) is None:
            return
        if self._loop.running:
            self._loop.stop()
        self._write(scheduler, self.status(scheduler) | {"ended": time.time(), "finish_reason": reason, "leases": []})

    def tick(self) -> None:
        """Look once and write it down; an expensive look postpones the next."""
        began, worked = time.monotonic(), time.thread_time()
        if self._due:
            self._lag = max(self._lag * 0.9, began - self._due)
        self._due = began + BEAT_SECONDS
        if (scheduler := self.scheduler) is None:
            return
        # Also in a crawl that only waits. That lists were taken up is reported at once, however expensive a look is.
        scheduler.crawl.session.filters.never_crawl.current(scheduler.crawl.run.now())
        if began < self._not_before and self.last.get("nevercrawl_lists") == self._lists(scheduler):
            return
        self._write(scheduler, self.status(scheduler))
        self._not_before = time.monotonic() + (time.thread_time() - worked) / COST_SHARE

    def status(self, scheduler: FrontierScheduler) -> dict[str, Any]:
        """The state of this moment; times in epoch seconds."""
        crawl, session, settings = scheduler.crawl, scheduler.crawl.session, self._crawler.settings
        now = crawl.progress()
        stats = self._crawler.stats
        assert stats is not None
        committed = crawl.run.tallies.committed_at
        return {
            "pid": os.getpid(),
            "time": time.time(),
            "ended": None,
            "progress": now._asdict(),
            "totals": session.totals.now()._asdict(),
            "committed_totals": session.totals.committed._asdict(),
            **self._rates(now),
            "lag_seconds": round(self._lag, 4),
            "max_in_flight": settings.getint("FRONTIER_MAX_IN_FLIGHT"),
            "given_up_hosts": session.frontier.hosts.parked,
            "held_hosts": dict(session.frontier.hosts.held),
            "orders_read": crawl.control.version,
            "limit": session.limits.reached(),
            "fleet": session.role.membership(crawl.run)._asdict(),
            "nevercrawl_lists": self._lists(scheduler),
            "leases": [
                {"url": lease.row.url, "host": host, "address": lease.address, "since": lease.leased_at}
                for host, lease in scheduler.in_flight.by_host.items()
            ],
            **crawl.run.tallies.as_dict(),
            "commit_lag_seconds": round(max(0.0, crawl.run.now() - committed), 3) if committed is not None else 0.0,
            "uncommitted": session.frontier.state.uncommitted,
            "dns": resolver_for(self._crawler).counts(),
            "stores": self._sizes.now(time.monotonic()) if self._sizes is not None else {},
            # The state of the process that uploads the archive: a file of some hundred bytes.
            **({"uploads": read_facts(crawl.folder.upload_state)} if settings["ARCHIVE_URL"] else {}),
            "machine": machine_facts(crawl.folder, settings.getint("DISK_MIN_FREE_BYTES")),
            "build": _BUILD | {"reader": native.choice.sentence},
            "stats": {key: value for key, value in stats.get_stats().items() if isinstance(value, int | float)},
        }

    def _lists(self, scheduler: FrontierScheduler) -> dict[str, int | None]:
        lists: Any = scheduler.crawl.session.filters.never_crawl
        return dict(lists.versions)

    def _rates(self, progress: Progress) -> dict[str, float]:
        samples = self._samples
        now = _Sample(time.monotonic(), progress.pages, progress.bytes, time.process_time())
        if progress.paused:
            samples.clear()  # no request goes out: earlier figures tell nothing about now
        samples.append(now)
        while len(samples) > 2 and now.at - samples[1].at >= RATE_SECONDS:
            samples.popleft()
        then = samples[0]
        seconds = now.at - then.at or 1.0
        return {
            "pages_per_second": round((now.pages - then.pages) / seconds, 3),
            "bytes_per_second": round((now.bytes - then.bytes) / seconds, 1),
            "cpu_share": round((now.cpu_seconds - then.cpu_seconds) / seconds, 3),
        }

    def _write(self, scheduler: FrontierScheduler, status: dict[str, Any]) -> None:
        self.last = status
        try:
            if self._run:
                write_facts(scheduler.crawl.folder.run, self._run)
                self._run = {}
            write_facts(scheduler.crawl.folder.status, status)
        except StorageError:
            return  # the crawl itself reports a full disk


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it, without the passwords of its addresses."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float) else without_passwords(str(value))
