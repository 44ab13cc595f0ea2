"""One connection to a web server: an asyncio.Protocol around a ``ResponseReader``, bounded in time.

Moments are ``time.monotonic`` seconds: uvloop's own clock stands still within a turn and knows only milliseconds.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import NamedTuple, cast

from crawlerproject.errors import FetchError
from crawlerproject.fetch.http1 import MAX_HEAD_BYTES, ResponseReader
from crawlerproject.fetch.limits import Limits
from crawlerproject.fetch.tls import said_goodbye, tcp_bytes_received
from crawlerproject.reasons import Reason

# A timer that rings so late was held up by a stopped process or machine, not by a busy loop (ours).
STOOD_STILL_SECONDS = 1.0
_SPEED_CHECK_SECONDS = 1.0  # how often a slow answer is looked at after the grace
_TIMER_SLACK_SECONDS = 0.005  # loops round timers to milliseconds and may ring early
# How often what TLS took is compared with what it gave. A read takes up to 256 KiB, that is 11,000 records of one byte
# and 25 ms; a page of 100 KB in ordinary segments is looked at four times, at two microseconds each.
_READS_PER_LOOK = 16


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
