"""Opens connections: TCP, a proxy's tunnel, TLS; and says in one word what went wrong."""

from __future__ import annotations

import asyncio
import ssl
from time import monotonic

from crawlerproject.errors import OUR_LIMITS, FetchError
from crawlerproject.fetch.connection import Connection, Endpoint
from crawlerproject.fetch.http1 import ResponseReader
from crawlerproject.fetch.limits import Limits
from crawlerproject.fetch.tls import tls_error, tls_facts
from crawlerproject.reasons import Reason


async def connect(
    endpoint: Endpoint, deadline: float, limits: Limits, tls_context: ssl.SSLContext | None
) -> Connection:
    """A connection ready for a request, before ``deadline`` (monotonic); raises FetchError only."""
    loop = asyncio.get_running_loop()
    connection = Connection(loop, endpoint, limits)
    end = min(monotonic() + limits.connect_timeout_seconds, deadline)
    try:
        async with asyncio.timeout(end - monotonic()):
            await _open(loop, connection, end, tls_context)
    except (OSError, ValueError) as error:
        connection.close()
        raise _connect_error(error, endpoint, connected=connection.transport is not None) from error
    except BaseException:
        connection.close()
        raise
    connection.protocols, connection.cipher = tls_facts(connection.transport)
    return connection


async def _open(
    loop: asyncio.AbstractEventLoop, connection: Connection, end: float, tls_context: ssl.SSLContext | None
) -> None:
    endpoint = connection.endpoint
    name = endpoint.host.rstrip(".")
    handshake_seconds = max(end - monotonic(), 0.0) + 5.0  # connect's own timeout rings first
    if not endpoint.tls:
        await loop.create_connection(lambda: connection, endpoint.ip, endpoint.port)
    elif not endpoint.tunnel:
        await loop.create_connection(
            lambda: connection, endpoint.ip, endpoint.port,
            ssl=tls_context, server_hostname=name, ssl_handshake_timeout=handshake_seconds,
        )  # fmt: skip
    else:
        await loop.create_connection(lambda: connection, endpoint.ip, endpoint.port)
        await _open_tunnel(connection, end)
        assert connection.transport is not None
        assert tls_context is not None
        connection.transport = await loop.start_tls(
            connection.transport, connection, tls_context,
            server_hostname=name, ssl_handshake_timeout=handshake_seconds,
        )  # fmt: skip


async def _open_tunnel(connection: Connection, end: float) -> None:
    reader = ResponseReader("CONNECT")
    try:
        await connection.exchange(connection.endpoint.tunnel, reader, end)
    except FetchError as error:
        raise FetchError(Reason.PROXY_FAILED, f"CONNECT: {error}") from error
    if not 200 <= reader.status < 300:
        raise FetchError(Reason.PROXY_FAILED, f"CONNECT was answered with {reader.status}")


def _connect_error(error: OSError | ValueError, endpoint: Endpoint, connected: bool) -> FetchError:
    """``connected``: TCP (and the proxy) did their part, so that only TLS is left to blame."""
    detail = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.errno in OUR_LIMITS:
        return FetchError(Reason.OUR_LIMIT, detail)
    if isinstance(error, ssl.SSLError):
        return tls_error(error)
    if endpoint.proxied and not (endpoint.tunnel and connected):
        return FetchError(Reason.PROXY_FAILED, detail)
    if isinstance(error, TimeoutError):
        return FetchError(Reason.CONNECT_TIMEOUT, detail)
    if isinstance(error, ConnectionRefusedError):
        return FetchError(Reason.CONNECT_REFUSED, detail)
    if endpoint.tls and isinstance(error, (ConnectionError, ValueError)):  # ValueError: a name TLS cannot carry
        return FetchError(Reason.TLS_FAILED, detail)
    return FetchError(Reason.CONNECT_FAILED, detail)
