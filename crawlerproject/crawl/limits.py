"""The limits that the operator sets for a whole crawl: pages, bytes, time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.errors import OperatorError
from crawlerproject.rules.limits import Limits, Spent, reached

if TYPE_CHECKING:
    from crawlerproject.crawl.progress.totals import TotalsBook
    from crawlerproject.crawl.run import Run


class CrawlLimits:
    """Pages and bytes count over all starts and are committed with what they count; time counts from this start."""

    def __init__(self, limits: Limits, totals: TotalsBook, run: Run, max_in_flight: int) -> None:
        """``max_in_flight`` requests may be under way at a time, whatever else the limits allow."""
        self._limits = limits
        self._any = any(limits)
        self._totals = totals
        self._run = run
        self._max_in_flight = max_in_flight

    def reached(self) -> str:
        """The limit that is reached, as ``max_pages=100``; "" while none is."""
        if not self._any:
            return ""
        totals = self._totals.now()
        return reached(self._limits, Spent(totals.pages, self._run.running_seconds, totals.bytes))

    def room(self, under_way: int) -> bool:
        """Whether one more page may be asked for while ``under_way`` are: the number of pages is never exceeded."""
        if under_way >= self._max_in_flight:
            return False
        if not self._any:
            return True
        most = self._limits.pages
        if most and self._totals.now().pages + under_way >= most:
            return False
        return not self.reached()


def refuse_sums(limits: Limits) -> None:
    """Raise OperatorError for limits that a fleet cannot keep: no worker knows what all have fetched."""
    if limits.pages or limits.bytes:
        raise OperatorError(
            "max_pages and max_bytes count what one process fetches, and this crawl has several; use max_time, or "
            "limits of each host: max_pages_per_host, max_bytes_per_host."
        )
