"""Clocks that are never set, and run on while the machine sleeps: that leases are measured by, and the crawl's.

The crawl's clock stamps what is logged and archived and says when a pause is over. In a crawl of one process it is the
machine's, as it was when the process began. Workers on several machines follow one clock, that of their store.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

_READINGS = 8  # a busy machine may take a fifth of a second between two (seen once), not between each two of these


since_boot: Callable[[], float] = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Seconds since the machine started, sleep included. No function of Python's own: it is called for every page."""


def epoch_of_boot() -> float:
    """Epoch seconds at which ``since_boot`` was 0: of several readings the one that took least time."""
    readings = []
    for _ in range(_READINGS):
        before, wall, after = since_boot(), time.time(), since_boot()
        readings.append((after - before, wall - before))
    return min(readings)[1]


_EPOCH = epoch_of_boot()

MOST_STEERING = 500e-6
"""By so much the crawl's clock is slowed or hastened, at most: what adjtime(3) does on Linux, and more than a quartz
drifts. Pauses in a fleet are longer by as much, so that none of them is cut."""


def steady() -> float:
    """Epoch seconds, as this process knew them when it began: a clock that is set meanwhile changes nothing."""
    return _EPOCH + since_boot()


class SteeredClock:
    """Epoch seconds of another clock: taken over at once at a start, approached slowly afterwards. Never goes back."""

    def __init__(self, ticks: Callable[[], float] = since_boot, epoch: float = _EPOCH) -> None:
        """``epoch``: the time (epoch seconds) at which ``ticks`` was 0."""
        self._ticks = ticks
        begun = ticks()
        self._line = (begun, epoch + begun, 0.0, 0.0)  # replaced as one: others read it meanwhile

    def now(self) -> float:
        """Epoch seconds."""
        begun, base, rate, lasts = self._line
        passed = self._ticks() - begun
        if not rate:
            return base + passed
        return base + passed + rate * (passed if passed < lasts else lasts)

    def apart(self, epoch: float) -> float:
        """By how much (seconds) this clock is ahead of one that showed ``epoch`` when ``ticks`` was 0."""
        return self.now() - epoch - self._ticks()

    def follow(self, epoch: float) -> None:
        """Show what another clock does, from now on: nothing may wait by what this one has shown until now."""
        begun = self._ticks()
        self._line = (begun, epoch + begun, 0.0, 0.0)

    def steer(self, epoch: float, seconds: float) -> None:
        """Come to what another clock shows within so many seconds, or as near to it as the most steering leads."""
        rate = min(max(-self.apart(epoch) / seconds, -MOST_STEERING), MOST_STEERING)
        base = self.now()
        self._line = (self._ticks(), base, rate, seconds)


CRAWL = SteeredClock()
"""The clock of this process's crawl."""


stamp: Callable[[], float] = CRAWL.now
"""Epoch seconds by the crawl's clock, for what is logged and archived."""
