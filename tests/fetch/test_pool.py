"""Connections on real sockets: what is kept, used again and let go."""

from __future__ import annotations

import asyncio
import time

import pytest

from crawlerproject.fetch import pool as pools
from crawlerproject.reasons import Reason
from crawlerproject.runtime.clock import stamp
from tests.fetch.pools import GET, at, failing, pool_with
from tests.fetch.servers import PAGE, answering, ok, run, serving
from tests.web.waiting import busyness, eventually


def test_wire_holds_what_crossed_it() -> None:
    """Request, head, body, address, times and counts of one exchange."""

    async def main() -> None:
        pool = pool_with()
        before = time.time()
        async with answering(ok()) as server:
            wire = await pool.fetch(at(server.port), GET)
            assert server.requests == [GET]
            port = server.port
        pool.close()
        assert (wire.request_bytes, wire.body, wire.status) == (GET, PAGE, 200)
        assert wire.head_bytes + wire.body == ok()
        assert (wire.ip, wire.port, wire.protocols, wire.cipher) == ("127.0.0.1", port, ("http/1.1",), None)
        assert (wire.received_bytes, wire.truncated, wire.reused) == (len(ok()), None, False)
        assert before <= wire.started_at <= wire.ended_at <= time.time() + 0.05 * busyness()
        assert wire.ttfb_seconds is not None
        assert 0 <= wire.ttfb_seconds <= wire.ended_at - wire.started_at
        assert next(iter(wire.headers.items())) == (b"Content-Type", [b"text/html"])

    run(main())


def test_a_process_that_is_held_up_between_two_clocks_says_no_later_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen as a pause cut by 28 ms under a load of 27, by an end that was said to be later than it was."""
    held_seconds = 0.03

    def read() -> float:
        now = time.monotonic()
        time.sleep(held_seconds)
        return now

    async def main() -> None:
        pool = pool_with()
        async with answering(ok()) as server:
            monkeypatch.setattr(pools, "monotonic", read)
            wire = await pool.fetch(at(server.port), GET)
            assert wire.ended_at <= stamp() - held_seconds  # the last reading came after it
        pool.close()

    run(main())


def test_connection_is_reused_for_the_same_endpoint_only() -> None:
    """Two requests to one endpoint share a connection; another host name on the same address does not."""

    async def main() -> None:
        pool = pool_with()
        async with answering(ok()) as server:
            first = await pool.fetch(at(server.port), GET)
            second = await pool.fetch(at(server.port), GET)
            await pool.fetch(at(server.port, "other.test"), GET)
            assert (first.reused, second.reused) == (False, True)
            assert second.connect_seconds == 0
            assert (server.connections, len(pool._idle)) == (2, 2)
        pool.close()
        assert len(pool._idle) == 0

    run(main())


@pytest.mark.parametrize("header", [b"Connection: close", b"Keep-Alive: timeout=1"])
def test_connection_is_not_kept_against_the_servers_word(header: bytes) -> None:
    """Neither past "close" nor into the second in which the server hangs up."""

    async def main() -> None:
        pool = pool_with()
        async with answering(ok(PAGE, header)) as server:
            await pool.fetch(at(server.port), GET)
            assert len(pool._idle) == 0
            assert not (await pool.fetch(at(server.port), GET)).reused
        pool.close()

    run(main())


@pytest.mark.parametrize(("pause", "kept"), [(7.5, 1), (8.0, 0), (20.0, 0)])
def test_a_connection_that_no_request_can_use_again_is_not_kept(pause: float, kept: int) -> None:
    """The next one comes when it would have been let go anyway: the server need not hold it for that long."""

    async def main() -> None:
        pool = pool_with(keepalive_seconds=8.0)
        async with answering(ok()) as server:
            await pool.fetch(at(server.port), GET, pause_seconds=pause)
            assert len(pool._idle) == kept
        pool.close()

    run(main())


def test_idle_connections_expire_and_are_capped() -> None:
    """The pool holds no more than it may, and none longer than it may."""

    async def main() -> None:
        pool = pool_with(max_idle_connections=3, keepalive_seconds=0.3)
        async with answering(ok()) as server:
            for number in range(6):
                await pool.fetch(at(server.port, f"h{number}.test"), GET)
            assert len(pool._idle) == 3
            await eventually(lambda: not pool._idle)
        pool.close()

    run(main())


def test_idle_connection_the_server_closed_is_not_used() -> None:
    """A closed connection is noticed before it is used, and a new one made: one request, sent once."""

    async def main() -> None:
        pool = pool_with()
        async with answering(ok(), close=True) as server:
            await pool.fetch(at(server.port), GET)
            await eventually(lambda: not pool._idle)  # the server's end has arrived
            assert not (await pool.fetch(at(server.port), GET)).reused
            assert len(server.requests) == 2
        pool.close()

    run(main())


def test_dying_kept_connection_fails_and_nothing_is_sent_again() -> None:
    """A server that hangs up on the second request sees that request once; the fetch is DISCONNECTED."""

    async def main() -> None:
        asked: list[bytes] = []

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(ok())
            asked.append(await reader.readuntil(b"\r\n\r\n"))

        pool = pool_with()
        async with serving(talk) as server:
            await pool.fetch(at(server.port), GET)
            error = await failing(pool, at(server.port))
            assert error.reason == Reason.DISCONNECTED
            assert error.wire is not None
            assert error.wire.reused
            assert (len(asked), server.connections) == (2, 1)

    run(main())


def test_unasked_bytes_on_an_idle_connection_end_it() -> None:
    """What a server says unasked must not become the next answer."""

    async def main() -> None:
        pool = pool_with()
        async with answering(ok(), ok(b"stale"), pause_seconds=0.05) as server:
            await pool.fetch(at(server.port), GET)
            await eventually(lambda: not pool._idle)  # bytes that were not asked for have arrived
            answer = await pool.fetch(at(server.port), GET)
            assert (answer.body, answer.reused) == (PAGE, False)
        pool.close()

    run(main())


def test_concurrent_fetches_do_not_share_a_connection() -> None:
    """HTTP/1.1 carries one exchange at a time."""

    async def main() -> None:
        pool = pool_with()
        async with answering(ok(), pause_seconds=0.01) as server:
            answers = await asyncio.gather(*(pool.fetch(at(server.port), GET) for _ in range(20)))
            assert {answer.body for answer in answers} == {PAGE}
            assert (server.connections, len(pool._idle)) == (20, 1)
        pool.close()

    run(main())
