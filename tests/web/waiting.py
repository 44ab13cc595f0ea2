"""Waiting for what another process does: never longer than a deadline, never for luck."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

Found = TypeVar("Found")
_LOOK_SECONDS = 0.02
# A look that takes its time, as the reading of a whole log does, leaves others the processor for so many times as long.
_PAUSE_FACTOR = 4


def busyness() -> float:
    """1.0 on a machine that has a core for each process that wants one; as much more as it has too few.

    Every bound on time is multiplied by it: what a test waits for at most, and what it lets others wait.
    """
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


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
    until = time.monotonic() + seconds * busyness()
    while True:
        began = time.thread_time()
        if found := look():
            return found
        if time.monotonic() > until or (process is not None and process.poll() is not None):
            said = log.read_text()[-3000:] if log is not None and log.exists() else ""
            raise AssertionError(f"never {what}; {said}")
        time.sleep(max(_LOOK_SECONDS, _PAUSE_FACTOR * (time.thread_time() - began)))


async def eventually(look: Callable[[], object], seconds: float = 10.0) -> None:
    """The same within an event loop."""
    async with asyncio.timeout(seconds * busyness()):
        while not look():
            await asyncio.sleep(_LOOK_SECONDS)


def unread(connection: socket.socket) -> bool:
    """Whether the other end of a connection over loopback holds bytes that its program has not read yet.

    A reset would overtake them.
    """
    mine, theirs = connection.getsockname(), connection.getpeername()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if (_port(fields[1]), _port(fields[2])) == (theirs[1], mine[1]):
            return int(fields[4].partition(":")[2], 16) > 0
    return False


def _port(field: str) -> int:
    return int(field.partition(":")[2], 16)
