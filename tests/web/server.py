"""Answers for the synthetic web: a lean HTTP/1.1 server that logs when each request began and its answer ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import socket
import time
from email.utils import formatdate
from pathlib import Path
from typing import cast

from tests.web.answers import NOT_FOUND, REST_DATE
from tests.web.graph import Answer, Page, Site

_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n:]+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)
_CONDITIONAL = re.compile(rb"\r\nif-(?:none-match|modified-since):", re.IGNORECASE)
_METHOD_REFUSED = Answer(405, (b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n",), close=True)
_HEAD_BYTES = 65536  # a request head larger than this ends the connection
_BACKLOG = 4096  # connections not accepted yet: a crawl of 10,000 hosts opens many at once


def http_date(seconds: float) -> bytes:
    """The HTTP date at least ``seconds`` from now, of which it tells whole seconds only."""
    return formatdate(math.ceil(time.time() + seconds), usegmt=True).encode()


class ServerLog:
    """One JSON line a request, in the file before the next event is handled."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)

    def write(self, line: str) -> None:
        os.write(self._fd, line.encode())

    def close(self) -> None:
        os.close(self._fd)


class Web:
    """The sites that a server answers for, and how often each page with a history was asked for."""

    def __init__(self, sites: dict[str, Site], log: ServerLog) -> None:
        self._sites = sites
        self._asked: dict[tuple[str, str], int] = {}
        self._connections = 0
        self.log = log

    def connection_number(self) -> int:
        self._connections += 1
        return self._connections

    def answer(self, host: str, path: str, head: bytes) -> Answer:
        site = self._sites.get(host)
        if site is None:
            return NOT_FOUND
        if site.dynamic is not None and (made := site.dynamic(path, head)) is not None:
            return made
        page = site.pages.get(path)
        if page is not None:
            return self._turn(host, path, page) if page.first else page.answer
        endless = site.endless(path) if site.endless else None
        return endless or NOT_FOUND

    def _turn(self, host: str, path: str, page: Page) -> Answer:
        turn = self._asked.get((host, path), 0)
        self._asked[host, path] = turn + 1
        return page.first[turn] if turn < len(page.first) else page.answer


class Visitor(asyncio.Protocol):
    """One connection; requests on it are answered one after the other."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._buffer = b""
        self._current: tuple[float, str, str, Answer] | None = None
        self._note = ""
        self._written = 0
        self._handed_over = 0.0
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in deed, not in type
        self._ip: str = transport.get_extra_info("sockname")[0]
        self._number = self._web.connection_number()
        if not (self._ip.startswith("127.") and transport.get_extra_info("peername")[0].startswith("127.")):
            self._transport.abort()  # bound to every address so that all of 127/8 works; no other address is served

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._current is None:
            self._next_request()

    def _next_request(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _HEAD_BYTES:
                self._transport.abort()
            return
        head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
        started = time.time()
        line = head.split(b"\r\n", 1)[0].split(b" ")
        found = _HOST.search(head)
        host = found[1].decode("latin-1").lower().strip() if found else ""
        path = line[1].decode("latin-1") if len(line) == 3 else "/"
        answer = self._web.answer(host, path, head) if line[0] == b"GET" else _METHOD_REFUSED
        self._current = (started, host, path, answer)
        if b"close" in head and _CLOSE.search(head):
            self._current = (started, host, path, answer._replace(close=True))
        self._note = ',"conditional":true' if _CONDITIONAL.search(head) else ""
        self._written = 0
        self._handed_over = started
        if answer.wait_seconds:
            self._timer = asyncio.get_running_loop().call_later(answer.wait_seconds, self._send, 0)
        else:
            self._send(0)

    def _send(self, index: int) -> None:
        """Write the pieces from ``index`` on; pieces with a gap come back here by timer."""
        self._timer = None
        answer = self._answering()
        while index < len(answer.pieces):
            piece = answer.pieces[index]
            if answer.dated:
                piece = piece.replace(REST_DATE, http_date(answer.rest_seconds))
            self._written += len(piece)
            self._handed_over = time.time()  # before, not after: a busy machine may let us wait in between
            self._transport.write(piece)
            index += 1
            if answer.gap_seconds and index < len(answer.pieces):
                self._timer = asyncio.get_running_loop().call_later(answer.gap_seconds, self._send, index)
                return
        if not self._paused:
            self._finish()

    def pause_writing(self) -> None:
        self._paused = True  # the peer is slower than we: the answer ends when the buffer has drained

    def resume_writing(self) -> None:
        self._paused = False
        self._handed_over = time.time()
        if self._current is not None and self._timer is None:
            self._finish()

    def _answering(self) -> Answer:
        assert self._current is not None
        return self._current[3]

    def _finish(self) -> None:
        answer = self._answering()
        self._log(self._note, self._handed_over)
        if answer.close:
            self._transport.close()
        elif self._buffer:
            self._next_request()

    def _log(self, note: str, ended: float) -> None:
        assert self._current is not None
        started, host, path, answer = self._current
        self._current = None
        rest = f',"rest":{answer.rest_seconds}' if answer.rest_seconds else ""
        self._web.log.write(
            f'{{"start":{started:.6f},"end":{ended:.6f},"host":{json.dumps(host)},"ip":"{self._ip}",'
            f'"path":{json.dumps(path)},"status":{answer.status},"bytes":{self._written},'
            f'"connection":{self._number}{rest}{note}}}\n'
        )

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._current is not None:
            self._log(',"cut":true', time.time())


def listening_socket(port: int) -> socket.socket:
    """A socket on every loopback address (Linux delivers all of 127/8 to a wildcard socket)."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with contextlib.suppress(OSError, AttributeError):  # where allowed, other interfaces cannot even connect
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    made.bind(("0.0.0.0", port))
    made.setblocking(False)
    return made


async def serve(sock: socket.socket, sites: dict[str, Site], log_path: Path) -> asyncio.Server:
    """Start to answer for ``sites`` on ``sock``; close the returned server to stop."""
    web = Web(sites, ServerLog(log_path))
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: Visitor(web), sock=sock, backlog=_BACKLOG)
