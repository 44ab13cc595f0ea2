"""One connection to a web server: opened, used for one exchange at a time, and bounded in time.

``connect`` does TCP, a proxy's tunnel and TLS, and says in one word what went wrong. ``Connection`` is an
asyncio.Protocol around a ``ResponseReader``. Moments are ``time.monotonic`` seconds: uvloop's own clock stands still
within a turn and knows only milliseconds.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, cast

from crawlerproject.errors import OUR_LIMITS, FetchError
from crawlerproject.fetch.http1 import MAX_HEAD_BYTES, ResponseReader
from crawlerproject.fetch.tls import said_goodbye, tcp_bytes_received, tls_error, tls_facts
from crawlerproject.reasons import Reason

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

MAX_IDLE_CONNECTIONS = 2000
"""Twice the default of FRONTIER_MAX_IN_FLIGHT; some 20 KB each with TLS (ours)."""
# An answer that is slower than this, once it has lasted so long, is a tarpit's: it is cut (ours).
_MIN_BYTES_PER_SECOND = 100.0
_SLOW_GRACE_SECONDS = 10.0

# A timer that rings so late was held up by a stopped process or machine, not by a busy loop (ours).
STOOD_STILL_SECONDS = 1.0
_SPEED_CHECK_SECONDS = 1.0  # how often a slow answer is looked at after the grace
_TIMER_SLACK_SECONDS = 0.005  # loops round timers to milliseconds and may ring early
# How often what TLS took is compared with what it gave. A read takes up to 256 KiB, that is 11,000 records of one byte
# and 25 ms; a page of 100 KB in ordinary segments is looked at four times, at two microseconds each.
_READS_PER_LOOK = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """The FETCH_* settings of the same names, and what no setting changes."""

    max_bytes: int
    timeout_seconds: float  # connecting included
    connect_timeout_seconds: float  # TCP and TLS
    first_byte_timeout_seconds: float
    min_bytes_per_second: float
    slow_grace_seconds: float
    # Longer than most pauses of the quick presets; servers commonly close after 5 to 75 s themselves (ours).
    keepalive_seconds: float = 8.0
    max_idle_connections: int = MAX_IDLE_CONNECTIONS

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Limits:
        """Read the FETCH_* settings."""
        return cls(
            max_bytes=settings.getint("FETCH_MAX_BYTES"),
            timeout_seconds=settings.getfloat("FETCH_TIMEOUT_SECONDS"),
            connect_timeout_seconds=settings.getfloat("FETCH_CONNECT_TIMEOUT_SECONDS"),
            first_byte_timeout_seconds=settings.getfloat("FETCH_FIRST_BYTE_TIMEOUT_SECONDS"),
            min_bytes_per_second=settings.getfloat("FETCH_MIN_BYTES_PER_SECOND", _MIN_BYTES_PER_SECOND),
            slow_grace_seconds=settings.getfloat("FETCH_SLOW_GRACE_SECONDS", _SLOW_GRACE_SECONDS),
        )


class Endpoint(NamedTuple):
    """What a connection is made to, and the key under which it is kept."""

    ip: str  # the proxy's when there is one
    port: int
    host: str  # the site's name, for TLS; without brackets
    tls: bool
    proxied: bool = False
    tunnel: bytes = b""  # the CONNECT request that makes a proxy's connection the site's


class Connection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    __slots__ = (
        "_deadline", "_done", "_limits", "_loop", "_reader", "_reads", "_timer", "_tls_started_at", "cipher",
        "endpoint", "expires_at", "first_byte_at", "protocols", "sent_at", "transport",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, endpoint: Endpoint, limits: Limits) -> None:
        self._loop = loop
        self._limits = limits
        self._reader: ResponseReader | None = None
        self._done: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._reads = 0
        self._tls_started_at = 0  # bytes of the connection at the first look at this answer, less what it had then
        self.endpoint = endpoint
        self.transport: asyncio.Transport | None = None
        self.protocols: tuple[str, ...] = ("http/1.1",)
        self.cipher: str | None = None
        self.expires_at = 0.0  # while idle
        self.sent_at = 0.0
        self.first_byte_at = 0.0  # 0 before it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: connected (and the handshake done)."""
        self.transport = cast("asyncio.Transport", transport)

    def exchange(self, request_bytes: bytes, reader: ResponseReader, deadline: float) -> asyncio.Future[None]:
        """Send and read one answer into ``reader`` until ``deadline``; fails with FetchError only."""
        done: asyncio.Future[None] = self._loop.create_future()
        transport = self.transport
        if transport is None or transport.is_closing():
            done.set_exception(FetchError(Reason.DISCONNECTED, "the server had hung up"))
            return done
        self.sent_at = now = monotonic()
        if now >= deadline:
            # A connection is made within its own time, or fails: by a second more it was this process that stood still.
            ours = now >= deadline + STOOD_STILL_SECONDS
            reason = Reason.OUR_LIMIT if ours else Reason.FIRST_BYTE_TIMEOUT
            done.set_exception(FetchError(reason, "no time was left to ask"))
            return done
        self._done, self._reader, self._deadline, self.first_byte_at = done, reader, deadline, 0.0
        self._reads = 0
        limits = self._limits
        wait = min(limits.first_byte_timeout_seconds, limits.slow_grace_seconds, deadline - now)
        self._timer = self._loop.call_later(wait, self._ring)
        transport.write(request_bytes)
        return done

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes came."""
        reader = self._reader
        if reader is None:  # nothing was asked: whatever this is, the next answer must not start with it
            self.close()
            return
        if not self.first_byte_at:
            self.first_byte_at = monotonic()
        self._reads += 1
        try:
            if reader.feed(data):
                self._finish(None)
            elif self.endpoint.tls and self._reads % _READS_PER_LOOK == 0:
                self._look_at_records(reader)
        except FetchError as error:
            self._finish(error)

    def _look_at_records(self, reader: ResponseReader) -> None:
        """Records of a few bytes cost 23 bytes and a microsecond each, and the reader does not see them."""
        received = tcp_bytes_received(self.transport)
        if received is None or not reader.status:
            return
        if self._reads == _READS_PER_LOOK:  # before it were the handshake and earlier answers
            self._tls_started_at = received - reader.received_bytes
        elif received - self._tls_started_at > MAX_HEAD_BYTES + 2 * reader.received_bytes:
            reader.cut("length", "more bytes for its TLS records than for its content")
            self._finish(None)

    def eof_received(self) -> None:
        """asyncio: the server closed its side; ours follows."""
        if self._reader is not None:
            self._hung_up(None, whole=said_goodbye(self.transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: the connection is gone, ``exc`` says when it was reset.

        Over TLS an end that was not announced came without close_notify, from any host on the way: a body read until
        close cannot be known to be whole (RFC 9112 section 9.8).
        """
        self._hung_up(exc, whole=exc is None and not self.endpoint.tls)

    def _hung_up(self, exc: Exception | None, *, whole: bool) -> None:
        reader = self._reader
        if reader is None:
            return
        try:
            if reader.status and not whole:
                reader.cut("disconnect")  # no proper end, not even of a body read until close
            else:
                reader.eof()
        except FetchError as error:
            self._finish(error if exc is None else FetchError(error.reason, f"{error.detail} ({type(exc).__name__})"))
        else:
            self._finish(None)

    def _finish(self, error: FetchError | None) -> None:
        self._reader = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        done, self._done = self._done, None
        if done is None or done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def _ring(self) -> None:
        """The one timer of an exchange: gives up, or sets itself anew."""
        reader = self._reader
        if reader is None:
            return
        now = monotonic() + _TIMER_SLACK_SECONDS
        why = self._too_late(now, reader.received_bytes)
        if not why:
            self._timer = self._loop.call_later(min(self._next_look(now), self._deadline) - now, self._ring)
        elif reader.status:
            reader.cut("time")
            self._finish(None)
        else:
            self._finish(FetchError(Reason.FIRST_BYTE_TIMEOUT, why))

    def _next_look(self, now: float) -> float:
        if not self.first_byte_at:
            return self.sent_at + self._limits.first_byte_timeout_seconds
        return max(self.first_byte_at + self._limits.slow_grace_seconds, now + _SPEED_CHECK_SECONDS)

    def _too_late(self, now: float, received_bytes: int) -> str:
        if not self.first_byte_at:
            waited = now - self.sent_at
            late = waited >= self._limits.first_byte_timeout_seconds or now >= self._deadline
            return f"no answer in {waited:.1f} s" if late else ""
        if now >= self._deadline:
            return "the head was not complete in time"
        seconds = now - self.first_byte_at
        limits = self._limits
        if seconds >= limits.slow_grace_seconds and received_bytes < limits.min_bytes_per_second * seconds:
            return f"under {limits.min_bytes_per_second:g} bytes a second"
        return ""

    def close(self) -> None:
        """Hang up at once; with TLS without waiting for the other's good-bye, which could hold it for 30 s."""
        if self._done is not None:
            self._finish(FetchError(Reason.DISCONNECTED, "we hung up"))
        if self.transport is not None:
            if self.endpoint.tls:
                self.transport.abort()
            else:
                self.transport.close()


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
