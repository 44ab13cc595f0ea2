"""Shows how the crawl stands: a live panel on a terminal, otherwise a log line every so often."""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Callable
from textwrap import wrap
from typing import Self

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.log import get_scrapy_root_handler

from crawlerproject.config.crawl_kind import crawl_folder
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.extensions.crawl_task import CrawlExtension
from crawlerproject.inspection.crawl_progress import Progress, render_lines
from crawlerproject.reports.summary import summarise
from crawlerproject.rules.printable import printable_line
from crawlerproject.runtime.services import services_of
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.request_log import log_files
from crawlerproject.terminal import console, guard_streams, has_panel, say

logger = logging.getLogger(__name__)

LIVE_SECONDS = 0.25  # four looks a second read as motion, and cost under a thousandth of the CPU
# The scheduler looks at every host in memory to answer: that may take a hundredth of the time, no more.
COST_SHARE = 0.01
_HOW_TO_END = "Ctrl-C ends in good order"
_BELOW_TEXT = " " * 11  # where the summary's lines have their text
# A longer request log is not read for the ten lines at the end: they would take more than a second.
_SUMMED_UP_BYTES = 50_000_000
RATE_SECONDS = 10.0  # the live rate is a mean over this: shorter jumps about, longer lags behind


class LogDisplay:
    """One INFO line a tick."""

    def __init__(self, tick_seconds: float) -> None:
        self.tick_seconds = tick_seconds

    def start(self) -> None:
        """Nothing to open."""

    def show(self, lines: list[str]) -> None:
        """Log them as one."""
        logger.info("%s", " · ".join(lines))

    def stop(self) -> None:
        """Nothing to close."""


class LiveDisplay(LogDisplay):
    """A panel at the bottom of the terminal, with the log scrolling above it."""

    def __init__(self, title: str, folder: CrawlDir | None = None) -> None:
        """``folder``: of the crawl that is summed up at its end."""
        super().__init__(LIVE_SECONDS)
        self._title = title
        self._folder = folder
        self._lines: list[str] = []
        from rich.live import Live  # a crawl without a terminal need not import it

        self._live = Live(console=console(error=True), auto_refresh=False, redirect_stdout=False)

    def start(self) -> None:
        """Open the panel; the log's handler must then write through it, or its lines would break it."""
        before = sys.stderr
        self._live.start()
        if sys.stderr is not before:  # the panel's, through which all goes now that is no less foreign
            guard_streams()
        _point_log_to_stderr()

    def show(self, lines: list[str]) -> None:
        """Redraw the panel."""
        self._lines = lines
        self._draw(_HOW_TO_END)

    def _draw(self, subtitle: str) -> None:
        from rich.panel import Panel
        from rich.text import Text

        text = Text("\n".join(map(printable_line, self._lines)))
        panel = Panel(
            text,
            title=Text(printable_line(self._title)),
            title_align="left",
            subtitle=Text(subtitle) if subtitle else None,
            subtitle_align="left",
        )
        self._live.update(panel, refresh=True)

    def stop(self) -> None:
        """Leave the last panel standing, give the terminal back to the log, and sum up."""
        self._draw("")
        width = self._live.console.width
        self._live.stop()
        _point_log_to_stderr()
        if self._folder is None:
            return
        log_bytes = sum(path.stat().st_size for path in log_files(self._folder.log))
        if 0 < log_bytes <= _SUMMED_UP_BYTES:
            for line in summarise(self._folder).lines():
                say(*wrap(line, width, subsequent_indent=_BELOW_TEXT, break_on_hyphens=False), error=True)


class ProgressExtension(CrawlExtension):
    """Asks the scheduler at each tick how the crawl stands, and shows it."""

    def __init__(self, progress: Callable[[], Progress | None], display: LogDisplay, rate_seconds: float) -> None:
        self._progress = progress
        self._display = display
        self._rate_seconds = rate_seconds
        self._history: deque[tuple[float, Progress]] = deque()
        self._loop = create_looping_call(self.tick)
        self._shown = False
        self._not_before = 0.0  # monotonic seconds

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """A panel, or lines by PROGRESS_LOG_SECONDS."""
        display: LogDisplay
        if has_panel(crawler.settings):
            name = getattr(crawler.spidercls, "name", "")
            folder = crawl_folder(crawler.settings, name)
            display, rate_seconds = LiveDisplay(f"scrapy crawl {name} · {folder}", folder), RATE_SECONDS
        else:
            tick_seconds = crawler.settings.getfloat("PROGRESS_LOG_SECONDS")
            if tick_seconds <= 0:
                raise NotConfigured("PROGRESS_LOG_SECONDS is 0")
            # The rate of a log line is the mean since the line before.
            display, rate_seconds = LogDisplay(tick_seconds), tick_seconds
        return cls(lambda: scheduler_progress(crawler), display, rate_seconds)

    def spider_opened(self, spider: Spider) -> None:
        """Start to look, unless the scheduler in use tells nothing."""
        progress = self._progress()
        if progress is None:
            return
        self._history.append((time.monotonic(), progress))
        self._display.start()
        self._shown = True
        self._loop.start(self._display.tick_seconds, now=False)

    def spider_closed(self, spider: Spider) -> None:
        """Show the end and stop looking."""
        if not self._shown:
            return
        self._loop.stop()
        self._not_before = 0.0
        self.tick()
        self._display.stop()

    def tick(self) -> None:
        """Look once and show it; an expensive look postpones the next."""
        began = time.monotonic()
        if began < self._not_before:
            return
        progress = self._progress()
        if progress is None:
            return
        now = time.monotonic()
        self._not_before = now + (now - began) / COST_SHARE
        self._display.show(self.lines(progress, now))

    def lines(self, progress: Progress, now: float) -> list[str]:
        """The lines for ``now`` (monotonic seconds), its rate taken over the last ``rate_seconds``."""
        history = self._history
        history.append((now, progress))
        while len(history) > 2 and now - history[1][0] >= self._rate_seconds:
            history.popleft()
        then, previous = history[0]
        return render_lines(progress, previous, now - then)


def scheduler_progress(crawler: Crawler) -> Progress | None:
    """How the crawl stands; None under another scheduler than ours, and before ours is made."""
    scheduler = services_of(crawler).get(FrontierScheduler)
    return scheduler.crawl.progress() if scheduler is not None else None


def _point_log_to_stderr() -> None:
    """Make Scrapy's log handler write to the present ``sys.stderr``, which a live panel replaces."""
    handler = get_scrapy_root_handler()
    if isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler):
        handler.setStream(sys.stderr)
