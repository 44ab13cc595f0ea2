"""How much of one kind is done in one go: the event loop has other answers to read and pauses to end meanwhile.

A thousand hosts that are free at once, or hundreds of answers that come at once, would each hold the loop for tenths of
a second (measured).
"""

from __future__ import annotations

import asyncio
from time import monotonic

_MOST_SECONDS = 0.005  # a tenth of what nothing may hold the loop: there are two kinds, and what they lead to


class Bursts:
    """A burst begins with the first question in a turn of the event loop and ends with that turn."""

    def __init__(self, most_seconds: float = _MOST_SECONDS) -> None:
        self._most_seconds = most_seconds
        self._until: float | None = None

    def over(self) -> bool:
        """Whether enough was done in this turn of the loop."""
        if self._until is None:
            self._until = monotonic() + self._most_seconds
            asyncio.get_running_loop().call_soon(self._end)
            return False
        return monotonic() >= self._until

    def _end(self) -> None:
        self._until = None
