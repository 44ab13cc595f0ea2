"""Questions that take the store or the log, answered by another process: a crawl's event loop has no time for them."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

# Answers a question a line; it is of the room of the commands, whose answers these are.
_PROGRAM = "crawlerproject.commands.looking_process"
_NICENESS = 10  # the crawl comes first
_MOST_WAITING = 8  # ours: people, not programs, ask
_MOST_SECONDS = 30.0  # for one answer, the process's start and a long log included
_IDLE_SECONDS = 60.0  # then the process ends: it takes as much memory as any command of Scrapy's
_MOST_ANSWER_BYTES = 4 * 1024 * 1024


class NoAnswer(Exception):
    """Why not, in one sentence."""


class Questions:
    """One process at a time, started when something is asked; questions wait for each other."""

    def __init__(self, settings: Mapping[str, Any], *, idle_seconds: float = _IDLE_SECONDS) -> None:
        """``settings``: those of the crawl, as it was started; ``idle_seconds``: how long the process outlives one."""
        self._settings = settings
        self._idle_seconds = idle_seconds
        self._one = asyncio.Lock()
        self.waiting = 0  # questions that have no answer yet
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: asyncio.StreamReader | None = None
        self._asked: asyncio.StreamWriter | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False

    async def ask(self, kind: str, text: str) -> dict[str, Any]:
        """The answer to ``why`` or ``host``. Raises NoAnswer."""
        if self._closed:
            raise NoAnswer("The crawl ends.")
        if self.waiting >= _MOST_WAITING:
            raise NoAnswer("Too many questions at once; ask again in a moment.")
        self.waiting += 1
        try:
            async with asyncio.timeout(_MOST_SECONDS), self._one:
                if self._closed:
                    raise EOFError
                return await self._asked_one(kind, text)
        except TimeoutError:
            self._end()
            raise NoAnswer(f"No answer within {_MOST_SECONDS:.0f} s; scrapy {kind} has more time.") from None
        except (OSError, EOFError, ValueError):
            self._end()
            why = "The crawl ends." if self._closed else "The process that answers has ended; ask again."
            raise NoAnswer(why) from None
        finally:
            self.waiting -= 1

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None

    def close(self) -> None:
        """No more."""
        self._closed = True
        self._end()

    async def _asked_one(self, kind: str, text: str) -> dict[str, Any]:
        if self._idle is not None:
            self._idle.cancel()
        if self._asked is None:
            await self._start()
        assert self._asked is not None
        assert self._answers is not None
        try:
            self._asked.write(orjson.dumps({"kind": kind, "text": text}) + b"\n")
            await self._asked.drain()
            answer = await self._answers.readline()
            if not answer:
                raise EOFError
        except BaseException:
            self._end()  # it may be in the middle of an answer
            raise
        self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._end)
        found: dict[str, Any] = orjson.loads(answer)
        return found

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        paths = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # the project may be an egg of scrapyd's
        with theirs:
            # Not asyncio's own: under Twisted's reactor the end of its processes is not always seen.
            self._process = subprocess.Popen(
                [sys.executable, "-m", _PROGRAM, str(_NICENESS)],
                env={**os.environ, "PYTHONPATH": paths},
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the crawl
            )
        ours.setblocking(False)
        self._answers, self._asked = await asyncio.open_unix_connection(sock=ours, limit=_MOST_ANSWER_BYTES)
        # Over the socket, not on the command line, which everyone on the machine can read: a setting may be a password.
        self._asked.write(orjson.dumps(self._settings, default=str) + b"\n")

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if self._asked is not None:
            self._asked.close()
        if self._process is not None:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):  # Popen collects it later
                self._process.wait(0.02)
        self._process = self._answers = self._asked = self._idle = None
