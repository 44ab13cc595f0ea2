"""What crossed the wire in one exchange, byte for byte, with its times and addresses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Wire:
    """One HTTP exchange as it happened.

    ``started_at``/``ended_at`` are epoch seconds: the request's first byte sent (connecting included)
    and the answer's last byte received. ``body`` is without transfer coding, its Content-Encoding kept.
    """

    request_bytes: bytes = b""
    head_bytes: bytes = b""  # status line to blank line, as received; 1xx answers dropped
    body: bytes = b""
    status: int = 0
    chunked: bool = False  # a chunked transfer coding was taken off
    ip: str = ""  # the address really connected to (the proxy's when there is one)
    port: int = 0
    protocols: tuple[str, ...] = ("http/1.1",)  # WARC-Protocol: ("http/1.1", "tls/1.3")
    cipher: str | None = None  # IANA name, WARC-Cipher-Suite
    started_at: float = 0.0
    ended_at: float = 0.0
    connect_seconds: float = 0.0  # TCP and TLS; 0 on a kept-alive connection
    ttfb_seconds: float | None = None  # request sent to first byte of the answer
    received_bytes: int = 0  # as counted on the wire, heads and framing included
    truncated: str | None = None  # WARC-Truncated: "length" | "time" | "disconnect"
    flaw: str = ""  # why it was cut, where ``truncated`` does not say it: one line for people
    reused: bool = False
    signature_asked: bool = False  # refused for want of another signature, which the next request to its host has
    unverified: bool = False  # any certificate was taken: a test server of TLS_ALLOW_HOSTS
