"""Decides when a service that many others share may be asked once more: so often a second, a second's worth at once."""

from __future__ import annotations


class QuestionRate:
    """What is left of a budget that fills up as time passes. ``now`` is in seconds of any clock."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._most = self._left = max(per_second, 1.0)
        self._at: float | None = None

    def ask(self, now: float) -> float:
        """Reserve the next question; it may be sent after so many seconds, behind those that were reserved before."""
        self._fill(now)
        self._left -= 1.0
        return max(0.0, -self._left / self._per_second)

    def room(self, now: float) -> int:
        """How many questions may be sent now; negative while more are reserved than that."""
        self._fill(now)
        return int(self._left // 1)

    def _fill(self, now: float) -> None:
        if self._at is not None and now > self._at:  # not when the clock was set back
            self._left = min(self._most, self._left + (now - self._at) * self._per_second)
        self._at = now
