"""How much the whole crawl has done, over all its starts; kept in the frontier, with each commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson

if TYPE_CHECKING:
    from crawlerproject.crawl.progress.tallies import Tallies
    from crawlerproject.stores.protocols import FrontierStore

_FACT = "totals"


class Totals(NamedTuple):
    """Counts as in ``Progress``, ``since`` a moment (epoch seconds): the first start, or that of the first version that
    kept them.
    """

    pages: int
    bytes: int
    errors: int
    since: float


class TotalsBook:
    """Adds what this process has done to what was committed before it."""

    def __init__(self, store: FrontierStore, tallies: Tallies, now: float) -> None:
        """When the crawl's store is open; again when a worker begins anew."""
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

    def stored(self, facts: list[tuple[str, bytes]]) -> None:
        """These facts are committed."""
        self._stored = dict(facts).get(_FACT, self._stored)
