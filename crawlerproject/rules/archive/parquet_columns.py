"""One capture as a row of Common Crawl's columnar index: the same columns, types, order and meaning.

Source: https://github.com/commoncrawl/cc-index-table, cc-index-schema-flat.json, HostName.java and WarcUri.java.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import IPv4Address
from typing import NamedTuple
from urllib.parse import quote, unquote

from crawlerproject.rules.archive.cdxj import NO_MIME, REVISIT_MIME, CdxjEntry, surt_key
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.url.domains import domain_of

COLUMNS = (
    ("url_surtkey", "string", False),
    ("url", "string", False),
    ("url_host_name", "string", False),
    ("url_host_tld", "string", True),
    ("url_host_2nd_last_part", "string", True),
    ("url_host_3rd_last_part", "string", True),
    ("url_host_4th_last_part", "string", True),
    ("url_host_5th_last_part", "string", True),
    ("url_host_registry_suffix", "string", True),
    ("url_host_registered_domain", "string", True),
    ("url_host_private_suffix", "string", True),
    ("url_host_private_domain", "string", True),
    ("url_host_name_reversed", "string", True),
    ("url_protocol", "string", False),
    ("url_port", "int32", True),
    ("url_path", "string", False),
    ("url_query", "string", True),
    ("fetch_time", "timestamp", False),
    ("fetch_status", "int16", False),
    ("fetch_redirect", "string", True),
    ("content_digest", "string", True),
    ("content_mime_type", "string", True),
    ("content_mime_detected", "string", True),
    ("content_charset", "string", True),  # detected by Common Crawl; always null here
    ("content_languages", "string", True),  # likewise
    ("content_truncated", "string", True),
    ("warc_filename", "string", False),
    ("warc_record_offset", "int32", False),
    ("warc_record_length", "int32", False),
    ("warc_segment", "string", False),
)
"""Name, type, and whether it may be null; ``crawl`` and ``subset`` are folders above the files."""

MAX_OFFSET = 2**31 - 1
"""The greatest offset that the columns hold."""

_URL = re.compile(
    r"(?s)([a-z][a-z0-9+.-]*)://(?:[^/?#@]*@)?(\[[^]/?#]*\]|[^/?#:]*)(?::(\d{0,5}))?([^?#]*)(?:\?([^#]*))?"
)
_SEGMENT = re.compile(r"-\d{17}-(\d{5,})-")
_PART_OF = re.compile(rb"(?im)^isPartOf:([^\r\n]*+)")

_TIME_DIGITS = 14

_Parts = tuple[str | None, ...]


class Url(NamedTuple):
    """The parts of a URL as the columns want them."""

    protocol: str
    host: str
    port: int | None
    path: str
    query: str | None


def subset_of(row: CdxjEntry) -> str:
    """Which of Common Crawl's subsets a capture belongs to: ``warc`` has bodies of pages, and nothing else."""
    if _parts(row.url).path == "/robots.txt":
        return "robotstxt"
    return "warc" if row.status == 200 and row.mime != REVISIT_MIME else "crawldiagnostics"


def crawl_of(warcinfo: Member | None, otherwise: str) -> str:
    """The crawl that a file belongs to, by its warcinfo's isPartOf; safe as the name of a folder."""
    found = _PART_OF.search(warcinfo.block) if warcinfo is not None else None
    return quote((found[1].strip(b" \t").decode("utf-8", "replace") if found else "") or otherwise or "crawl", safe="")


def columns(row: CdxjEntry, filename: str) -> tuple[object, ...]:
    """The values of COLUMNS for one capture; ``fetch_time`` has whole seconds, as Common Crawl's has."""
    url = _parts(row.url)
    segment = _SEGMENT.search(filename)
    return (
        surt_key(row.url),
        row.url,
        *_host_columns(url.host),
        url.protocol,
        url.port,
        url.path,
        url.query,
        _time(row.timestamp),
        row.status,
        row.redirect or None,
        row.digest or None,
        None if row.mime == NO_MIME else row.mime,
        row.identified or None,
        None,
        None,
        row.truncated or None,
        filename,
        row.offset,
        row.length,
        segment[1] if segment else "",
    )


def _time(timestamp: str) -> datetime:
    """The time of an index line; WARC 1.1 lets others leave out what comes after the year."""
    whole = timestamp + "00000101000000"[len(timestamp) :]
    try:
        if whole.isdecimal() and whole.isascii() and len(whole) == _TIME_DIGITS:  # as strptime, in a tenth of its time
            date, time = (int(whole[:4]), int(whole[4:6]), int(whole[6:8])), whole[8:]
            return datetime(*date, int(time[:2]), int(time[2:4]), int(time[4:]), tzinfo=UTC)
        return datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:  # of someone else's file; the column cannot be null
        return datetime.fromtimestamp(0, UTC)


def _parts(url: str) -> Url:
    found = _URL.match(url)
    if found is None:
        return Url(url.partition(":")[0], "", None, "", None)
    protocol, host, port, path, query = found.groups()
    return Url(protocol, host.lower(), int(port) if port else None, path, query)


@lru_cache(maxsize=65536)
def _host_columns(name: str) -> _Parts:
    """Host name, its last five parts, registry suffix and domain, private suffix and domain, the name reversed."""
    with suppress(ValueError):
        if "[" in name or IPv4Address(name):
            return (name, *[None] * 10)
    name = unquote(name).removesuffix(".")
    reverse = name.split(".")[::-1]
    last_five = (*reverse, None, None, None, None, None)[:5]
    registry, private = domain_of(name, private=False), domain_of(name, private=True)
    return (
        name,
        *(part or None for part in last_five),
        registry.suffix or None,
        registry.registered or None,
        private.suffix or None,
        private.registered or None,
        ".".join(reverse),
    )
