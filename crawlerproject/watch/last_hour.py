"""The last hour of a crawl, a row each few seconds: what the page's charts show. Kept in the crawl's folder."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple

STEP_SECONDS = 5.0
"""Between two rows (ours): a chart of an hour has some hundred places, one of the first minute still has a dozen."""
SPAN_SECONDS = 3600.0
_MOST_ROWS = int(SPAN_SECONDS / STEP_SECONDS)
_FORMAT = 1
_DIGITS = 3  # of a rate in the file


class Totals(NamedTuple):
    """Counts that only grow, of one process."""

    pages: int
    bytes: int
    errors: int


class Levels(NamedTuple):
    """What was so at the moment itself."""

    allowed: float | None  # answers a second that politeness allows; None: not known yet
    queued: int
    in_flight: int
    rss_bytes: int


class Sample(NamedTuple):
    """One moment; rates are means since the row before."""

    at: float  # epoch seconds, the end of its interval
    seconds: float  # how long that was
    pages: float  # a second
    bytes: float  # a second
    errors: float  # a second
    allowed: float | None
    queued: int
    in_flight: int
    rss_bytes: int


class LastHour:
    """A ring of rows. ``now`` is epoch seconds."""

    def __init__(self, rows: Iterable[Sample] = ()) -> None:
        self._rows: deque[Sample] = deque(rows, maxlen=_MOST_ROWS)
        self._before: tuple[float, Totals] | None = None

    def add(self, now: float, totals: Totals, levels: Levels) -> None:
        """The first call of a process only begins to count; one that comes too soon after the last does nothing."""
        before = self._before
        if before is not None and now - before[0] < STEP_SECONDS / 2:
            return
        self._before = now, totals
        if before is None:
            return
        seconds = now - before[0]
        pages, received, errors = (
            round(max(0, new - old) / seconds, _DIGITS) for new, old in zip(totals, before[1], strict=True)
        )
        self._rows.append(Sample(round(now, _DIGITS), round(seconds, _DIGITS), pages, received, errors, *levels))

    def since(self, moment: float, now: float) -> list[Sample]:
        """The rows after ``moment`` that are not older than an hour, oldest first."""
        first = max(moment, now - SPAN_SECONDS)
        found = []
        for row in reversed(self._rows):
            if row.at <= first:
                break
            found.append(row)
        return found[::-1]

    def as_dict(self, now: float) -> dict[str, Any]:
        """For the file."""
        return {"format": _FORMAT, "columns": Sample._fields, "rows": [list(row) for row in self.since(0.0, now)]}


def read_last_hour(facts: Mapping[str, Any], now: float) -> LastHour:
    """What an earlier process kept, if this version can read it and it is not of a time to come."""
    if facts.get("format") != _FORMAT or facts.get("columns") != list(Sample._fields):
        return LastHour()
    rows = facts.get("rows")
    kept = [Sample(*row) for row in rows if _is_row(row)] if isinstance(rows, list) else []
    return LastHour(sorted(row for row in kept if now - SPAN_SECONDS < row.at <= now))


def _is_row(row: Any) -> bool:
    if not isinstance(row, list) or len(row) != len(Sample._fields):
        return False
    allowed = Sample._fields.index("allowed")
    values = [value for place, value in enumerate(row) if not (place == allowed and value is None)]
    return all(isinstance(value, int | float) and isfinite(value) for value in values)
