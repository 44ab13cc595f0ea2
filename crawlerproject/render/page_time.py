"""The time that a page has had in the browser: it stands still while the page waits for a turn of some host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")

# How exactly a limit is kept that stands still now and then.
_STEP_SECONDS = 0.05
# A page that has waited for so long leaves its place to another; for less the two would only be in each other's way.
_LONG_SECONDS = 1.0


class PageTime:
    """Seconds since it began, waits left out. ``waits`` is called in a long wait, ``goes_on`` at its end."""

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
        """The page comes into the browser now."""
        self._began, self._waited = self._clock(), 0.0

    @property
    def waited_seconds(self) -> float:
        """What was waited until now; what several requests wait for at once counts once."""
        return self._waited + (self._clock() - self._since if self._waiting else 0.0)

    def now(self) -> float:
        """Seconds that the page has had."""
        return self._clock() - self._began - self.waited_seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While a request waits for its turn."""
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
        """The result of ``work``; TimeoutError when the page has had so many more seconds without one."""
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
