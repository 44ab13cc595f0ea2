"""A server that sends exactly the bytes it was given, on IPv4 and IPv6, and keeps a copy of what it sent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator, Mapping

from tests.web.answers import NOT_FOUND
from tests.web.graph import Answer
from tests.web.ports import free_port
from tests.web.threads import listening

_HEAD_SECONDS = 30.0


class RawServer:
    """Answers by path. ``sent``: for each path the bytes of its last answer that left, piece by piece."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = answers
        self.sent: dict[str, bytes] = {}
        self.port = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
                path = head.split(b" ", 2)[1].decode()
                answer = self._answers.get(path, NOT_FOUND)
                self.sent[path] = b""
                for number, piece in enumerate(answer.pieces):
                    if number:
                        await asyncio.sleep(answer.gap_seconds)
                    writer.write(piece)
                    self.sent[path] += piece
                    await writer.drain()
                if answer.close:
                    break
        writer.close()


@contextlib.contextmanager
def raw_server(answers: Mapping[str, Answer]) -> Iterator[RawServer]:
    """Listen on 127.0.0.1 and ::1 in a thread of this process."""
    server = RawServer(answers)
    server.port = free_port()
    four = socket.create_server(("127.0.0.1", server.port))
    six = socket.create_server(("::1", server.port), family=socket.AF_INET6)

    async def listen() -> None:
        for sock in (four, six):
            await asyncio.start_server(server.talk, sock=sock)

    with listening(listen):
        yield server
