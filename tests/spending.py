"""A bound on the CPU that a piece of work may spend: other processes of a busy machine do not count."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class TooSlow(BaseException):
    """Not an Exception: nothing on the way may catch it."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raises TooSlow within the block once this process has used so much CPU in it; other processes do not count."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
