"""Clocks that are never set: that leases are measured by, which runs on while the machine sleeps, and the crawl's."""

from __future__ import annotations

import time

_EPOCH = time.time() - time.monotonic()


def steady() -> float:
    """Epoch seconds, as this process knew them when it began: a clock that is set meanwhile changes nothing."""
    return _EPOCH + time.monotonic()


def since_boot() -> float:
    """Seconds since the machine started, sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
