"""What lasts as long as the process of a crawl: its clock, why it asks nothing now, what it counts, and the limits.

``Tallies`` count since this start, ``TotalsBook`` over all starts: each commit stores the totals with what they count.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from crawlerproject.fleet.fleet_quotas import FleetQuota, FleetQuotas
from crawlerproject.frontier.learned.render_gains import MAX_PER_CRAWL, Renders
from crawlerproject.frontier.url_filters import NeverCrawl
from crawlerproject.rules.limits import Limits, Spent, reached
from crawlerproject.rules.politeness.pause_audit import ROUNDING_SECONDS
from crawlerproject.runtime.clock import CRAWL
from crawlerproject.runtime.services import Stats
from crawlerproject.stores.operator_files.control import Pauses
from crawlerproject.stores.protocols import Changes, FactReader, FrontierStore

logger = logging.getLogger(__name__)

# Upper bounds of the classes, seconds. Prometheus' own for requests, and what slow servers need above them.
_FIRST_BYTE_BOUNDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# A commit's fsyncs take some milliseconds of an idle disk, and seconds of one that others write to.
_COMMIT_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_EXCESS_BOUNDS = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3600.0)

_FACT = "totals"

# A folder that refuses files, each time that one is made, pauses the crawl every second: the log says so once in this.
_SAY_AGAIN_SECONDS = 60.0

# Of max_bytes a worker is granted no less at a time, while there is so much (a few pages), and no more (ours).
_LEAST_BYTES = 256 * 1024
_LARGEST_BYTES = 64 * 1024**2
# Renders that a worker is granted at a time, and how many of them it keeps at hand: it may not wait for more (ours).
_LARGEST_RENDERS, _RENDERS_AT_HAND = 200, 50
# As many pages as a worker asks for in some seconds (ours).
_LARGEST_PAGES = 2_000


class Classes:
    """How many values lie up to each bound, and above the last."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def as_dict(self) -> dict[str, Any]:
        """The fields in ``status.json``."""
        return {"bounds": list(self.bounds), "counts": list(self.counts), "sum": round(self.total, 6)}


class Tallies:
    """Since this process started, ``pages``, ``bytes`` and ``errors`` as in ``Progress``. Some 1 µs an answer."""

    __slots__ = (
        *(
            "_commit_failures",
            "_excess",
            "_first_byte",
            "_least_margin",
            "_promised",
            "_short",
            "_statuses",
        ),
        *("bytes", "committed_at", "commits", "errors", "good", "pages"),
    )

    def __init__(self) -> None:
        self.pages = self.bytes = self.errors = 0
        self.good = 0  # of the pages, those that their hosts have shown or that had not changed
        self._statuses: Counter[int] = Counter()
        self._first_byte = Classes(_FIRST_BYTE_BOUNDS)
        self._excess = Classes(_EXCESS_BOUNDS)
        self.commits = Classes(_COMMIT_BOUNDS)  # by the seconds until they were durable
        self._commit_failures = 0
        self._promised = 0.0
        self._least_margin: float | None = None
        self._short = 0
        self.committed_at: float | None = None  # epoch seconds; when nothing was left to be made durable

    def answered(self, status: int, ttfb_seconds: float | None) -> None:
        """Count an answer, those to robots.txt requests and sub-requests included."""
        self._statuses[status] += 1
        if ttfb_seconds is not None:
            self._first_byte.add(ttfb_seconds)

    def paused(self, kept_seconds: float, promised_seconds: float) -> None:
        """Compare the pause that was kept before a request with the one that was promised."""
        excess = kept_seconds - promised_seconds
        self._short += excess < -ROUNDING_SECONDS
        self._excess.add(max(0.0, excess))
        self._promised += promised_seconds
        if self._least_margin is None or excess < self._least_margin:
            self._least_margin = excess

    def commit_failed(self) -> None:
        """Count a commit that disk or network did not take; it is made again."""
        self._commit_failures += 1

    def as_dict(self) -> dict[str, Any]:
        """For ``status.json``."""
        return {
            "statuses": {str(status): count for status, count in sorted(self._statuses.items())},
            "first_byte_seconds": self._first_byte.as_dict(),
            "pause_excess_seconds": self._excess.as_dict(),
            "short_pauses": self._short,
            "promised_pause_seconds": round(self._promised, 3),
            "least_pause_margin_seconds": None if self._least_margin is None else round(self._least_margin, 6),
            "commit_seconds": self.commits.as_dict(),
            "commit_failures": self._commit_failures,
        }


class Totals(NamedTuple):
    """Counts as in ``Progress``, ``since`` a moment (epoch seconds): the first start, or that of the first version that
    kept them.
    """

    pages: int
    bytes: int
    errors: int
    since: float


def has_counted_none(store: FactReader) -> bool:
    """Whether the crawl has committed its totals, and they have no page; of earlier versions that is not known."""
    stored = store.fact(_FACT)
    return stored is not None and Totals(*orjson.loads(stored)).pages == 0


class TotalsBook:
    """Adds what this process has done to what was committed before it."""

    def __init__(self, store: FrontierStore, tallies: Tallies, now: float) -> None:
        """When the crawl's store is open; again when a worker rejoins."""
        self._tallies = tallies
        self._stored = store.fact(_FACT)
        self._before = Totals(*orjson.loads(self._stored)) if self._stored else Totals(0, 0, 0, now)
        self._at_begin = (tallies.pages, tallies.bytes, tallies.errors)

    def now(self) -> Totals:
        """The totals of this moment, with what is not committed yet."""
        done, (pages, received, errors), before = self._tallies, self._at_begin, self._before
        return Totals(
            before.pages + done.pages - pages,
            before.bytes + done.bytes - received,
            before.errors + done.errors - errors,
            before.since,
        )

    @property
    def pages(self) -> int:
        """Those of ``now``, which each request asks for."""
        return self._before.pages + self._tallies.pages - self._at_begin[0]

    @property
    def committed(self) -> Totals:
        """The totals of the last commit."""
        return Totals(*orjson.loads(self._stored)) if self._stored else self._before

    def facts(self) -> list[tuple[str, bytes]]:
        """For the next commit."""
        packed = orjson.dumps(tuple(self.now()))
        return [(_FACT, packed)] if packed != self._stored else []

    def stored(self, changes: Changes, facts: list[tuple[str, bytes]]) -> None:
        """These facts are committed."""
        self._stored = dict(facts).get(_FACT, self._stored)


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
        """Whether the same was logged a moment ago: what ends a pause may be enough to try again, and not to go on."""
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


class CrawlLimits:
    """Pages and bytes count over all starts and are committed with what they count; time counts from this start."""

    def __init__(self, limits: Limits, totals: TotalsBook, run: Run, max_in_flight: int) -> None:
        """``max_in_flight`` requests may be under way at a time, whatever else the limits allow."""
        self._limits = limits
        self.any = any(limits)  # besides ``max_in_flight``
        self._totals = totals
        self._run = run
        self.max_in_flight = max_in_flight
        self._sums: FleetQuotas | None = None
        self._pages: FleetQuota | None = None
        self._bytes: FleetQuota | None = None

    def share(self, sums: FleetQuotas, under_way: Callable[[], int]) -> None:
        """What this process may spend is granted by a fleet from now on; so many requests are ``under_way``."""
        limits, totals, self._sums = self._limits, self._totals, sums
        if limits.pages:
            pages = FleetQuota(
                "pages", limits.pages, lambda: totals.committed.pages, lambda: totals.pages + under_way()
            )
            pages.largest = _LARGEST_PAGES
            self._pages = sums.add(pages)
        if limits.bytes:
            received = FleetQuota("bytes", limits.bytes, lambda: totals.committed.bytes, lambda: totals.now().bytes)
            received.least, received.largest = _LEAST_BYTES, _LARGEST_BYTES
            self._bytes = sums.add(received)

    def reached(self) -> str:
        """The limit that is reached, as ``max_pages=100``; "" while none is."""
        if not self.any:
            return ""
        limits, totals, received = self._limits, self._totals, 0
        pages = self._pages.committed if self._pages else totals.pages
        if limits.bytes:
            received = self._bytes.committed if self._bytes else totals.now().bytes
        return reached(limits, Spent(pages, self._run.running_seconds, received))

    def may_send(self, under_way: int) -> bool:
        """Whether one more page may be asked for while ``under_way`` are: the number of pages is never exceeded."""
        if under_way >= self.max_in_flight:
            return False
        if not self.any:
            return True
        if self._sums is not None:
            return not (self._spent() or self.reached())
        most = self._limits.pages
        if most and self._totals.pages + under_way >= most:
            return False
        return not self.reached()

    def waits(self) -> bool:
        """Whether nothing may be asked for until the fleet grants some more."""
        return bool(self._spent())

    def want(self, then: Callable[[], None]) -> None:
        """Ask the fleet for some more; ``then`` is called when there is some."""
        if self._sums is not None:
            for shared in self._spent():
                self._sums.want(shared, then)

    def _spent(self) -> list[FleetQuota]:
        """The sums of which all that was granted is spent."""
        return [shared for shared in (self._pages, self._bytes) if shared is not None and shared.left <= 0]


def share_renders(renders: Renders, sums: FleetQuotas) -> None:
    """Renders of the crawl are granted by a fleet from now on."""
    if renders.mode == "never":
        return
    shared = sums.add(FleetQuota("renders", MAX_PER_CRAWL, lambda: renders.committed, lambda: renders.granted))
    shared.largest = _LARGEST_RENDERS
    shared.at_hand = shared.wanted = True

    def has_more() -> bool:
        if shared.left < _RENDERS_AT_HAND:
            sums.want(shared, lambda: None)
        return shared.granted is None or shared.left > 0  # before the first answer nothing keeps a page waiting

    renders.share(has_more)
