"""Bounds on the CPU that a piece of work may spend, in seconds of the machine that they were set on.

Other processes of a busy machine count only as far as they make it slower: two threads of one core share it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

_YARDSTICK_TURNS = 200_000
_YARDSTICK_SECONDS = 0.0075  # of that machine, idle


class TooSlow(BaseException):
    """Not an Exception: nothing on the way may catch it."""


def slowness() -> float:
    """How much longer this machine takes now for the same work than the one that bounds were set on, if it does."""
    began, found = time.process_time(), 0
    for turn in range(_YARDSTICK_TURNS):
        found ^= turn * 7919
    return max(1.0, (time.process_time() - began) / _YARDSTICK_SECONDS)


def spent(work: Callable[[], object]) -> float:
    """Seconds of CPU."""
    before, began = slowness(), time.process_time()
    work()
    seconds = time.process_time() - began
    return seconds / max(before, slowness())


@lru_cache(maxsize=1)
def _slowness_within(second: int) -> float:
    """Measured once in each second: a test may set a thousand bounds of some milliseconds each."""
    return slowness()


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raises TooSlow within the block once this process has used so much CPU in it."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds * _slowness_within(int(time.monotonic())))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
