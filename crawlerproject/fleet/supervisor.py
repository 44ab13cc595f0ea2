"""Keeps a number of worker processes running: starts again what dies, passes signals on, ends when all have ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Protocol

from crawlerproject.errors import EXIT_FORGOTTEN

logger = logging.getLogger(__name__)

# A worker that dies at once is started again after 1, 2, 4 … seconds, a minute at most.
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 60.0
# One that lived so long did not die at once.
_LIVED_SECONDS = 60.0
_LOOK_SECONDS = 0.2
# Scrapy's status for what the operator must mend; the same start would end the same way. So would the other's.
_EXIT_USAGE = 2
_FINAL = (_EXIT_USAGE, EXIT_FORGOTTEN)
# What ends it in good order. Workers are sent the second, which is the same to a crawl: Python that has not begun it
# yet ends by the first with a traceback.
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_FORWARDED_SIGNAL = signal.SIGTERM
LOCAL_REFUSALS = 5
"""Of a worker in a row, before it is left: what its supervisor found in order a moment ago, its disk for example, may
be so again soon. With the waits in between half a minute."""


class Worker:
    """One worker and its processes, one after the other."""

    def __init__(
        self, name: str, command: Sequence[str], output: Path, inherits: Sequence[int] = (), refusals: int = 0
    ) -> None:
        """``inherits``: descriptors of ours that its processes keep open as long as they live.

        ``refusals``: after so many in a row that it refused to begin it is started again all the same.
        """
        self.name = name
        self.command = command
        self.output = output
        self.inherits = inherits
        self.refusals = self._refusals = refusals
        self.process: subprocess.Popen[bytes] | None = None
        self.start_at = 0.0  # monotonic
        self.wait_seconds = _FIRST_WAIT_SECONDS
        self.started_at = 0.0
        self.done = False

    def start(self, output: IO[bytes]) -> None:
        """Start in a session of its own: a terminal's Ctrl-C reaches the worker once, forwarded by the supervisor."""
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            pass_fds=self.inherits,
        )
        known = {"worker": self.name}
        logger.info("%s runs (process %d, output in %s)", self.name, self.process.pid, self.output, extra=known)

    def lived(self) -> None:
        """Whatever ended it, it did not end at once."""
        self.wait_seconds = _FIRST_WAIT_SECONDS
        self.refusals = self._refusals


class Service(Protocol):
    """What a supervisor does for its workers beside keeping them running."""

    async def begin(self, workers: Sequence[Worker]) -> None:
        """Before the first worker starts."""

    def look(self) -> None:
        """A few times a second."""

    def ended(self, worker: str) -> None:
        """The worker is not started again."""

    def close(self) -> None:
        """All workers have ended."""


class Supervisor:
    """Runs workers until all have ended by themselves, or were asked to."""

    def __init__(
        self,
        workers: Sequence[Worker],
        service: Service | None = None,
        clock: Callable[[], float] = time.monotonic,
        asked_to_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """``asked_to_stop``: by something else than a signal; looked at a few times a second."""
        self.workers = workers
        self._service = service
        self._asked_to_stop = asked_to_stop
        self._clock = clock
        self._stopping = False

    def run(self) -> int:
        """Until every worker has ended; the worst of their exit statuses that was not mended by a new start."""
        return asyncio.run(self._run())

    async def _run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, self._forward_stop)
        status = 0
        with contextlib.ExitStack() as stack:
            outputs = {worker.name: stack.enter_context(worker.output.open("ab")) for worker in self.workers}
            if self._service is not None:
                stack.callback(self._service.close)
                await self._service.begin(self.workers)
            while not all(worker.done for worker in self.workers):
                for worker in self.workers:
                    status = max(status, self._look(worker, outputs[worker.name]))
                if self._service is not None:
                    self._service.look()
                if not self._stopping and self._asked_to_stop():
                    self._forward_stop()
                await asyncio.sleep(_LOOK_SECONDS)
        return status

    def _look(self, worker: Worker, output: IO[bytes]) -> int:
        now = self._clock()
        if worker.done:
            return 0
        if worker.process is None:
            if self._stopping:
                self._done(worker)
            elif now >= worker.start_at:
                worker.start(output)
            return 0
        status = worker.process.poll()
        if status is None:
            return 0
        worker.process = None
        if self._stopping and -status in _STOP_SIGNALS:  # before it had begun
            status = 0
        if now - worker.started_at > _LIVED_SECONDS:
            worker.lived()
        if status == 0 or self._stopping or (status in _FINAL and not worker.refusals):
            self._done(worker)
            level = logging.INFO if status == 0 else logging.ERROR
            logger.log(level, "%s has ended with status %d", worker.name, status, extra={"worker": worker.name})
            return abs(status)
        worker.refusals -= status in _FINAL
        worker.start_at = now + worker.wait_seconds
        logger.warning(
            "%s died (status %d, see %s): it is started again in %g s",
            worker.name, status, worker.output, worker.wait_seconds, extra={"worker": worker.name},
        )  # fmt: skip
        worker.wait_seconds = min(2 * worker.wait_seconds, _LONGEST_WAIT_SECONDS)
        return 0

    def _done(self, worker: Worker) -> None:
        worker.done = True
        if self._service is not None:
            self._service.ended(worker.name)

    def _forward_stop(self) -> None:
        self._stopping = True
        for worker in self.workers:
            if worker.process is not None and worker.process.poll() is None:
                worker.process.send_signal(_FORWARDED_SIGNAL)
