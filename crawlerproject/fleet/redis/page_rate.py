"""How many pages a second a worker has ended lately, as its reports say it."""

from __future__ import annotations

# Of so long, at least.
_RATE_SECONDS = 5.0


class PageRate:
    """``now``: seconds of a clock that never goes back."""

    def __init__(self, now: float) -> None:
        self._pages, self._at = 0, now
        self._pages_per_second = 0.0

    def of(self, pages: int, now: float) -> float:
        """Since some seconds ago, when ``pages`` have ended since the start; less than before after a new start."""
        if now - self._at >= _RATE_SECONDS:
            self._pages_per_second = max(0.0, (pages - self._pages) / (now - self._at))
            self._pages, self._at = pages, now
        return round(self._pages_per_second, 2)
