"""Connections on real sockets: time limits, and each way to fail."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import Any

import pytest

from crawlerproject.errors import FetchError
from crawlerproject.fetch.pool import Connection
from crawlerproject.reasons import Reason
from tests.fetch.pools import GET, at, failing, pool_with
from tests.fetch.servers import answering, ok, run, serving
from tests.open_files import no_more_files
from tests.web.waiting import busyness, eventually, unread

NO_END = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
SLOW = {"slow_grace_seconds": 0.2, "min_bytes_per_second": 1e6}
LATE = [  # limits, pieces the server sends, pause between them, reason or None, truncated
    ("no byte", {"first_byte_timeout_seconds": 0.2}, [], Reason.FIRST_BYTE_TIMEOUT, None),
    ("half a head", {"timeout_seconds": 0.3}, [b"HTTP/1.1 200 OK\r\n"], Reason.FIRST_BYTE_TIMEOUT, None),
    ("half a body", {"timeout_seconds": 0.3}, [ok()[:-5]], None, "time"),
    ("no final CRLF", {"timeout_seconds": 0.3}, [NO_END], None, None),
    ("too slow", SLOW, [ok()[:-5]], None, "time"),
    ("too slow a head", SLOW, [b"HTTP/1.1"], Reason.FIRST_BYTE_TIMEOUT, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "pieces", "reason", "truncated"), [row[1:] for row in LATE], ids=[row[0] for row in LATE]
)
def test_late_answers(
    limits: dict[str, Any], pieces: list[bytes], reason: Reason | None, truncated: str | None
) -> None:
    """Before the head is there lateness is an error; after it, what came is kept and marked."""

    async def main() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.writelines(pieces)
            await reader.read()

        pool = pool_with(**limits)
        began = time.monotonic()
        async with serving(talk) as server:
            if reason is None:
                answer = await pool.fetch(at(server.port), GET)
                assert answer.truncated == truncated
                assert answer.body
                assert len(pool._idle) == 0
            else:
                error = await failing(pool, at(server.port))
                assert error.reason == reason
                assert error.wire is not None
                assert error.wire.request_bytes == GET
            assert time.monotonic() - began < 3 * busyness()
        pool.close()

    run(main())


def test_steady_answer_is_not_too_slow() -> None:
    """A slow but steady server above the least speed is read to its end."""

    async def main() -> None:
        pool = pool_with(slow_grace_seconds=0.05, min_bytes_per_second=20)
        pieces = [ok(b"x" * 100)[:-100], *[b"x" * 10] * 10]
        async with answering(*pieces, pause_seconds=0.03) as server:
            answer = await pool.fetch(at(server.port), GET)
            assert (answer.body, answer.truncated) == (b"x" * 100, None)
        pool.close()

    run(main())


def test_cancelled_fetch_leaves_nothing_behind() -> None:
    """A cancelled request's connection is closed, not kept."""

    async def main() -> None:
        pool = pool_with()
        async with answering() as server:
            task = asyncio.ensure_future(pool.fetch(at(server.port), GET))
            await eventually(lambda: server.requests)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(pool._idle) == 0
        pool.close()

    run(main())


def test_closing_the_pool_ends_what_is_under_way() -> None:
    """No fetch waits for a pool that is closed."""

    async def main() -> None:
        pool = pool_with()
        async with answering() as server:
            task = asyncio.ensure_future(pool.fetch(at(server.port), GET))
            await eventually(lambda: server.requests)
            pool.close()
            with pytest.raises(FetchError):
                await task

    run(main())


def test_refused() -> None:
    """Nobody listens."""

    async def main() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            error = await failing(pool_with(), at(free.getsockname()[1]))
            assert (error.reason, error.wire) == (Reason.CONNECT_REFUSED, None)

    run(main())


def test_a_process_that_stood_still_hears_of_its_deadline_late() -> None:
    """What is logged is the deadline: by then, and not later, others may have asked the host."""

    async def main() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            asyncio.get_running_loop().call_soon(time.sleep, 1.6)  # as SIGSTOP does
            await reader.read()

        pool = pool_with(timeout_seconds=0.2)
        async with serving(talk) as server:
            error = await failing(pool, at(server.port))
        assert error.wire is not None
        assert error.wire.ended_at - error.wire.started_at == pytest.approx(0.2, abs=0.001)
        pool.close()

    run(main())


def test_connect_timeout() -> None:
    """A handshake that never comes counts as connecting."""

    async def main() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with serving(talk) as server:
            error = await failing(pool_with(connect_timeout_seconds=0.2), at(server.port, tls=True))
            assert error.reason == Reason.CONNECT_TIMEOUT
            task = asyncio.current_task()
            assert task is not None
            assert not task.cancelling()  # who asks goes on

    run(main())


def test_who_is_cancelled_while_connecting_ends_so() -> None:
    """It is no lateness of the server's, and no connection is left."""

    async def main() -> None:
        ended = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task.cancel()
            with contextlib.suppress(ConnectionError):
                await reader.read()
            ended.set()

        async with serving(talk) as server:
            asking = pool_with(connect_timeout_seconds=9).fetch(at(server.port, tls=True), GET)
            task = asyncio.ensure_future(asking)
            with pytest.raises(asyncio.CancelledError):
                await task
            await ended.wait()

    run(main())


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ([], Reason.DISCONNECTED),
        ([b"HTTP/1.1 200 OK\r\nConte"], Reason.DISCONNECTED),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], Reason.BAD_RESPONSE),
        ([b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000], Reason.HEADER_TOO_LARGE),
    ],
)
def test_unusable_answers(pieces: list[bytes], reason: Reason) -> None:
    """The reader's reasons come through, with what was received."""

    async def main() -> None:
        async with answering(*pieces, close=True) as server:
            error = await failing(pool_with(), at(server.port))
            assert error.reason == reason
            assert error.wire is not None
            assert error.wire.received_bytes == len(b"".join(pieces)) or reason == Reason.HEADER_TOO_LARGE

    run(main())


def test_reset_is_no_end_of_a_body_read_until_close() -> None:
    """A connection that is reset in the body leaves a body marked "disconnect"."""

    async def main() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\npart")
            await writer.drain()
            await eventually(lambda: not unread(writer.get_extra_info("socket")))  # a reset would overtake it
            linger = b"\1\0\0\0\0\0\0\0"  # on, for 0 s: close() sends RST
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

        pool = pool_with()
        async with serving(talk) as server:
            answer = await pool.fetch(at(server.port), GET)
            assert (answer.body, answer.truncated) == (b"part", "disconnect")
        pool.close()

    run(main())


def test_no_file_is_left_for_a_connection() -> None:
    """EMFILE is ours: it says nothing of the host."""

    async def main() -> None:
        async with answering(ok()) as server:
            with no_more_files():
                error = await failing(pool_with(), at(server.port))
            assert error.reason is Reason.OUR_LIMIT

    run(main())


@pytest.mark.parametrize(("late_seconds", "reason"), [(0.5, Reason.FIRST_BYTE_TIMEOUT), (30.0, Reason.OUR_LIMIT)])
def test_a_process_that_stood_still_while_it_connected(
    monkeypatch: pytest.MonkeyPatch, late_seconds: float, reason: Reason
) -> None:
    """Nothing is sent when all the time is over; of much more than that the host knows nothing."""
    asked: list[bytes] = []

    async def main() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.read(1))

        async with serving(talk) as server:
            pool = pool_with(timeout_seconds=20.0)
            made = Connection.connection_made

            def connected(connection: Connection, transport: asyncio.BaseTransport) -> None:
                made(connection, transport)
                late = 20.0 + late_seconds
                monkeypatch.setattr("crawlerproject.fetch.pool.monotonic", lambda: time.monotonic() + late)

            monkeypatch.setattr(Connection, "connection_made", connected)
            error = await failing(pool, at(server.port))
        assert (error.reason, error.detail) == (reason, "no time was left to ask")

    run(main())
    assert asked in ([], [b""])
