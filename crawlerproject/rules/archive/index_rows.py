"""One capture as a row of Common Crawl's columnar index: the same columns, types, order and meaning.

Source: https://github.com/commoncrawl/cc-index-table, cc-index-schema-flat.json, HostName.java and WarcUri.java.

One line of a CDXJ index per capture, with the fields and the spelling of Common Crawl's, and the keys that sort it.

A key, ``com,example)/path``, is what the package ``surt`` makes of a URL. Nine of ten addresses have nothing in them
that its rules change but the case, the host's order, a trailing slash and the order of the query's pieces: theirs is
written here, in a fiftieth of the time.
"""

from __future__ import annotations

import binascii
import re
from base64 import b32decode
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import IPv4Address
from typing import NamedTuple
from urllib.parse import quote, unquote

import orjson

from crawlerproject import native
from crawlerproject.rules.archive.http_messages import digest_text, media_type, payload_digest, redirect_target
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.url.domains import domain_of

INDEXED = frozenset({"response", "revisit"})
"""WARC-Types that get a line."""
REVISIT_MIME = "warc/revisit"
NO_MIME = "unk"
"""Common Crawl's word for an answer without a Content-Type."""
EMPTY_DIGEST = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""sha1 of nothing: the payload of a 304."""

_NO_DIGIT = re.compile(r"\D")
_TIMESTAMP_DIGITS = 14  # YYYYmmddHHMMSS
_STATUS = re.compile(rb"\S+\s+(\d{3})")
_SHA1_BYTES = 20
# WARC 1.1 5.8: "sha1:"; RFC 3230 and some indexes spell it with a dash.
_SHA1_LABELS = frozenset({"sha1", "sha-1"})
_BASE32_LETTERS, _HEX_LETTERS = 32, 40  # of a sha1

# No "%", no blank, nothing that is escaped; a name that cannot be read as a number; no empty segment and none that
# begins with a dot. A port is written out where it is not the scheme's default, which ``parse`` has left out.
_PLAIN = re.compile(
    r"https?://(?:www[0-9]*\.)?((?:[a-z0-9_-]+\.)*[a-z_-][a-z0-9_-]*)(:[1-9][0-9]{2,3}|:[1-5][0-9]{4})?"
    r"((?:/(?=[^./]|$)[A-Za-z0-9!$&'()*+,;=:@_~.-]*)+)"
    r"(?:\?([A-Za-z0-9!$&'()*+,;=:@_~./?-]*))?",
    re.ASCII,
)
_DEFAULT_PORTS = frozenset({":443"})  # of either scheme, 80 has too few digits: the package looks which one it is
# The package takes sessions out of paths (ASP.NET's) and queries (jsessionid, phpsessid, sid, aspsessionid, cfid).
_SESSION_IN_PATH = ".aspx"
_SESSION_IN_QUERY = re.compile(r"sid|session|cfid")


class CdxjEntry(NamedTuple):
    """What the index says of one capture, and the span of the capture in its file."""

    start: int  # first byte of the capture (its request)
    end: int  # first byte after it
    url: str
    timestamp: str  # YYYYmmddHHMMSS
    mime: str
    identified: str
    status: int
    digest: str  # base32 without "sha1:"
    offset: int  # of the response's or revisit's gzip member
    length: int
    redirect: str
    truncated: str


def row_of_member(member: Member) -> CdxjEntry:
    """The row of a response or revisit record read from a file; its span is that of the one member."""
    reader = native.reader
    if reader is not None and (plain := reader.row(member.fields, member.block)) is not None:
        url, timestamp, mime, identified, status, digest, truncated = plain
        mime = REVISIT_MIME if member.kind == "revisit" else mime or NO_MIME
        offset, end, length = member.offset, member.end, member.length
        return CdxjEntry(
            offset, end, url, timestamp, mime, identified, status, digest, offset, length, "", truncated
        )  # fmt: skip
    head = member.head
    found = _STATUS.match(head)
    status = int(found[1]) if found else 0
    url = member.url
    revisit = member.kind == "revisit"
    return CdxjEntry(
        start=member.offset,
        end=member.end,
        url=url,
        timestamp=timestamp_of(member),
        mime=REVISIT_MIME if revisit else media_type(head) or NO_MIME,
        identified=member.field("warc-identified-payload-type"),
        status=status,
        digest=digest_of(member),
        offset=member.offset,
        length=member.length,
        redirect=redirect_target(head, status, url),
        truncated="" if revisit else member.field("warc-truncated"),
    )


def timestamp_of(member: Member) -> str:
    """Of a record's WARC-Date; shorter where others leave out what comes after the year."""
    return _NO_DIGIT.sub("", member.field("warc-date"))[:_TIMESTAMP_DIGITS]


def digest_of(member: Member) -> str:
    """The stated payload digest without "sha1:"; of a response that states none (others write such) its body's."""
    if stated := member.field("warc-payload-digest").removeprefix("sha1:"):
        return stated
    return digest_text(payload_digest(member.body)) if member.kind == "response" else EMPTY_DIGEST


def sha1_of(text: object) -> bytes:
    """The 20 bytes of ``sha1:3I42…``, ``3I42…`` or ``da39…``.

    b"" for every other digest (sha256, md5), for ``-``, nothing, and any other text: such a payload is not known.
    """
    if not isinstance(text, str):
        return b""
    label, colon, value = text.strip().rpartition(":")
    if colon and label.strip().lower() not in _SHA1_LABELS:
        return b""
    value = value.strip()
    try:
        if len(value) == _HEX_LETTERS:
            return bytes.fromhex(value)
        # A md5 in hex has 32 letters as well, but 0, 1, 8 and 9 are no base32 and one of them is nearly always in it.
        digest = b32decode(value.upper()) if len(value) == _BASE32_LETTERS else b""
    except (binascii.Error, ValueError):
        return b""
    return digest if len(digest) == _SHA1_BYTES else b""


def line(row: CdxjEntry, filename: str) -> bytes:
    """The index line ``SURT YYYYmmddHHMMSS {json}`` without a line end; numbers are strings, as there."""
    fields = {
        "url": row.url,
        "mime": row.mime,
        "mime-detected": row.identified,
        "status": str(row.status),
        "digest": row.digest,
        "length": str(row.length),
        "offset": str(row.offset),
        "filename": filename,
        "redirect": row.redirect,
        "truncated": row.truncated,
    }
    present = {name: value for name, value in fields.items() if value}
    return f"{surt_key(row.url)} {row.timestamp} ".encode() + orjson.dumps(present)


def parse(index_line: bytes) -> tuple[CdxjEntry, str] | None:
    """The row and the WARC's name of an index line, its span that of the record; None for a line that is not ours."""
    try:
        _, timestamp, text = index_line.split(b" ", 2)
        fields = orjson.loads(text)
        offset, length = int(fields["offset"]), int(fields["length"])
        row = CdxjEntry(
            start=offset,
            end=offset + length,
            url=fields["url"],
            timestamp=timestamp.decode("ascii"),
            mime=fields.get("mime", NO_MIME),
            identified=fields.get("mime-detected", ""),
            status=int(fields.get("status", 0)),
            digest=fields.get("digest", ""),
            offset=offset,
            length=length,
            redirect=fields.get("redirect", ""),
            truncated=fields.get("truncated", ""),
        )
        return row, fields["filename"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def pack(row: CdxjEntry) -> bytes:
    """The row as one line of the journal."""
    return orjson.dumps(row._asdict()) + b"\n"


def unpack(journal_line: bytes) -> CdxjEntry | None:
    """The row of a journal line; None for a torn or foreign one."""
    try:
        return CdxjEntry(**orjson.loads(journal_line))
    except (ValueError, TypeError):
        return None


@lru_cache(maxsize=32_768)  # of a capture for its line, and again for its columns
def surt_key(url: str) -> str:
    """The key of a URL; the URL itself where the package gives up. Without blanks and line breaks."""
    key = _plain_key(url)
    return _library_key(url) if key is None else key


def _plain_key(url: str) -> str | None:
    """The key of a URL that needs no more than lower case and another order; None for all others."""
    found = _PLAIN.fullmatch(url)
    if found is None:
        return None
    host, port, path, query = found.groups("")
    path = path.lower()
    if port in _DEFAULT_PORTS or _SESSION_IN_PATH in path:
        return None
    if path.endswith("/") and len(path) > 1:
        path = path[:-1]
    name = ",".join(host.split(".")[::-1])
    if not query:
        return f"{name}{port}){path}"
    query = query.lower()
    if _SESSION_IN_QUERY.search(query):
        return None
    if "&" in query and len(query) > 1:
        query = "&".join(["=".join(piece) for piece in sorted([piece.split("=", 1) for piece in query.split("&")])])
    return f"{name}{port}){path}?{query}"


def _library_key(url: str) -> str:
    from surt import surt  # and with it requests: not before an odd URL is written to an index or looked for

    try:
        key: str = surt(url)
    except Exception:  # the library raises many things on odd hosts; a line is still due
        key = url
    return key.replace(" ", "%20").replace("\n", "%0A")


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

_ROBOTS = "/robots.txt"
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
    if _ROBOTS in row.url and _parts(row.url).path == _ROBOTS:
        return "robotstxt"
    return "warc" if row.status == 200 and row.mime != REVISIT_MIME else "crawldiagnostics"


def crawl_of(warcinfo: Member | None, otherwise: str) -> str:
    """The crawl that a file belongs to, by its warcinfo's isPartOf; safe as the name of a folder."""
    found = _PART_OF.search(warcinfo.block) if warcinfo is not None else None
    return quote((found[1].strip(b" \t").decode("utf-8", "replace") if found else "") or otherwise or "crawl", safe="")


def columns(row: CdxjEntry, filename: str, key: str, time: datetime) -> tuple[object, ...]:
    """The values of COLUMNS for one capture, of whose URL ``key`` is the ``surt_key``."""
    url = _parts(row.url)
    return (
        key,
        row.url,
        *_host_columns(url.host),
        url.protocol,
        url.port,
        url.path,
        url.query,
        time,
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
        _segment(filename),
    )


@lru_cache(maxsize=16)
def _segment(filename: str) -> str:
    found = _SEGMENT.search(filename)
    return found[1] if found else ""


def fetch_time(row: CdxjEntry) -> datetime:
    """When a capture was fetched, in whole seconds, as Common Crawl has it."""
    return _time(row.timestamp)


@lru_cache(maxsize=1024)  # hundreds are fetched within one second
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
