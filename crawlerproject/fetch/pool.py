"""Connections to web servers: opened, used for one exchange at a time, bounded in time, kept between requests.

``connect`` does TCP, a proxy's tunnel and TLS, and says in one word what went wrong. ``Connection`` is an
asyncio.Protocol around a ``ResponseReader``. Moments are ``time.monotonic`` seconds: uvloop's own clock stands still
within a turn and knows only milliseconds.

``Pool`` sends each request exactly once. When a kept connection turns out to be dead, the fetch fails as DISCONNECTED
and the frontier tries again in its own time: a silent second try would break the pace. It is rare, since we hang up
before the server does.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, cast

from crawlerproject.errors import OUR_LIMITS, FetchError
from crawlerproject.fetch.http1 import MAX_HEAD_BYTES, ResponseReader
from crawlerproject.fetch.tls import Certificates, said_goodbye, tcp_bytes_received, tls_error, tls_facts
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.runtime.clock import stamp

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

_SWEEP_SECONDS = 1.0  # how exactly idle connections expire
_KEEPALIVE_MARGIN_SECONDS = 1.0  # hang up before the server does: a request sent into its closing is lost


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
    local: tuple[str, int] | None = None  # our own address and port, 0 for any; None: the system chooses


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

    def is_closing(self) -> bool:
        """Whether no request can be sent on it."""
        return self.transport is None or self.transport.is_closing()

    def exchange(self, request_bytes: bytes, reader: ResponseReader, deadline: float) -> asyncio.Future[None]:
        """Send and read one answer into ``reader`` until ``deadline``; fails with FetchError only."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise FetchError(Reason.DISCONNECTED, "the server had hung up")
        self.sent_at = now = monotonic()
        if now >= deadline:
            # A connection is made within its own time, or fails: by a second more it was this process that stood still.
            ours = now >= deadline + STOOD_STILL_SECONDS
            reason = Reason.OUR_LIMIT if ours else Reason.FIRST_BYTE_TIMEOUT
            raise FetchError(reason, "no time was left to ask")
        done: asyncio.Future[None] = self._loop.create_future()
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
        """asyncio: the connection has ended; ``exc`` is there when it was reset.

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
        """The one timer of an exchange: gives up, or sets itself again."""
        reader, limits = self._reader, self._limits
        if reader is None:
            return
        now, why = monotonic() + _TIMER_SLACK_SECONDS, ""
        if not self.first_byte_at:
            look_at = self.sent_at + limits.first_byte_timeout_seconds
            if now >= min(look_at, self._deadline):
                why = f"no answer in {now - self.sent_at:.1f} s"
        else:
            look_at = max(self.first_byte_at + limits.slow_grace_seconds, now + _SPEED_CHECK_SECONDS)
            seconds = now - self.first_byte_at
            if now >= self._deadline:
                why = "the head was not complete in time"
            elif seconds >= limits.slow_grace_seconds and reader.received_bytes < limits.min_bytes_per_second * seconds:
                why = f"under {limits.min_bytes_per_second:g} bytes a second"
        if not why:
            self._timer = self._loop.call_later(min(look_at, self._deadline) - now, self._ring)
        elif reader.status:
            reader.cut("time")
            self._finish(None)
        else:
            self._finish(FetchError(Reason.FIRST_BYTE_TIMEOUT, why))

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
    task, late = asyncio.current_task(), False
    assert task is not None

    def give_up() -> None:
        nonlocal late
        late = task.cancel()

    timer = loop.call_later(end - monotonic(), give_up)  # ``asyncio.timeout`` takes four times the instructions
    try:
        if endpoint.tls:
            await _open_tls(loop, connection, end, tls_context)
        else:
            await loop.create_connection(lambda: connection, endpoint.ip, endpoint.port, local_addr=endpoint.local)
    except BaseException as error:
        connection.close()
        if late and not task.uncancel() and isinstance(error, asyncio.CancelledError):
            error = TimeoutError()
        if not isinstance(error, (OSError, ValueError)):
            raise
        raise _connect_error(error, endpoint, connected=connection.transport is not None) from error
    finally:
        timer.cancel()
    if endpoint.tls:
        connection.protocols, connection.cipher = tls_facts(connection.transport)
    return connection


async def _open_tls(
    loop: asyncio.AbstractEventLoop, connection: Connection, end: float, tls_context: ssl.SSLContext | None
) -> None:
    endpoint = connection.endpoint
    name, local = endpoint.host.rstrip("."), endpoint.local
    handshake_seconds = max(end - monotonic(), 0.0) + 5.0  # connect's own timeout rings first
    if not endpoint.tunnel:
        await loop.create_connection(
            lambda: connection, endpoint.ip, endpoint.port, local_addr=local,
            ssl=tls_context, server_hostname=name, ssl_handshake_timeout=handshake_seconds,
        )  # fmt: skip
    else:
        await loop.create_connection(lambda: connection, endpoint.ip, endpoint.port, local_addr=local)
        reader = ResponseReader("CONNECT")
        try:
            await connection.exchange(endpoint.tunnel, reader, end)
        except FetchError as error:
            raise FetchError(Reason.PROXY_FAILED, f"CONNECT: {error}") from error
        if not 200 <= reader.status < 300:
            raise FetchError(Reason.PROXY_FAILED, f"CONNECT was answered with {reader.status}")
        assert connection.transport is not None
        assert tls_context is not None
        connection.transport = await loop.start_tls(
            connection.transport, connection, tls_context,
            server_hostname=name, ssl_handshake_timeout=handshake_seconds,
        )  # fmt: skip


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
        max_bytes: int | None = None,
    ) -> Wire:
        """Send one request once and read its answer; raises FetchError only (``wire`` set once connected).

        ``pause_seconds`` go by before the next one: with a pause longer than connections are kept, none is kept.
        ``max_bytes`` of its body, instead of the pool's own limit.
        """
        started = monotonic()
        deadline = started + (timeout_seconds or self._limits.timeout_seconds)
        wire = Wire(request_bytes, ip=endpoint.ip, port=endpoint.port, started_at=stamp())
        connection = self._idle.pop(endpoint, None)
        if connection is not None and (started >= connection.expires_at or connection.is_closing()):
            connection.close()
            connection = None
        wire.reused = connection is not None
        if connection is None:
            connection = await connect(endpoint, deadline, self._limits, self._context(endpoint))
            wire.connect_seconds = monotonic() - started
        wire.unverified = endpoint.tls and self._certificates.allows(endpoint.host, endpoint.port)
        reader = ResponseReader(method, self._limits.max_bytes if max_bytes is None else max_bytes)
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
            # One reading of one clock: a process that is held up between two would say that it ended later.
            wire.ended_at, now = stamp(), monotonic()
            if now >= deadline + STOOD_STILL_SECONDS:  # the deadline's timer rang late
                wire.ended_at = wire.started_at + deadline - started
            wire.protocols, wire.cipher, head = connection.protocols, connection.cipher, reader.head_bytes
            if connection.first_byte_at:
                wire.ttfb_seconds = connection.first_byte_at - connection.sent_at
            wire.status, wire.headers = reader.status, reader.headers
            wire.body, wire.chunked = reader.body, reader.chunked
            wire.head_bytes, wire.received_bytes = head, reader.received_bytes
            wire.truncated, wire.flaw = reader.truncated, reader.flaw
            if head[:8].upper() == b"HTTP/1.0":
                wire.protocols = ("http/1.0", *wire.protocols[1:])
            seconds = self._limits.keepalive_seconds
            if reader.keepalive_seconds is not None:  # what the server has promised
                seconds = min(seconds, reader.keepalive_seconds - _KEEPALIVE_MARGIN_SECONDS)
            if not reusable or seconds <= pause_seconds or connection.is_closing():
                connection.close()
            else:
                self._keep(endpoint, connection, now + seconds)
        return wire

    def _keep(self, endpoint: Endpoint, connection: Connection, until: float) -> None:
        """For its next request, in the place of an older one; ``until`` in monotonic seconds."""
        connection.expires_at = until
        if older := self._idle.pop(endpoint, None):
            older.close()
        self._idle[endpoint] = connection
        if len(self._idle) > self._limits.max_idle_connections:
            self._idle.pop(next(iter(self._idle))).close()
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)

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

    def _context(self, endpoint: Endpoint) -> ssl.SSLContext | None:
        return self._certificates.context(endpoint.host, endpoint.port) if endpoint.tls else None

    def _sweep(self) -> None:
        now = monotonic()
        for endpoint, connection in list(self._idle.items()):
            if now >= connection.expires_at or connection.is_closing():
                del self._idle[endpoint]
                connection.close()
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(_SWEEP_SECONDS, self._sweep) if self._idle else None
