"""The end of pages whose links are queued; those of very long pages are, in one slice per turn of the event loop.

Its lease stands until then, so a crash before the last link is queued brings the page back, and no link is lost.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from crawlerproject.items import LeaseResult

if TYPE_CHECKING:
    from scrapy.utils.asyncio import CallLaterResult

    from crawlerproject.crawl.completion.outage import Outage
    from crawlerproject.crawl.completion.pages import PageCompletion
    from crawlerproject.crawl.dispatch import InFlight
    from crawlerproject.crawl.intake import Intake
    from crawlerproject.frontier.passage import Lease
    from crawlerproject.stores.poison import Poison

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 250
"""URLs of one page that are queued in one go, some 5 ms (our choice); a page with more is a long one."""

# One change of the store: at 100 µs a link, against the worst robots.txt, half a slice.
_LINKS_AT_A_TIME = 100
# Known pages that a list announces as changed; each is looked up.
_CHANGED_AT_A_TIME = 100
# Longest share of one turn of the event loop.
_SLICE_SECONDS = 0.02


@dataclass(slots=True)
class _Rest:
    """A page and how many of its links are queued."""

    result: LeaseResult
    changed: int = 0
    found: int = 0
    requisites: int = 0


class LongPages:
    """Ends pages: at once when their links are queued; long pages take turns until theirs are."""

    def __init__(
        self,
        pages: PageCompletion,
        intake: Intake,
        poison: Poison,
        in_flight: InFlight,
        count_error: Callable[[], None],
        outage: Outage | None = None,
    ) -> None:
        """``count_error`` is called after each error of our own; ``outage`` holds what may be our network's."""
        self._pages = pages
        self._intake = intake
        self._poison = poison
        self._in_flight = in_flight
        self._count_error = count_error
        self._outage = outage
        self._line: deque[_Rest] = deque()
        self._timer: CallLaterResult | None = None

    def __len__(self) -> int:
        return len(self._line)

    def begin(self, result: LeaseResult) -> None:
        """Queue what the page names from the next turn of the event loop on, then end it."""
        self._line.append(_Rest(result))
        self.go_on()

    def hold(self, result: LeaseResult, links: int | None = None) -> None:
        """End a page once the pause is over: the store has no room for its links, or took these and has none for more.

        What it had no room for is queued by then.
        """
        result.new_links = links or 0
        taken = 0 if links is None else len(result.requisites)
        self._line.append(_Rest(result, len(result.changed), len(result.found), taken))

    def end(self, result: LeaseResult) -> None:
        """A page's links are queued: archive it and end its lease. The page is marked as being read."""
        lease = result.lease
        if self._outage is None or not self._outage.takes(result):
            self._pages.finish(result)
        self._in_flight.over(lease)
        if self._poison.suspects and result.wire is not None:
            self._poison.acquit(lease.row.key)

    def requeue(self, lease: Lease) -> None:
        """End a lease whose page could not be completed; it will be tried again."""
        self._pages.requeue(lease)
        self._in_flight.over(lease)

    def fail(self, lease: Lease) -> None:
        """End a lease as ``requeue`` does, and count an error of our own."""
        self.requeue(lease)
        self._count_error()

    def go_on(self) -> None:
        """Continue, when there is something to do and no pause."""
        if self._line and self._timer is None and not self._intake.paused:
            self._timer = call_later(0, self._turn)

    async def finish(self) -> None:
        """Before the last commit, end all of them; those that cannot end stay queued."""
        if self._timer is not None:
            self._timer.cancel()
        while self._line and not self._intake.paused:
            self._slice()
            await asyncio.sleep(0)
        while self._line:
            self.requeue(self._line.popleft().result.lease)

    def _turn(self) -> None:
        self._timer = None
        self._slice()
        self._intake.wake()
        self.go_on()

    def _slice(self) -> None:
        until, intake = time.monotonic() + _SLICE_SECONDS, self._intake
        while self._line and not intake.paused and time.monotonic() < until:
            rest = self._line.popleft()
            try:
                self._take_some(rest)
            except Exception:  # our own error: as for any page whose completion fails
                logger.exception("could not take in what %s names", rest.result.lease.row.url)
                self.fail(rest.result.lease)

    def _take_some(self, rest: _Rest) -> None:
        """Queue one slice of one page; the next page follows."""
        result, intake = rest.result, self._intake
        if rest.changed < len(result.changed):
            intake.announced(result.changed[rest.changed : rest.changed + _CHANGED_AT_A_TIME])
            rest.changed += _CHANGED_AT_A_TIME
        elif rest.found < len(result.found):
            result.new_links += intake.add(result.found[rest.found : rest.found + _LINKS_AT_A_TIME])
            rest.found += _LINKS_AT_A_TIME
        elif rest.requisites < len(result.requisites):
            intake.add(result.requisites[rest.requisites : rest.requisites + _LINKS_AT_A_TIME])
            rest.requisites += _LINKS_AT_A_TIME
        else:
            with self._poison.reading(result.lease.row):
                self.end(result)
            return
        self._line.append(rest)
