"""Answers that end where anybody on the way could have cut them: TLS without close_notify, TCP with a reset."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from crawlerproject.rules.archive.http_messages import Wire
from tests.fetch.pools import GET, at, pool_with
from tests.fetch.servers import make_ca, server_tls
from tests.hostile.ledger import pays
from tests.web.waiting import unread, wait_until

UNTIL_CLOSE = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>half a pa"
WITH_LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n"
Loop = Callable[[], asyncio.AbstractEventLoop]
LOOPS = [pytest.param(uvloop.new_event_loop, id="uvloop"), pytest.param(asyncio.new_event_loop, id="asyncio")]


def notified(connection: ssl.SSLSocket) -> None:
    """close_notify, then the end of TCP (RFC 8446 section 6.1)."""
    connection.unwrap()


def silent(connection: ssl.SSLSocket) -> None:
    """The end of TCP and nothing else."""


def reset(connection: socket.socket) -> None:
    """RST, as a middlebox sends it or a server that dies; once the client has read all, which it would overtake."""
    wait_until(lambda: not unread(connection), "read", seconds=10)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextlib.contextmanager
def server(wire: bytes, end: Callable[[Any], None], tls: ssl.SSLContext | None) -> Iterator[int]:
    """A server on plain sockets, since asyncio's say good-bye by themselves; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as plain:
            plain.settimeout(10)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a reset drops what has not left yet
            connection = plain if tls is None else tls.wrap_socket(plain, server_side=True)
            connection.recv(65536)
            connection.sendall(wire)
            with contextlib.suppress(OSError):
                end(connection)
            connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()
        thread.join(10)


def fetched(loop: Loop, wire: bytes, end: Callable[[Any], None], tls: tuple[ssl.SSLContext, str] | None) -> Wire:
    """One answer through the crawler's own pool."""

    async def main(port: int) -> Wire:
        pool = pool_with(tls[1] if tls else "")
        try:
            return await asyncio.wait_for(pool.fetch(at(port, tls=tls is not None), GET), 10)
        finally:
            pool.close()

    with server(wire, end, tls[0] if tls else None) as port, asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main(port))


@pytest.fixture(scope="module", params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["tls1.2", "tls1.3"])
def tls(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    """A server's context in one version, and the authority that vouches for it."""
    folder: Path = tmp_path_factory.mktemp("tls")
    ca = make_ca(folder)
    context = server_tls(folder, ca, "site.test")
    context.minimum_version = context.maximum_version = request.param
    return context, ca[2]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("end", "truncated"), [(notified, None), (silent, "disconnect")])
def test_a_tls_body_read_until_close_is_whole_only_after_close_notify(
    loop: Loop, tls: tuple[ssl.SSLContext, str], end: Callable[[Any], None], truncated: str | None
) -> None:
    """The same bytes, stored as whole or as cut."""
    wire = fetched(loop, UNTIL_CLOSE, end, tls)

    assert wire.body == b"<p>half a pa"
    wrong = int(wire.truncated != truncated)
    pays("an answer cut under TLS", "the archive", wrong, "cut bodies kept as whole", at_most=0)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("answer", [WITH_LENGTH, CHUNKED], ids=["length", "chunked"])
def test_what_says_its_own_length_needs_no_close_notify(
    loop: Loop, tls: tuple[ssl.SSLContext, str], answer: bytes
) -> None:
    """Content-Length and the last chunk are inside TLS: no one else can have written them."""
    wire = fetched(loop, answer, silent, tls)

    assert (wire.body, wire.truncated) == (b"whole", None)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_plain_body_read_until_close_ends_with_the_connection(loop: Loop) -> None:
    """HTTP/1.0 as it has always been: there is nothing that could tell a cut from an end."""
    wire = fetched(loop, UNTIL_CLOSE, silent, None)

    assert (wire.body, wire.truncated) == (b"<p>half a pa", None)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("secured", [False, True])
def test_a_reset_in_the_middle_is_a_cut(loop: Loop, secured: bool, tls: tuple[ssl.SSLContext, str]) -> None:
    """Of a body read until close as of one whose length was promised."""
    for answer in (UNTIL_CLOSE, UNTIL_CLOSE.replace(b"\r\n\r\n", b"\r\nContent-Length: 99\r\n\r\n")):
        wire = fetched(loop, answer, reset, tls if secured else None)

        assert (wire.body, wire.truncated) == (b"<p>half a pa", "disconnect")
