"""What lasts as long as the process of a crawl: its clock, why it asks nothing now, and what it has counted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from crawlerproject.crawl.progress.tallies import Tallies
from crawlerproject.frontier.url_filters import NeverCrawl
from crawlerproject.runtime.clock import CRAWL
from crawlerproject.runtime.services import Stats
from crawlerproject.stores.operator_files.control import Pauses

logger = logging.getLogger(__name__)


# A folder that refuses files, each time that one is made, pauses the crawl every second: the log says so once in this.
_SAY_AGAIN_SECONDS = 60.0


class Run:
    """One process's part of a crawl. Sessions begin and end within it."""

    def __init__(
        self,
        stats: Stats,
        never_crawl: NeverCrawl,
        *,
        rejoins: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """``rejoins``: another worker may take over what this one has not committed. ``clock`` gives epoch seconds."""
        self.stats = stats
        self.never_crawl = never_crawl
        self.rejoins = rejoins
        self.tallies = Tallies()
        self._said, self._said_at, self._says_end = "", 0.0, False  # of the last pause that the log names
        self.paused = ""  # why nothing is leased; "" while the crawl runs
        self.outage = ""  # why no host is reached, which is our own network's doing; "" while it is there
        self.choosing = False  # known pages to visit again, which holds the loop: connections would time out meanwhile
        self.lost = ""  # why another worker may have what this one works on; "" while none has
        self.pauses = Pauses()  # the operator's
        self.awaits_pushes = False  # a listener for hubs is up: the crawl goes on without work
        self.ending = False  # what is on its way has ended, and the last figures are made
        self.closed = False
        self._head_start_seconds: float | None = None
        self.round = 0  # of the fleet, that this process takes part in
        self._started = time.monotonic()
        self.now = clock or CRAWL.now
        """Epoch seconds that never jump: the machine's clock may be set while a crawl runs."""

    def follow(self, epoch: float) -> None:
        """Count from another clock: ``epoch`` is its time (seconds) at which ``since_boot()`` was 0."""
        CRAWL.follow(epoch)

    @property
    def running_seconds(self) -> float:
        """Since this start; in a fleet since the first of its workers began."""
        return time.monotonic() - self._started + (self._head_start_seconds or 0.0)

    @property
    def has_joined(self) -> bool:
        """Whether it is known how long the fleet had run."""
        return self._head_start_seconds is not None

    def joined(self, seconds: float) -> None:
        """The fleet had run for so long when this process joined it for the first time."""
        if self._head_start_seconds is None:
            self._head_start_seconds = seconds

    @property
    def halted(self) -> str:
        """Why nothing is leased, in words: as ``stopped``, or that there is no network; "" while the crawl runs."""
        return self.stopped or self.outage

    @property
    def stopped(self) -> str:
        """Why not even one page may be leased to see whether the network is back: a full disk, no Redis, the operator.

        "" while that may be.
        """
        if self.choosing:
            return "known pages to visit again are chosen"
        return self.paused or (f"by the operator, {self.pauses.crawl}" if self.pauses.crawl else "")

    def pause(self, why: str) -> None:
        """Lease nothing more until there is room again, or Redis answers again."""
        if not (self.paused and self._says_end) and not self._is_said(why):
            logger.error("The crawl pauses: %s; it goes on by itself when that is over.", why)
            self._said, self._said_at, self._says_end = why, time.monotonic(), True
        self.paused = why

    def _is_said(self, why: str) -> bool:
        """Whether the same was said a moment ago: what ends a pause may be enough to try again, and not to go on."""
        return why == self._said and time.monotonic() - self._said_at < _SAY_AGAIN_SECONDS

    def go_on(self) -> None:
        """End the pause."""
        if self._says_end:
            logger.warning("The crawl goes on.")
            self._says_end = False
        self.paused = ""

    def lose(self, why: str) -> None:
        """Rely on nothing that is not committed: the next commit replaces the session. Nothing is leased till then."""
        self.pause(why)
        if not self.lost:
            logger.warning("%s: this worker forgets what it has not committed and joins again.", why)
        self.lost = why
