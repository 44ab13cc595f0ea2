"""The clock that leases are measured by: it runs on while the machine sleeps and is never set."""

from __future__ import annotations

import time


def since_boot() -> float:
    """Seconds since the machine started, sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
