"""One line of the request log: what an attempt was and how it ended, in the order that readers know."""

from __future__ import annotations

from typing import Any

from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.warc_records import warc_date

_UNKNOWN: dict[str, Any] = {
    "time": None,
    "end": None,
    "url": None,
    "method": "GET",
    "status": None,  # when no server answered
    "reason": None,
    "host": "",  # host key
    "ip": None,
    "via": None,
    "depth": 0,
    "hop": "",  # Heritrix letters: L R P E I M S
    "mime": None,
    "bytes": 0,  # on the wire
    "location": None,
    "ttfb_seconds": None,
    "seconds": None,
    "delay_seconds": None,  # the pace promised before this request
    "digest": None,  # SHA-1 of the payload, base32
    "warc": None,
    "offset": None,
    "length": None,
    "error": None,
    "tries": 0,
    "truncated": None,
    "rendered": False,
    "duplicate": None,  # exact, canonical or near
    "duplicate_of": None,  # the URL that it repeats
}
LOG_FIELDS = tuple(_UNKNOWN)


def line(started_at: float, ended_at: float, url: str, reason: Reason | str, **known: Any) -> dict[str, Any]:
    """One attempt to fetch an address, robots.txt and browser sub-requests included; times are epoch seconds.

    ``known``: more fields of the line, by their names. "" is unknown, as what is left out is; seconds are rounded.
    """
    found = {**_UNKNOWN, "time": warc_date(started_at), "end": warc_date(ended_at), "url": url, "reason": str(reason)}
    found["seconds"] = round(ended_at - started_at, 6)
    for name, value in known.items():
        found[name] = _UNKNOWN[name] if value == "" else round(value, 6) if type(value) is float else value
    return found
