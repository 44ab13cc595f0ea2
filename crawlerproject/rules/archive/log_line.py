"""One line of the request log: what an attempt was and how it ended, in the order that readers know."""

from __future__ import annotations

from typing import NamedTuple

from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.warc_records import warc_date


class Attempt(NamedTuple):
    """One attempt to fetch an address, robots.txt and browser sub-requests included; times in epoch seconds."""

    started_at: float
    ended_at: float
    url: str
    reason: Reason | str
    method: str = "GET"
    status: int | None = None  # None when no server answered
    host: str = ""  # host key
    ip: str = ""
    via: str = ""
    depth: int = 0
    hop: str = ""  # Heritrix letter: L R P E I M S
    mime: str = ""
    received_bytes: int = 0  # on the wire
    location: str = ""
    ttfb_seconds: float | None = None
    seconds: float | None = None  # None: end minus start
    delay_seconds: float | None = None  # the pace promised before this request
    digest: str = ""  # sha1 base32 of the payload
    warc: str = ""
    offset: int | None = None
    length: int | None = None
    error: str = ""
    tries: int = 0
    truncated: str | None = None
    rendered: bool = False
    duplicate: str = ""  # exact, canonical or near
    duplicate_of: str = ""  # the URL that it repeats


def line(attempt: Attempt) -> dict[str, object]:
    """The fields of the log line, in their fixed order; what is unknown is null."""
    seconds = attempt.ended_at - attempt.started_at if attempt.seconds is None else attempt.seconds
    return {
        "time": warc_date(attempt.started_at),
        "end": warc_date(attempt.ended_at),
        "url": attempt.url,
        "method": attempt.method,
        "status": attempt.status or None,
        "reason": str(attempt.reason),
        "host": attempt.host,
        "ip": attempt.ip or None,
        "via": attempt.via or None,
        "depth": attempt.depth,
        "hop": attempt.hop,
        "mime": attempt.mime or None,
        "bytes": attempt.received_bytes,
        "location": attempt.location or None,
        "ttfb_seconds": _micro(attempt.ttfb_seconds),
        "seconds": _micro(seconds),
        "delay_seconds": _micro(attempt.delay_seconds),
        "digest": attempt.digest or None,
        "warc": attempt.warc or None,
        "offset": attempt.offset,
        "length": attempt.length,
        "error": attempt.error or None,
        "tries": attempt.tries,
        "truncated": attempt.truncated,
        "rendered": attempt.rendered,
        "duplicate": attempt.duplicate or None,
        "duplicate_of": attempt.duplicate_of or None,
    }


def _micro(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)
