"""The limits that the operator sets for a whole crawl: pages, bytes, time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.fleet.fleet_quotas import FleetQuota
from crawlerproject.frontier.learned.renders import MAX_PER_CRAWL, Renders
from crawlerproject.rules.crawl_limits import Limits, Spent, reached

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlerproject.crawl.progress.tallies import TotalsBook
    from crawlerproject.crawl.run import Run
    from crawlerproject.fleet.fleet_quotas import FleetQuotas

# Of max_bytes a worker is granted no less at a time, while there is so much (a few pages), and no more (ours).
_LEAST_BYTES = 256 * 1024
_LARGEST_BYTES = 64 * 1024**2
# Renders that a worker is granted at a time, and how many of them it keeps at hand: it may not wait for more (ours).
_LARGEST_RENDERS, _RENDERS_AT_HAND = 200, 50
# As many pages as a worker asks for in some seconds (ours).
_LARGEST_PAGES = 2_000


class CrawlLimits:
    """Pages and bytes count over all starts and are committed with what they count; time counts from this start."""

    def __init__(self, limits: Limits, totals: TotalsBook, run: Run, max_in_flight: int) -> None:
        """``max_in_flight`` requests may be under way at a time, whatever else the limits allow."""
        self._limits = limits
        self._any = any(limits)
        self._totals = totals
        self._run = run
        self._max_in_flight = max_in_flight
        self._sums: FleetQuotas | None = None
        self._pages: FleetQuota | None = None
        self._bytes: FleetQuota | None = None

    def share(self, sums: FleetQuotas, under_way: Callable[[], int]) -> None:
        """What this process may spend is granted by a fleet from now on; so many requests are ``under_way``."""
        limits, totals, self._sums = self._limits, self._totals, sums
        if limits.pages:
            pages = FleetQuota(
                "pages", limits.pages, lambda: totals.committed.pages, lambda: totals.now().pages + under_way()
            )
            pages.largest = _LARGEST_PAGES
            self._pages = sums.add(pages)
        if limits.bytes:
            received = FleetQuota("bytes", limits.bytes, lambda: totals.committed.bytes, lambda: totals.now().bytes)
            received.least, received.largest = _LEAST_BYTES, _LARGEST_BYTES
            self._bytes = sums.add(received)

    def reached(self) -> str:
        """The limit that is reached, as ``max_pages=100``; "" while none is."""
        if not self._any:
            return ""
        totals = self._totals.now()
        pages = self._pages.committed if self._pages else totals.pages
        received = self._bytes.committed if self._bytes else totals.bytes
        return reached(self._limits, Spent(pages, self._run.running_seconds, received))

    def room(self, under_way: int) -> bool:
        """Whether one more page may be asked for while ``under_way`` are: the number of pages is never exceeded."""
        if under_way >= self._max_in_flight:
            return False
        if not self._any:
            return True
        if self._sums is not None:
            return not (self._spent() or self.reached())
        most = self._limits.pages
        if most and self._totals.now().pages + under_way >= most:
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
