"""How much of one kind is done in one go: the event loop has other answers to read and pauses to end meanwhile.

A thousand hosts that are free at once, or hundreds of answers that come at once, would hold the loop for tenths of
a second (measured).
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic

# A tenth of the 50 ms that nothing should hold the loop: there are three kinds, and what they lead to.
_MOST_SECONDS = 0.005
# Let in from the line in one turn: a page takes about a millisecond. One at a time cost a third more, all stages of the
# work being repeated for each page.
_AT_A_TIME = 8


class LoopBudget:
    """A burst begins with the first question in a turn of the event loop and ends with that turn."""

    def __init__(self, most_seconds: float = _MOST_SECONDS) -> None:
        self._most_seconds = most_seconds
        self._until: float | None = None
        self.waiting: deque[asyncio.Future[None]] = deque()
        """Futures that wait for room."""

    def over(self) -> bool:
        """Whether enough was done in this turn of the loop."""
        if self._until is None:
            self._until = monotonic() + self._most_seconds
            asyncio.get_running_loop().call_soon(self._end)
            return False
        return monotonic() >= self._until

    async def room(self) -> None:
        """Wait for room for one more, in order of arrival; return at once when there is room."""
        if not self.waiting and not self.over():
            return
        loop = asyncio.get_running_loop()
        place = loop.create_future()
        self.waiting.append(place)
        if len(self.waiting) == 1:
            loop.call_soon(self._let_in, loop)
        await place

    def _let_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Some of those who wait, and some in each turn that follows."""
        free = _AT_A_TIME
        while self.waiting and free:
            place = self.waiting.popleft()
            if not place.done():  # who waited may have been cancelled
                place.set_result(None)
                free -= 1
        if self.waiting:
            loop.call_soon(self._let_in, loop)

    def _end(self) -> None:
        self._until = None
