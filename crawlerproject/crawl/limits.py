"""How much a crawl has had of all its starts, and whether that is as much as its operator wants."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from crawlerproject.errors import OperatorError
from crawlerproject.rules.limits import Limits, Spent, reached

if TYPE_CHECKING:
    from crawlerproject.crawl.crawl import Crawl

TOTALS_FACT = "totals of limits"
_TOTALS = struct.Struct("<QQ")  # pages, bytes


def unpack_totals(packed: bytes | None) -> tuple[int, int]:
    """Pages and bytes as of the last commit; of a crawl that kept no count: none."""
    return _TOTALS.unpack(packed) if packed else (0, 0)


class CrawlLimits:
    """Pages and bytes count over all starts and are committed with what they count; time counts from this start."""

    def __init__(self, crawl: Crawl, limits: Limits) -> None:
        """Raises OperatorError for several workers, which have no common count: for them only the time is limited."""
        self._crawl = crawl
        self._limits = limits
        self._alone = crawl.fleet is None
        pages, received = unpack_totals(crawl.store.fact(TOTALS_FACT)) if self._alone else (0, 0)
        if not self._alone and (limits.pages or limits.bytes):
            raise OperatorError(
                "max_pages and max_bytes count what one process fetches, and this crawl has several; use max_time, or "
                "limits of each host: max_pages_per_host, max_bytes_per_host."
            )
        self._before = pages - crawl.pages, received - crawl.bytes  # which a worker that begins anew has counted

    @property
    def pages(self) -> int:
        """Of all starts."""
        return self._before[0] + self._crawl.pages

    @property
    def received_bytes(self) -> int:
        """Of all starts, on the wire."""
        return self._before[1] + self._crawl.bytes

    def reached(self) -> str:
        """The limit that is reached, as ``max_pages=100``; "" while none is."""
        return reached(self._limits, Spent(self.pages, self._crawl.running_seconds, self.received_bytes))

    def room(self, under_way: int) -> bool:
        """Whether one more page may be asked for while ``under_way`` are: the number of pages is never exceeded."""
        limits = self._limits
        if not any(limits):
            return True
        if limits.pages and self.pages + under_way >= limits.pages:
            return False
        return not self.reached()

    def facts(self) -> list[tuple[str, bytes]]:
        """What the commit stores that holds the ends of all pages up to now."""
        return [(TOTALS_FACT, _TOTALS.pack(self.pages, self.received_bytes))] if self._alone else []
