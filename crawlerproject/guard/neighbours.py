"""Requests of this user's other processes: a command beside a crawl, or two, ask a host or an address in turns.

One sparse file for each user and machine. Its bytes are locked (POSIX record locks, which end with their process,
however it ends) and hold when the last request for a host or an address ended, by the clock of the machine's start.

A crawl that asks as if it were alone holds ``_ALONE``; a command (``scrapy fetch``, ``shell``, another spider) holds
``_BESIDE`` from its first request on, and asks nothing while a crawl holds ``_ALONE``. The crawl looks each second
whether ``_BESIDE`` is held. If so it writes down what it has asked, lets go of ``_ALONE``, and from then on takes the
lock of a host and an address for each request, as the command does. Until then its pages cost it nothing.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, Self

from xxhash import xxh3_64_intdigest

from crawlerproject.rules.politeness.pause_audit import ROUNDING_SECONDS
from crawlerproject.runtime.clock import since_boot

logger = logging.getLogger(__name__)

# Moments that the file holds, 8 MiB of which few are written: of two keys that share one the later request counts, so
# that with 10,000 hosts one in a hundred waits longer than it must.
_MOMENTS = 2**20
_ALONE, _BESIDE = 2**62, 2**62 + 1  # the locked bytes, which need not be there; below them one for each key
_MOMENT = struct.Struct("<d")
_FLOCK = struct.Struct("@hhqqi")  # fcntl(2): l_type, l_whence, l_start, l_len, l_pid
# Until a lock that another process has is tried again, and until a crawl is asked again whether it has noticed us.
_AGAIN_SECONDS = 0.1
# Then the log says for what a command waits: a crawl notices it within a second unless it is stopped.
_LONG_SECONDS = 5.0


class Neighbours:
    """What this process has in the file. ``noticed``: others ask beside it, so each request takes its locks."""

    def __init__(self, path: Path, clock: Callable[[], float] = since_boot) -> None:
        """Raises OSError."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._clock = clock
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._crawlers = 0  # of this process, that have begun and not ended
        self.noticed = False

    @classmethod
    @cache
    def at(cls, path: Path) -> Self:
        """The process's one: to close the file once would end all locks that the process has in it, says fcntl(2)."""
        return cls(path)

    # --- a crawl --------------------------------------------------------------------------------

    def begin_alone(self) -> None:
        """Ask without locks until ``look`` sees another process."""
        self._crawlers += 1
        self._lock(_ALONE, fcntl.LOCK_SH)

    def look(self) -> bool:
        """Whether another process asks beside us."""
        return self._holder(_BESIDE) > 0

    def notice(self, under_way: Iterable[str], ended: Iterable[tuple[str, float]]) -> None:
        """Take locks from now on; first for what is under way. ``ended``: keys and how many seconds ago they ended."""
        now = self._clock()
        for key, ago_seconds in ended:
            self._write(key, now - ago_seconds)
        for key in under_way:
            if self._lock(_byte(key), fcntl.LOCK_EX):
                self._write(key, inf)
        self.noticed = True
        self._unlock(_ALONE)

    # --- a command ------------------------------------------------------------------------------

    def begin_beside(self) -> None:
        """Ask with locks, as soon as ``until_noticed`` is over."""
        self._crawlers += 1
        self._lock(_BESIDE, fcntl.LOCK_SH)
        self.noticed = True

    async def until_noticed(self, sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep) -> None:
        """Wait until no crawl of this user's asks without locks; one that is stopped looks as it wakes."""
        waited = 0.0
        while (process := self._holder(_ALONE)) and not _is_stopped(process):
            await sleep(_AGAIN_SECONDS)
            waited += _AGAIN_SECONDS
            if waited >= _LONG_SECONDS:
                waited = -inf
                logger.warning("The crawl of process %d must notice us first, and has not: is it stopped?", process)

    # --- both -----------------------------------------------------------------------------------

    def enter(self, pauses: Iterable[tuple[str, float]]) -> float:
        """Take the turn of each key (a host's name, an address) with its pause; or 0.0 < seconds until a next try."""
        keys: list[str] = []
        now, wait = self._clock(), 0.0
        for key, pause_seconds in pauses:
            if not self._lock(_byte(key), fcntl.LOCK_EX):
                wait = max(wait, _AGAIN_SECONDS)
                continue
            keys.append(key)
            ended = self._read(key)
            if ended == inf:  # that process died meanwhile, or the machine
                ended = now
                self._write(key, now)
            if ended <= now:  # else it is from before the machine's last start
                wait = max(wait, ended + pause_seconds - now)
        waits = wait > ROUNDING_SECONDS
        for key in keys:
            if waits:
                self._unlock(_byte(key))
            else:
                self._write(key, inf)
        return wait if waits else 0.0

    def leave(self, key: str, ago_seconds: float, *, entered: bool = True) -> None:
        """The request for a key ended so many seconds ago; not ``entered``: the address turned out to be another."""
        self._write(key, self._clock() - ago_seconds)
        if entered:
            self._unlock(_byte(key))

    def end(self) -> None:
        """No request of a crawler that has begun follows."""
        self._crawlers -= 1
        if not self._crawlers:
            self.noticed = False
            self._unlock(_ALONE)
            self._unlock(_BESIDE)

    def _read(self, key: str) -> float:
        """When the last request for the key ended; inf: it has not, or its process died; 0.0 for none."""
        packed = os.pread(self._file, _MOMENT.size, _place(key))
        return float(_MOMENT.unpack(packed)[0]) if len(packed) == _MOMENT.size else 0.0

    def _write(self, key: str, moment: float) -> None:
        try:
            os.pwrite(self._file, _MOMENT.pack(moment), _place(key))
        except OSError as error:  # a full disk: the locks hold, and a command may come before the pause is over
            logger.warning("The end of a request to %s cannot be shared with other processes: %s", key, error)

    def _holder(self, byte: int) -> int:
        """The process that has a lock there, one of several; 0 for none but ours."""
        question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        kind, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(self._file, fcntl.F_GETLK, question))
        return 0 if kind == fcntl.F_UNLCK else process or 1  # 0: of a process that we cannot see

    def _lock(self, byte: int, how: int) -> bool:
        try:
            fcntl.lockf(self._file, how | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):  # either, says fcntl(2)
            return False
        return True

    def _unlock(self, byte: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)


def shared_file() -> Path:
    """Where this user's processes on this machine meet (XDG Base Directory Specification)."""
    given = os.environ.get("XDG_STATE_HOME", "")
    state = Path(given) if os.path.isabs(given) else Path("~/.local/state").expanduser()
    return state / "polite-crawler" / f"asking-{socket.gethostname()}"


def _place(key: str) -> int:
    return xxh3_64_intdigest(key.encode()) % _MOMENTS * _MOMENT.size


def _byte(key: str) -> int:
    return xxh3_64_intdigest(key.encode()) % _ALONE


def _is_stopped(process: int) -> bool:
    """Whether a process was stopped by a signal (proc(5): its state is T). False where that cannot be seen."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in "Tt"
