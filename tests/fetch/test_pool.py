"""Connections on real sockets: reuse, time limits, TLS, and each way to fail."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.errors import FetchError, OperatorError
from crawlerproject.fetch.connection import Endpoint
from crawlerproject.fetch.limits import Limits
from crawlerproject.fetch.pool import Answer, Pool
from crawlerproject.fetch.tls import Certificates, allowed_hosts, iana_cipher, make_context
from crawlerproject.reasons import Reason
from tests.fetch.servers import PAGE, answering, make_ca, ok, run, server_tls, serving
from tests.web.waiting import eventually

GET = b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n"


def pool_with(ca_file: str = "", **limits: Any) -> Pool:
    """A pool with some limits of its own."""
    return Pool(Limits(**limits), Certificates(ca_file))


def at(port: int, host: str = "site.test", tls: bool = False) -> Endpoint:
    """An endpoint on loopback."""
    return Endpoint("127.0.0.1", port, host, tls)


async def failing(pool: Pool, endpoint: Endpoint) -> FetchError:
    """The error a fetch ends with."""
    with pytest.raises(FetchError) as failed:
        await pool.fetch(endpoint, GET)
    pool.close()
    return failed.value


def test_wire_holds_what_crossed_it() -> None:
    """Request, head, body, address, times and counts of one exchange."""

    async def main() -> None:
        pool = pool_with()
        before = time.time()
        async with answering(ok()) as server:
            wire, headers = await pool.fetch(at(server.port), GET)
            assert server.requests == [GET]
            port = server.port
        pool.close()
        assert (wire.request_bytes, wire.body, wire.status) == (GET, PAGE, 200)
        assert wire.head_bytes + wire.body == ok()
        assert (wire.ip, wire.port, wire.protocols, wire.cipher) == ("127.0.0.1", port, ("http/1.1",), None)
        assert (wire.received_bytes, wire.truncated, wire.reused) == (len(ok()), None, False)
        assert before <= wire.started_at <= wire.ended_at <= time.time() + 0.05
        assert wire.ttfb_seconds is not None
        assert 0 <= wire.ttfb_seconds <= wire.ended_at - wire.started_at
        assert headers[0] == (b"content-type", b"text/html")

    run(main())


def test_connection_is_reused_for_the_same_endpoint_only() -> None:
    """Two requests to one endpoint share a connection; another host name on the same address does not."""

    async def main() -> None:
        pool = pool_with()
        async with answering(ok()) as server:
            first = await pool.fetch(at(server.port), GET)
            second = await pool.fetch(at(server.port), GET)
            await pool.fetch(at(server.port, "other.test"), GET)
            assert (first.wire.reused, second.wire.reused) == (False, True)
            assert second.wire.connect_seconds == 0
            assert (server.connections, pool.idle_connections) == (2, 2)
        pool.close()
        assert pool.idle_connections == 0

    run(main())


@pytest.mark.parametrize("header", [b"Connection: close", b"Keep-Alive: timeout=1"])
def test_connection_is_not_kept_against_the_servers_word(header: bytes) -> None:
    """Neither past "close" nor into the second in which the server hangs up."""

    async def main() -> None:
        pool = pool_with()
        async with answering(ok(PAGE, header)) as server:
            await pool.fetch(at(server.port), GET)
            assert pool.idle_connections == 0
            assert not (await pool.fetch(at(server.port), GET)).wire.reused
        pool.close()

    run(main())


def test_idle_connections_expire_and_are_capped() -> None:
    """The pool holds no more than it may, and none longer than it may."""

    async def main() -> None:
        pool = pool_with(max_idle_connections=3, keepalive_seconds=0.3)
        async with answering(ok()) as server:
            for number in range(6):
                await pool.fetch(at(server.port, f"h{number}.test"), GET)
            assert pool.idle_connections == 3
            await eventually(lambda: not pool.idle_connections)
        pool.close()

    run(main())


def test_idle_connection_the_server_closed_is_not_used() -> None:
    """A closed connection is noticed before it is used, and a new one made: one request, sent once."""

    async def main() -> None:
        pool = pool_with()
        async with answering(ok(), close=True) as server:
            await pool.fetch(at(server.port), GET)
            await eventually(lambda: not pool.idle_connections)  # the server's end has arrived
            assert not (await pool.fetch(at(server.port), GET)).wire.reused
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
            await eventually(lambda: not pool.idle_connections)  # what nobody asked for has arrived
            answer = await pool.fetch(at(server.port), GET)
            assert (answer.wire.body, answer.wire.reused) == (PAGE, False)
        pool.close()

    run(main())


def test_concurrent_fetches_do_not_share_a_connection() -> None:
    """HTTP/1.1 carries one exchange at a time."""

    async def main() -> None:
        pool = pool_with()
        async with answering(ok(), pause_seconds=0.01) as server:
            answers = await asyncio.gather(*(pool.fetch(at(server.port), GET) for _ in range(20)))
            assert {answer.wire.body for answer in answers} == {PAGE}
            assert (server.connections, pool.idle_connections) == (20, 1)
        pool.close()

    run(main())


# Time

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
    limits: dict[str, float], pieces: list[bytes], reason: Reason | None, truncated: str | None
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
                assert answer.wire.truncated == truncated
                assert answer.wire.body
                assert pool.idle_connections == 0
            else:
                error = await failing(pool, at(server.port))
                assert error.reason == reason
                assert error.wire is not None
                assert error.wire.request_bytes == GET
            assert time.monotonic() - began < 3
        pool.close()

    run(main())


def test_steady_answer_is_not_too_slow() -> None:
    """A slow but steady server above the least speed is read to its end."""

    async def main() -> None:
        pool = pool_with(slow_grace_seconds=0.05, min_bytes_per_second=20)
        pieces = [ok(b"x" * 100)[:-100], *[b"x" * 10] * 10]
        async with answering(*pieces, pause_seconds=0.03) as server:
            answer = await pool.fetch(at(server.port), GET)
            assert (answer.wire.body, answer.wire.truncated) == (b"x" * 100, None)
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
            assert pool.idle_connections == 0
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


# Ways to fail


def test_refused() -> None:
    """Nobody listens."""

    async def main() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            error = await failing(pool_with(), at(free.getsockname()[1]))
            assert (error.reason, error.wire) == (Reason.CONNECT_REFUSED, None)

    run(main())


def test_connect_timeout() -> None:
    """A handshake that never comes counts as connecting."""

    async def main() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with serving(talk) as server:
            error = await failing(pool_with(connect_timeout_seconds=0.2), at(server.port, tls=True))
            assert error.reason == Reason.CONNECT_TIMEOUT

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
            await asyncio.sleep(0.1)  # a reset may overtake what was sent, and nothing here sees it read
            linger = b"\1\0\0\0\0\0\0\0"  # on, for 0 s: close() sends RST
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

        pool = pool_with()
        async with serving(talk) as server:
            answer = await pool.fetch(at(server.port), GET)
            assert (answer.wire.body, answer.wire.truncated) == (b"part", "disconnect")
        pool.close()

    run(main())


# TLS


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, str]:
    """A certificate authority of our own."""
    return make_ca(tmp_path_factory.mktemp("ca"))


async def fetch_tls(tls: ssl.SSLContext, ca_file: str, host: str = "site.test") -> Answer:
    """One page over TLS, fetched twice; the second answer."""
    pool = pool_with(ca_file)
    try:
        async with answering(ok(), tls=tls) as server:
            await pool.fetch(at(server.port, host, tls=True), GET)
            return await pool.fetch(at(server.port, host, tls=True), GET)
    finally:
        pool.close()


@pytest.mark.parametrize(
    ("version", "protocol"), [(ssl.TLSVersion.TLSv1_3, "tls/1.3"), (ssl.TLSVersion.TLSv1_2, "tls/1.2")]
)
def test_tls_facts(tmp_path: Path, ca: tuple[Any, Any, str], version: ssl.TLSVersion, protocol: str) -> None:
    """Version and cipher have the names that WARC asks for, on a kept connection as well."""
    tls = server_tls(tmp_path, ca, "site.test")
    tls.minimum_version = tls.maximum_version = version
    wire = run(fetch_tls(tls, ca[2])).wire
    assert wire.reused
    assert wire.protocols == ("http/1.1", protocol)
    assert wire.cipher is not None
    assert wire.cipher.startswith("TLS_")
    assert ("_WITH_" in wire.cipher) == (protocol == "tls/1.2")


def test_address_as_name(tmp_path: Path, ca: tuple[Any, Any, str]) -> None:
    """https://127.0.0.1/ is verified by the certificate's IP address."""
    assert run(fetch_tls(server_tls(tmp_path, ca, "127.0.0.1"), ca[2], "127.0.0.1")).wire.status == 200


@pytest.mark.parametrize(
    ("name", "days", "trusted", "kind"),
    [
        ("site.test", -1, True, "expired"),
        ("other.test", 5, True, "wrong-name"),
        ("site.test", 5, False, "unknown-issuer"),
    ],
)
def test_bad_certificates_are_never_accepted(
    tmp_path: Path, ca: tuple[Any, Any, str], name: str, days: int, trusted: bool, kind: str
) -> None:
    """Each has its kind in the detail, and no request is sent."""

    async def main() -> None:
        async with answering(ok(), tls=server_tls(tmp_path, ca, name, days)) as server:
            error = await failing(pool_with(ca[2] if trusted else ""), at(server.port, tls=True))
            assert error.reason == Reason.TLS_CERTIFICATE
            assert error.detail.startswith((kind, "incomplete-chain" if not trusted else kind))
            assert server.requests == []

    run(main())


def test_plain_server_on_the_tls_port() -> None:
    """What is no TLS at all is TLS_FAILED."""

    async def main() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()

        async with serving(talk) as server:
            assert (await failing(pool_with(), at(server.port, tls=True))).reason == Reason.TLS_FAILED

    run(main())


@pytest.mark.parametrize("name", ["a" * 70 + ".test", ".test", "a..test"])
def test_names_tls_cannot_carry(name: str) -> None:
    """An impossible server name fails as TLS_FAILED, never as an error of ours."""

    async def main() -> None:
        async with answering() as server:
            assert (await failing(pool_with(), at(server.port, name, tls=True))).reason == Reason.TLS_FAILED

    run(main())


def test_an_allowed_host_is_taken_whatever_its_certificate(tmp_path: Path, ca: tuple[Any, Any, str]) -> None:
    """By name, or by name and port; no other host and no other port profits."""

    async def fetched(allowed: str) -> bool | str:
        async with answering(ok(), tls=server_tls(tmp_path, ca, "other.test", -1)) as server:
            hosts = allowed_hosts([allowed.format(port=server.port)])
            pool = Pool(Limits(), Certificates("", hosts))
            try:
                return (await pool.fetch(at(server.port, tls=True), GET)).wire.unverified
            except FetchError as error:
                return str(error.reason)
            finally:
                pool.close()

    assert run(fetched("Site.Test.")) is True
    assert run(fetched("site.test:{port}")) is True
    for other in ("site.test:1", "test", "www.site.test", "another.test"):
        assert run(fetched(other)) == "tls-certificate"


@pytest.mark.parametrize("entry", ["*", "*.test", "https://site.test", "site.test/x", "10.0.0.0/8"])
def test_patterns_are_no_single_hosts(entry: str) -> None:
    """The list cannot be used to switch verification off."""
    with pytest.raises(OperatorError, match="TLS_ALLOW_HOSTS"):
        allowed_hosts([entry])


def test_ca_file_must_be_readable(tmp_path: Path) -> None:
    """A wrong FETCH_CA_FILE is the operator's to mend."""
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    for path in (wrong, tmp_path / "missing.pem"):
        with pytest.raises(OperatorError, match="FETCH_CA_FILE"):
            make_context(str(path))


def test_every_cipher_we_offer_has_its_iana_name() -> None:
    """OpenSSL's names for TLS 1.2 never reach the archive."""
    for cipher in make_context().get_ciphers():
        assert iana_cipher(cipher["name"]).startswith("TLS_")
    assert iana_cipher("ECDHE-RSA-AES128-GCM-SHA256") == "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    assert iana_cipher("TLS_AES_128_GCM_SHA256") == "TLS_AES_128_GCM_SHA256"
    assert iana_cipher("GOST-X") == "GOST-X"
