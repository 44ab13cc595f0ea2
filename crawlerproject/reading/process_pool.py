"""Runs the reading processes: queues their jobs, bounds their time, and replaces those that hang or die."""

from __future__ import annotations

import asyncio
import heapq
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from typing import Any

from crawlerproject import native
from crawlerproject.errors import OUR_LIMITS, FetchError
from crawlerproject.reading.jobs import PARTS, Job, ReadPage
from crawlerproject.reading.reading_process import HEAD, LENGTH
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.domains import registered_domain

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10.0
"""CPU time for one page (READ_TIMEOUT_SECONDS); the slowest honest ones take one (ours)."""
MAX_MEMORY_BYTES = 2 * 1024**3
"""Address space of a reading process (READ_MAX_MEMORY_BYTES); the largest pages usually take 250 MB."""
PROCESSES = 2  # ours: one may hang until its deadline while the other works
_MOST_WAIT_SECONDS = 30.0  # for a free process: as long as a request may take
_MOST_WAITING_BYTES = 128 * 1024 * 1024  # of bodies in memory; 25 of FETCH_MAX_BYTES
_MOST_STRIKES = 10_000  # domains with unreadable pages that are remembered
_WALL = 3.0  # wall-clock seconds allowed per second of CPU time, which the process shares with others
# A process that cannot be started is tried again after these: a moment in which the machine has too many is short.
_START_AGAIN_SECONDS = (0.5, 2.0)
_START_SECONDS = 20.0  # to start on a busy machine; an idle one needs half a second
_DEATH_SECONDS = 10.0  # ours, from a broken socket to the process's status: a moment, unless the machine is busy


class NotRead(Exception):
    """A body could not be read; the message is the reason."""


class Reader:
    """Reads bodies in other processes, which start with the first job.

    Pages of a registered domain with unreadable pages wait behind all others.
    """

    def __init__(self, *, seconds: float, memory_bytes: int) -> None:
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._idle: list[_Process] = []
        self._working: set[_Process] = set()
        self._busy = 0  # places that are given away, to those that read or are about to
        self._line: list[tuple[int, int, asyncio.Future[None]]] = []
        self._waiting_bytes = self._number = 0
        self._strikes: Counter[str] = Counter()
        self._closed = False

    async def read(self, job: Job, body: bytes) -> ReadPage:
        """Read one body. Raises NotRead when that fails or takes too long, FetchError when no process can be had."""
        domain = registered_domain(job.row.host)
        process = await self._turn(self._strikes[domain], len(body))
        self._working.add(process)
        try:
            await self._start(process)
            async with asyncio.timeout(_WALL * self._seconds + (0.0 if process.started else _START_SECONDS)):
                page = await process.read(job, body)
        except TimeoutError:
            process.kill()
            self._strike(domain)
            raise NotRead(self._too_slow) from None
        except (OSError, EOFError):
            status = await process.died()
            self._strike(domain)
            raise NotRead(self._too_slow if status == -signal.SIGXCPU else f"its reader died ({status})") from None
        except NotRead:
            self._strike(domain)
            raise
        except BaseException:
            process.kill()  # it is in the middle of a job
            raise
        finally:
            self._working.discard(process)
            if not process.ended and not self._closed:
                self._idle.append(process)
            self._busy -= 1
            self._next()
        return page

    async def _start(self, process: _Process) -> None:
        """Start a process that has not been; FetchError when the machine has none to give: no page's fault."""
        for wait in (*_START_AGAIN_SECONDS, None):
            try:
                await process.start()
                return
            except OSError as error:
                if error.errno not in OUR_LIMITS or wait is None:
                    process.kill()
                    raise FetchError(Reason.OUR_LIMIT, f"no process to read it could be started ({error})") from error
            await asyncio.sleep(wait)

    @property
    def _too_slow(self) -> str:
        return f"could not be read in {self._seconds:g} s"

    def close(self) -> None:
        """End the processes, and the jobs that they work on."""
        self._closed = True
        for process in (*self._idle, *self._working):
            process.kill()
        self._idle.clear()
        self._next()

    async def _turn(self, strikes: int, body_bytes: int) -> _Process:
        if self._closed:
            raise NotRead("the crawl ends")
        if not self._line and self._busy < PROCESSES:
            self._busy += 1
        else:
            if self._waiting_bytes + body_bytes > _MOST_WAITING_BYTES:
                raise NotRead("too many large pages wait to be read")
            await self._wait(strikes, body_bytes)
        return self._idle.pop() if self._idle else _Process((self._memory_bytes, self._seconds))

    async def _wait(self, strikes: int, body_bytes: int) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._number += 1
        heapq.heappush(self._line, (strikes, self._number, place))
        self._waiting_bytes += body_bytes
        try:
            async with asyncio.timeout(_MOST_WAIT_SECONDS):
                await place
        except TimeoutError:
            if place.done() and not place.cancelled():
                return  # granted at the same moment
            raise NotRead(f"no reader was free in {_MOST_WAIT_SECONDS:g} s") from None
        finally:
            self._waiting_bytes -= body_bytes

    def _next(self) -> None:
        """Give the free places to the first in line."""
        while self._line and self._busy < PROCESSES:
            place = heapq.heappop(self._line)[2]
            if not place.done():
                place.set_result(None)
                self._busy += 1

    def _strike(self, domain: str) -> None:
        if len(self._strikes) >= _MOST_STRIKES:
            self._strikes.clear()
        self._strikes[domain] += 1


class _Process:
    """One reading process and the socket to it."""

    def __init__(self, limits: tuple[int, float]) -> None:
        self.started = self.ended = False
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._parts: asyncio.StreamReader | None = None
        self._jobs: asyncio.StreamWriter | None = None

    async def read(self, job: Job, body: bytes) -> ReadPage:
        """Read one body. Raises OSError or EOFError when the process dies, NotRead when it reports a failure."""
        assert self._jobs is not None
        assert self._parts is not None
        packed = pickle.dumps(job, pickle.HIGHEST_PROTOCOL)
        self._jobs.write(HEAD.pack(len(packed), len(body)) + packed)
        self._jobs.write(body)
        await self._jobs.drain()
        parts: dict[str, list[Any]] = {name: [] for name in PARTS}
        while True:
            length = LENGTH.unpack(await self._parts.readexactly(LENGTH.size))[0]
            name, part = pickle.loads(await self._parts.readexactly(length))
            self.started = True
            if name == "failed":
                raise NotRead(f"could not be read: {part}")
            if name in ("page", "retiring"):
                page: ReadPage = part
                page.found, page.changed, page.requisites = (parts[name] for name in PARTS)
                if name == "retiring":
                    self.kill()
                return page
            parts[name] += part
            await asyncio.sleep(0)  # yield to other work: a page may have a hundred thousand links

    async def start(self) -> None:
        """Start the process, unless it has been. Raises OSError."""
        if self._jobs is not None:
            return
        ours, theirs = socket.socketpair()
        # Not asyncio's subprocesses: under Twisted's reactor their end is not always noticed.
        paths = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "crawlerproject.reading.reading_process", *map(str, self._limits)],
                # numpy's threads would reserve address space for each processor.
                env={
                    **os.environ,
                    **({} if native.reader else {native.ENVIRONMENT: "0"}),  # it reads as this process does
                    "PYTHONPATH": paths,
                    "OPENBLAS_NUM_THREADS": "1",
                    "OMP_NUM_THREADS": "1",
                },
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                start_new_session=True,  # Ctrl-C is meant for the crawl, which may still need the process
            )
        ours.setblocking(False)
        self._parts, self._jobs = await asyncio.open_unix_connection(sock=ours)

    async def died(self) -> int | None:
        """The return code, as ``subprocess`` defines it, of a process whose socket broke; it is ended if it lives."""
        try:
            if self._process is not None:
                with suppress(subprocess.TimeoutExpired):
                    await asyncio.to_thread(self._process.wait, _DEATH_SECONDS)
        finally:
            self.kill()
        return None if self._process is None else self._process.returncode

    def kill(self) -> None:
        """End the process at once."""
        self.ended = True
        if self._jobs is not None:
            self._jobs.close()
        if self._process is not None:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):  # freeing gigabytes may take longer: Popen reaps it later
                self._process.wait(0.02)
