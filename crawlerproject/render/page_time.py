"""Measures a page's time in the browser, without the time that it waits for the turn of a host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")

# How precisely a limit on such a time is kept.
_STEP_SECONDS = 0.05
# A wait this long frees the page's place for another page. For shorter ones the two would only get in each other's way.
_LONG_SECONDS = 1.0


class PageTime:
    """Seconds since the beginning, without waits. ``waits`` is called during a long wait, ``goes_on`` at its end."""

    def __init__(
        self,
        waits: Callable[[], None] = lambda: None,
        goes_on: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._waits, self._goes_on, self._clock = waits, goes_on, clock
        self._began = clock()
        self._waiting = 0
        self._since = 0.0
        self._waited = 0.0
        self._long: asyncio.TimerHandle | None = None
        self._left = False  # ``waits`` was called

    def begin(self) -> None:
        """Start now, when the page enters the browser."""
        self._began, self._waited = self._clock(), 0.0

    @property
    def waited_seconds(self) -> float:
        """Seconds of waiting until now; waits of several requests that overlap count once."""
        return self._waited + (self._clock() - self._since if self._waiting else 0.0)

    def now(self) -> float:
        """Seconds of the page's own time so far."""
        return self._clock() - self._began - self.waited_seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Enter while a request waits for its turn."""
        if not self._waiting:
            self._since = self._clock()
            self._long = asyncio.get_running_loop().call_later(_LONG_SECONDS, self._leave)
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._waited += self._clock() - self._since
                self._return()

    def _leave(self) -> None:
        self._left = True
        self._waits()

    def _return(self) -> None:
        if self._long is not None:
            self._long.cancel()
        if self._left:
            self._left = False
            self._goes_on()

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``; TimeoutError after so many more seconds of the page's own time."""
        until = self.now() + seconds
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                if (left := until - self.now()) <= 0:
                    raise TimeoutError
                await asyncio.wait({task}, timeout=max(left, _STEP_SECONDS))
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=_STEP_SECONDS)
