"""The timer that wakes the engine at the moment when a host becomes free."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from scrapy.utils.asyncio import CallLaterResult


class Timer:
    """At most one timer, for the earliest moment that was asked for. Moments are epoch seconds."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._timer: CallLaterResult | None = None
        self._at = 0.0

    def at(self, moment: float | None, now: float) -> None:
        """Wake then, or sooner when that was asked for; None: no moment."""
        if moment is None or (self._timer is not None and self._at <= moment):
            return
        self.cancel()
        self._at = moment
        self._timer = call_later(max(0.0, moment - now), self._fire)

    def cancel(self) -> None:
        """Wake nobody."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self._wake()
