"""Keeps connections alive between requests, and sends each request exactly once.

When a kept connection turns out to be dead, the fetch fails as DISCONNECTED and the frontier tries again in its
own time: a silent second try would break the pace. It is rare, since we hang up before the server does.
"""

from __future__ import annotations

import asyncio
import ssl
from time import monotonic
from typing import NamedTuple

from crawlerproject.errors import FetchError
from crawlerproject.fetch.connection import STOOD_STILL_SECONDS, Connection, Endpoint, Limits, connect
from crawlerproject.fetch.http1 import ResponseReader
from crawlerproject.fetch.tls import Certificates
from crawlerproject.runtime.clock import stamp
from crawlerproject.wire import Wire

_SWEEP_SECONDS = 1.0  # how exactly idle connections expire
_KEEPALIVE_MARGIN_SECONDS = 1.0  # hang up before the server does: a request sent into its closing is lost


class Exchanged(NamedTuple):
    """One exchange that got an answer."""

    wire: Wire
    headers: list[tuple[bytes, bytes]]  # lower-case names, in order


class Pool:
    """Opens connections and keeps idle ones, at most one for an endpoint, for their next request."""

    def __init__(self, limits: Limits, certificates: Certificates) -> None:
        self._limits = limits
        self._certificates = certificates
        self._idle: dict[Endpoint, Connection] = {}  # the longest idle first
        self._busy: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    async def fetch(
        self,
        endpoint: Endpoint,
        request_bytes: bytes,
        method: str = "GET",
        timeout_seconds: float | None = None,
        pause_seconds: float = 0.0,
    ) -> Exchanged:
        """Send one request once and read its answer; raises FetchError only (``wire`` set once connected).

        ``pause_seconds`` go by before the next one: with a pause longer than connections are kept, none is kept.
        """
        started = monotonic()
        deadline = started + (timeout_seconds or self._limits.timeout_seconds)
        wire = Wire(request_bytes, ip=endpoint.ip, port=endpoint.port, started_at=stamp())
        connection = self._take(endpoint, started)
        wire.reused = connection is not None
        if connection is None:
            connection = await connect(endpoint, deadline, self._limits, self._context(endpoint))
            wire.connect_seconds = monotonic() - started
        wire.unverified = endpoint.tls and self._certificates.allows(endpoint.host, endpoint.port)
        reader = ResponseReader(method, self._limits.max_bytes)
        self._busy.add(connection)
        reusable = False
        try:
            await connection.exchange(request_bytes, reader, deadline)
            reusable = reader.reusable
        except FetchError as error:
            error.wire = wire
            raise
        finally:
            self._busy.discard(connection)
            now = _stamp_end(wire, started, deadline)
            _fill(wire, reader, connection)
            if reusable:
                self._keep(connection, reader.keepalive_seconds, now, pause_seconds)
            else:
                connection.close()
        return Exchanged(wire, reader.headers)

    async def reaches(self, endpoint: Endpoint) -> bool:
        """Whether a connection can be made; nothing is sent on it but the handshake of TLS."""
        deadline = monotonic() + self._limits.connect_timeout_seconds
        try:
            connection = await connect(endpoint, deadline, self._limits, self._context(endpoint))
        except FetchError:
            return False
        connection.close()
        return True

    def close(self) -> None:
        """Close all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in (*self._idle.values(), *self._busy):
            connection.close()
        self._idle.clear()

    @property
    def idle_connections(self) -> int:
        """How many connections wait for a next request."""
        return len(self._idle)

    def _context(self, endpoint: Endpoint) -> ssl.SSLContext | None:
        return self._certificates.context(endpoint.host, endpoint.port) if endpoint.tls else None

    def _take(self, endpoint: Endpoint, now: float) -> Connection | None:
        connection = self._idle.pop(endpoint, None)
        if connection is None:
            return None
        if now < connection.expires_at and connection.transport and not connection.transport.is_closing():
            return connection
        connection.close()
        return None

    def _keep(self, connection: Connection, promised_seconds: float | None, now: float, pause_seconds: float) -> None:
        seconds = self._limits.keepalive_seconds
        if promised_seconds is not None:
            seconds = min(seconds, promised_seconds - _KEEPALIVE_MARGIN_SECONDS)
        if seconds <= pause_seconds or connection.transport is None or connection.transport.is_closing():
            connection.close()
            return
        connection.expires_at = now + seconds
        if older := self._idle.pop(connection.endpoint, None):
            older.close()
        self._idle[connection.endpoint] = connection
        if len(self._idle) > self._limits.max_idle_connections:
            self._idle.pop(next(iter(self._idle))).close()
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = monotonic()
        for endpoint, connection in list(self._idle.items()):
            if now >= connection.expires_at or connection.transport is None or connection.transport.is_closing():
                del self._idle[endpoint]
                connection.close()
        self._sweeper = loop.call_later(_SWEEP_SECONDS, self._sweep) if self._idle else None


def _stamp_end(wire: Wire, started: float, deadline: float) -> float:
    """Set the end of an exchange that is over; this moment (``time.monotonic``)."""
    # One reading of one clock: a process that is held up between two would say that it ended later.
    wire.ended_at, now = stamp(), monotonic()
    if now >= deadline + STOOD_STILL_SECONDS:  # the deadline's timer rang late
        wire.ended_at = wire.started_at + deadline - started
    return now


def _fill(wire: Wire, reader: ResponseReader, connection: Connection) -> None:
    wire.protocols, wire.cipher = connection.protocols, connection.cipher
    if connection.first_byte_at:
        wire.ttfb_seconds = connection.first_byte_at - connection.sent_at
    wire.head_bytes = reader.head_bytes
    wire.status = reader.status
    wire.body = reader.body
    wire.chunked = reader.chunked
    wire.truncated, wire.flaw = reader.truncated, reader.flaw
    wire.received_bytes = reader.received_bytes
    if reader.head_bytes[:8].upper() == b"HTTP/1.0":
        wire.protocols = ("http/1.0", *wire.protocols[1:])
