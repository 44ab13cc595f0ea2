"""Pages that name more URLs than are taken in at once: these go in a slice a turn of the loop, then the page ends.

Until then the page's lease stands. So a crash before its last link is queued brings the page back, and none is lost.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from scrapy.utils.asyncio import call_later

from crawlerproject.items import Ending

if TYPE_CHECKING:
    from scrapy.utils.asyncio import CallLaterResult

    from crawlerproject.crawl.intake import Intake
    from crawlerproject.frontier.lease import Lease

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 250
"""URLs of one page that are taken in without a break, some 5 ms; a page with more is a long one (ours)."""

# One change of the store: at 100 µs a link, against the worst robots.txt, half a slice.
_LINKS_AT_A_TIME = 100
# Known pages of which a list says that they changed; each is looked up.
_CHANGED_AT_A_TIME = 100
# Of one turn of the loop, in which nothing else is done.
_SLICE_SECONDS = 0.02


@dataclass(slots=True)
class _Rest:
    """A page and how far it is taken in."""

    ending: Ending
    changed: int = 0
    found: int = 0


class Ends(Protocol):
    """Who ends a page whose links are queued."""

    def end(self, ending: Ending) -> None:
        """Archive a page and end its lease."""

    def put_back(self, lease: Lease) -> None:
        """End the lease; the page is tried again."""

    def fail(self, lease: Lease) -> None:
        """As ``put_back``, after a fault of ours."""


class LongPages:
    """Those whose end is still to come, each in its turn."""

    def __init__(self, ends: Ends, intake: Intake) -> None:
        self._ends = ends
        self._intake = intake
        self._line: deque[_Rest] = deque()
        self._timer: CallLaterResult | None = None

    def __len__(self) -> int:
        return len(self._line)

    def begin(self, ending: Ending) -> None:
        """Take in what the page names, from the next turn of the loop on, and end it then."""
        self._line.append(_Rest(ending))
        self.go_on()

    def hold(self, ending: Ending) -> None:
        """End a page once the pause is over: its links wait for room in the store."""
        self._line.append(_Rest(ending, len(ending.changed), len(ending.found)))

    def go_on(self) -> None:
        """There is something to do, or a pause is over."""
        if self._line and self._timer is None and not self._intake.paused:
            self._timer = call_later(0, self._turn)

    async def finish(self) -> None:
        """Before the last commit: end all of them; those that cannot be ended are queued still."""
        if self._timer is not None:
            self._timer.cancel()
        while self._line and not self._intake.paused:
            self._slice()
            await asyncio.sleep(0)
        while self._line:
            self._ends.put_back(self._line.popleft().ending.lease)

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
            except Exception:  # ours: as for any page whose end fails
                logger.exception("could not take in what %s names", rest.ending.lease.row.url)
                self._ends.fail(rest.ending.lease)

    def _take_some(self, rest: _Rest) -> None:
        """A little of one page; then it is the next page's turn."""
        ending, intake = rest.ending, self._intake
        if rest.changed < len(ending.changed):
            intake.announced(ending.changed[rest.changed : rest.changed + _CHANGED_AT_A_TIME])
            rest.changed += _CHANGED_AT_A_TIME
        elif rest.found < len(ending.found):
            ending.new_links += intake.add(ending.found[rest.found : rest.found + _LINKS_AT_A_TIME])
            rest.found += _LINKS_AT_A_TIME
        else:
            self._ends.end(ending)
            return
        self._line.append(rest)
