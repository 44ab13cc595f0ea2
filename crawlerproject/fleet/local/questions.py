"""What a local fleet's workers ask their supervisor: named questions and their answers, a line of JSON each.

A worker writes ``[number, name, …]``, the supervisor ``[number, answer]``, in the order of the questions. The first
question of a connection is ``hello``. A connection that closes is a worker that is gone, or a supervisor that is.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from crawlerproject.runtime.unix_sockets import listening

logger = logging.getLogger(__name__)

HELLO = "hello"
"""``[worker]``: True, or a sentence that says why not."""

ADDRESSES = "addresses"
"""``[wanted, rested]``, wanted IP addresses each with a domain, and others that are given back, each with whether a
quick domain waits for it in the worker's own line, and these with the seconds that the request took, or null: for each
wanted what ``AddressTurns.ask`` says."""
REPORT = "report"
"""``[quiet, activity, unread, counts]`` (``WorkerReport``, ``Counts``): whether the crawl is done."""

# A line that is longer comes from no worker of ours: a batch of addresses is some KB.
_LONGEST_LINE_BYTES = 16_000_000
_PEER = struct.Struct("3i")  # pid, uid, gid (socket(7), SO_PEERCRED)

Answer = Callable[..., Any]
"""Is called with the worker's name and what the question brings; returns what JSON can hold."""


def packed(said: Any) -> bytes:
    """As a line."""
    return orjson.dumps(said) + b"\n"


class Lines:
    """Bytes as they come, in; whole lines, unpacked, out."""

    def __init__(self) -> None:
        self._rest = b""

    def __call__(self, data: bytes) -> list[Any]:
        """The lines that are whole now. Raises ValueError."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE_BYTES:
            raise ValueError("a line without an end")
        return [orjson.loads(line) for line in whole]


class QuestionServer:
    """The supervisor's end: a table of questions by name, and the workers that are connected."""

    def __init__(self, came: Callable[[str, int], str], went: Callable[[str], None]) -> None:
        """``came(worker, pid)``: "" when it may ask; ``went(worker)``: its connection has closed."""
        self.answers: dict[str, Answer] = {}
        self.connected: set[str] = set()
        self.came, self.went = came, went
        self._server: asyncio.AbstractServer | None = None

    async def serve(self, path: Path) -> None:
        """Listen at ``path``, for this user's processes alone. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Connection(self), sock=listening(path))

    def close(self) -> None:
        """Take no more connections."""
        if self._server is not None:
            self._server.close()


class _Connection(asyncio.Protocol):
    def __init__(self, server: QuestionServer) -> None:
        self._server = server
        self._worker = ""
        self._lines = Lines()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for number, name, *said in self._lines(data):
                self._transport.write(packed([number, self._answer(name, said)]))
        except Exception:  # no worker of ours, or a mistake of ours: the worker ends in good order
            logger.exception("a question of %s cannot be answered", self._worker or "a stranger")
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self._worker:
            self._server.connected.discard(self._worker)
            self._server.went(self._worker)

    def _answer(self, name: str, said: list[Any]) -> Any:
        if name != HELLO:
            if not self._worker:
                raise ValueError(f"{name} before {HELLO}")
            return self._server.answers[name](self._worker, *said)
        server, worker = self._server, said[0]
        if worker in server.connected:
            return f"{worker} is at work already"
        peer = self._transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        pid, _, _ = _PEER.unpack(peer)
        if refused := server.came(worker, pid):
            return refused
        self._worker = worker
        server.connected.add(worker)
        return True
