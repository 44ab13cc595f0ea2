"""A local worker's connection to its supervisor: named questions and their answers, a line of JSON each.

A worker writes ``[number, name, …]``, the supervisor ``[number, answer]``, in the order of the questions. The first
question of a connection is ``hello``. A connection closes when the worker, or the supervisor, has exited.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.fleet.local.fleet_tables import Counts, WorkerReport
from crawlerproject.rules.fleet_shares import QuotaRequest, Share
from crawlerproject.rules.politeness.address_turns import Claim
from crawlerproject.runtime.unix_sockets import connected, listening
from crawlerproject.stores.protocols import NearText, Text

logger = logging.getLogger(__name__)

HELLO = "hello"
"""``[worker]``: True, or a sentence that says why not."""

ADDRESSES = "addresses"
"""``[wanted, rested]``, of ``Claim``: for each wanted what ``AddressTurns.ask`` says."""

SHARES = "shares"
"""``[claims]``, of ``QuotaRequest``: of each the ``Share``."""

TEXTS = "texts"
"""``[added, values, bits]``, of ``Text``: for each value a list of ``NearText``; None when the disk refuses."""

RUNNING = "running"
"""``[]``: for how many seconds this run of the fleet has lasted."""

REPORT = "report"
"""``[quiet, activity, unread, counts]`` (``WorkerReport``, ``Counts``): whether the crawl is done."""

MAIL = "mail"
"""``[posts, read, boxes, partitions]``, messages ``[partition, outbox, number, packed]``, what was read of inboxes
``[partition, removed, [[outbox, number], …]]``, boxes ``[partition, outbox]`` and partitions (``InboxTable``): for each
box up to which number it was read, and of these partitions what is in their inboxes, each ``[partition, removed,
[[outbox, number, packed], …]]``. Outboxes are hexadecimal; what is packed is text already."""

# A line that is longer comes from no worker of ours: a batch of addresses is some KB.
_LONGEST_LINE_BYTES = 16_000_000
_PEER = struct.Struct("3i")  # pid, uid, gid (socket(7), SO_PEERCRED)

Ask = Callable[..., Awaitable[Any]]
"""``SupervisorLink.ask``."""
Answer = Callable[..., Any]
"""Is called with the worker's name and what the question brings; returns what ``json_line`` takes."""


def json_line(values: Any) -> bytes:
    """One question or answer: named tuples are lists in it, bytes hexadecimal."""
    return orjson.dumps(values, lambda each: each.hex() if isinstance(each, bytes) else tuple(each)) + b"\n"


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

    def __init__(self, refusal: Callable[[str, int], str], disconnected: Callable[[str], None]) -> None:
        """``refusal(worker, pid)``: why it may not ask, "" when it may; ``disconnected(worker)``: it has exited."""
        self.answers: dict[str, Answer] = {}
        self.connected: set[str] = set()
        self.refusal, self.disconnected = refusal, disconnected
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
            for number, name, *arguments in self._lines(data):
                self._transport.write(json_line([number, self._answer(name, arguments)]))
        except Exception:  # no worker of ours, or a mistake of ours: the worker ends in good order
            logger.exception("a question of %s cannot be answered", self._worker or "a stranger")
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self._worker:
            self._server.connected.discard(self._worker)
            self._server.disconnected(self._worker)

    def _answer(self, name: str, arguments: list[Any]) -> Any:
        if name != HELLO:
            if not self._worker:
                raise ValueError(f"{name} before {HELLO}")
            return self._server.answers[name](self._worker, *arguments)
        server, worker = self._server, arguments[0]
        if worker in server.connected:
            return f"{worker} is at work already"
        peer = self._transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        pid, _, _ = _PEER.unpack(peer)
        if refusal := server.refusal(worker, pid):
            return refusal
        self._worker = worker
        server.connected.add(worker)
        return True


SUPERVISOR_GONE = "supervisor_gone"
"""Why a crawl closed whose supervisor died."""
# For the answer to the first question; a supervisor that was stopped (SIGSTOP) answers when it goes on.
_HELLO_SECONDS = 60.0
_READ_BYTES = 65_536


class SupervisorLink:
    """Questions from one event loop; the first of them attaches the connection to it."""

    def __init__(self, path: Path, worker: str) -> None:
        """Connect and say hello. Blocking. Raises OperatorError: there is no supervisor, or it wants no such worker."""
        self.broken = ""  # why nothing can be asked any more; "" while the supervisor is there
        self.done = False  # nothing is left to do in the whole crawl
        self._activity = 0
        self._reporting: asyncio.Task[None] | None = None
        self._lines = Lines()
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unsent = b""
        try:
            self._socket = connected(path, _HELLO_SECONDS)
            self._socket.sendall(json_line([0, HELLO, worker]))
            lines: list[Any] = []
            while not lines:
                if not (data := self._socket.recv(_READ_BYTES)):
                    raise ConnectionResetError("the supervisor has exited")
                lines = self._lines(data)
        except OSError as error:
            raise OperatorError(f"{path} does not answer ({error}); the same scrapy fleet continues.") from error
        _, answer = lines[0]
        if answer is not True:
            self._socket.close()
            raise OperatorError(f"The supervisor refuses this worker: {answer}.")
        self._socket.setblocking(False)

    async def ask(self, name: str, *arguments: Any) -> Any:
        """The answer to a question. Raises StorageError when the supervisor has exited, or exits meanwhile."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            loop.add_reader(self._socket, self._read)
        if self.broken:
            raise StorageError(self.broken)
        self._number += 1
        line = json_line([self._number, name, *arguments])
        answer = self._waiting[self._number] = loop.create_future()
        self._send(line)
        return await answer

    async def reserve(self, wanted: Sequence[Claim], rested: Sequence[Claim]) -> list[float]:
        """As any ``Coordinator``: for as long as the connection lives."""
        waits: list[float] = await self.ask(ADDRESSES, wanted, rested)
        return waits

    async def shares(self, claims: Sequence[QuotaRequest]) -> list[Share]:
        """As any ``Coordinator``."""
        return [Share(*share) for share in await self.ask(SHARES, claims)]

    async def texts(self, added: Sequence[Text], values: Sequence[int], bits: int) -> list[list[NearText]]:
        """As any ``Coordinator``."""
        answers = await self.ask(TEXTS, added, values, bits)
        if answers is None:
            raise StorageError("the supervisor's disk refuses texts")
        return [[NearText(differ, bytes.fromhex(key), url) for differ, key, url in some] for some in answers]

    def report(self, unread: list[str], counts: Counts, *, quiet: bool) -> None:
        """Say how it stands, unless the answer to the report before is still to come: a supervisor may be stopped.

        ``quiet``: there is nothing to do, and nothing came since the call before. ``unread``: as in ``WorkerReport``.
        """
        self._activity += not quiet
        if self._reporting is None:
            report = WorkerReport(quiet, self._activity, unread)
            self._reporting = asyncio.get_running_loop().create_task(self._report(report, counts))

    async def _report(self, report: WorkerReport, counts: Counts) -> None:
        try:
            self.done = await self.ask(REPORT, *report, list(counts)) or self.done
        except StorageError:
            return  # the commit loop sees that the supervisor has exited
        finally:
            self._reporting = None

    def close(self) -> None:
        """Ask no more: addresses that were reserved rest and are free. Harmless when done twice."""
        if self._reporting is not None:
            self._reporting.cancel()
        self._break("the connection to the supervisor is closed")

    def _send(self, data: bytes) -> None:
        assert self._loop is not None
        if self._unsent:
            self._unsent += data
            return
        self._unsent = data
        self._write()
        if self._unsent:
            self._loop.add_writer(self._socket, self._write)

    def _write(self) -> None:
        assert self._loop is not None
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError as error:
            self._break(f"the supervisor has exited ({error.strerror})")
            return
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def _read(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._break("the supervisor has exited")
            return
        for number, answer in self._lines(data):
            waiting = self._waiting.pop(number)
            if not waiting.done():  # who asked may have been cancelled
                waiting.set_result(answer)

    def _break(self, reason: str) -> None:
        if self.broken:
            return
        self.broken, self._unsent = reason, b""
        if self._loop is not None:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
        self._socket.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(StorageError(reason))
        self._waiting.clear()
