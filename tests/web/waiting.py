"""Waiting for what another process does: never longer than a deadline, never for luck."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

Found = TypeVar("Found")
_LOOK_SECONDS = 0.02


class Polled(Protocol):
    """A process, forked or started."""

    args: Any

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""


def wait_until(
    look: Callable[[], Found],
    what: str = "came",
    *,
    seconds: float = 60.0,
    process: Polled | None = None,
    log: Path | None = None,
) -> Found:
    """What ``look`` finds, once it finds something.

    When the time is over, or ``process`` ends before, the test fails with ``what`` never was, and the end of ``log``.
    """
    until = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > until or (process is not None and process.poll() is not None):
            said = log.read_text()[-3000:] if log is not None and log.exists() else ""
            raise AssertionError(f"never {what}; {said}")
        time.sleep(_LOOK_SECONDS)
    return found


async def eventually(look: Callable[[], object], seconds: float = 10.0) -> None:
    """The same within an event loop."""
    async with asyncio.timeout(seconds):
        while not look():
            await asyncio.sleep(_LOOK_SECONDS)
