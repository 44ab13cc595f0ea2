"""Counts: those of this process for monitoring, and the totals over all starts, which each commit stores."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Any, NamedTuple

import orjson

from crawlerproject.rules.politeness.audit import ROUNDING_SECONDS
from crawlerproject.stores.protocols import Changes, FactReader, FrontierStore

# Upper bounds of the classes, seconds. Prometheus' own for requests, and what slow servers need above them.
_FIRST_BYTE_BOUNDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# A commit's fsyncs take some milliseconds of an idle disk, and seconds of one that others write to.
_COMMIT_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_EXCESS_BOUNDS = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3600.0)

_FACT = "totals"


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
        """As in ``status.json``."""
        return {"bounds": list(self.bounds), "counts": list(self.counts), "sum": round(self.total, 6)}


class Tallies:
    """Since this process started, ``pages``, ``bytes`` and ``errors`` as in ``Progress``. Some 1 µs an answer."""

    __slots__ = (
        *(
            "_commit_failures",
            "_commits",
            "_excess",
            "_first_byte",
            "_least_margin",
            "_promised",
            "_short",
            "_statuses",
        ),
        *("bytes", "committed_at", "errors", "good", "pages"),
    )

    def __init__(self) -> None:
        self.pages = self.bytes = self.errors = 0
        self.good = 0  # of the pages, those that their hosts have shown or that had not changed
        self._statuses: Counter[int] = Counter()
        self._first_byte = Classes(_FIRST_BYTE_BOUNDS)
        self._excess = Classes(_EXCESS_BOUNDS)
        self._commits = Classes(_COMMIT_BOUNDS)
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

    def committed(self, seconds: float) -> None:
        """Count a commit that took so long to be durable."""
        self._commits.add(seconds)

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
            "commit_seconds": self._commits.as_dict(),
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
        """As of this moment, with what is not committed yet."""
        done, (pages, received, errors), before = self._tallies, self._at_begin, self._before
        return Totals(
            before.pages + done.pages - pages,
            before.bytes + done.bytes - received,
            before.errors + done.errors - errors,
            before.since,
        )

    @property
    def committed(self) -> Totals:
        """As of the last commit."""
        return Totals(*orjson.loads(self._stored)) if self._stored else self._before

    def facts(self) -> list[tuple[str, bytes]]:
        """For the next commit."""
        packed = orjson.dumps(tuple(self.now()))
        return [(_FACT, packed)] if packed != self._stored else []

    def stored(self, changes: Changes, facts: list[tuple[str, bytes]]) -> None:
        """These facts are committed."""
        self._stored = dict(facts).get(_FACT, self._stored)
