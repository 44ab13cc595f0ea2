"""The bytes of one capture: request, response (or revisit) and metadata as WARC 1.1 records, one gzip member each.

We build them ourselves because the usual writer re-serialises HTTP headers; here a head is stored as it was
received but for the few edits of ``stored_head``. Spec: https://iipc.github.io/warc-specifications/

And those of one render: the DOM as a conversion record, which refers to the record it was made from (WARC 1.1, 6.8),
perhaps a screenshot, and how they came to be. That metadata record comes last, so that a group of records that a crash
cut off is recognised as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha1
from ipaddress import ip_address
from math import modf
from typing import Any, NamedTuple

from isal import igzip_lib

from crawlerproject import native
from crawlerproject.rules.archive.http_messages import (
    Wire,
    content_encoded,
    digest_text,
    media_type,
    payload_type,
    redirect_target,
    stored_head,
)
from crawlerproject.rules.archive.index_rows import NO_MIME, REVISIT_MIME, CdxjEntry, pack
from crawlerproject.rules.archive.warc_members import Member

COMPRESSION_LEVEL = 2
"""isal level; measured: 0.051 ms and 34.5 % on 19 KB of HTML, level 3 takes 0.083 ms for 33.7 %, zlib 6 0.440 ms for
31.4 %. On pages of the web (136 KB) 0.23 ms for 23.7 %, where level 3 takes 0.47 ms for 22.9 %."""
ENCODED_COMPRESSION_LEVEL = 1
"""For bodies that are compressed already; level 0 would make them 18 % larger."""

IDENTICAL_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
"""WARC-Profile of a revisit whose payload equals an earlier one (WARC 1.1, 6.7.2)."""
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
"""WARC-Profile of a revisit that a 304 answer makes (WARC 1.1, 6.7.3)."""

FORMAT = "WARC File Format 1.1"
"""For the warcinfo's field format (ISO 28500:2017, 6.2)."""
CONFORMS_TO = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
"""For the warcinfo's field conformsTo."""

_BEGIN = "WARC/1.1\r\nWARC-Type: "
_MICROS = 1_000_000  # in a second


class Original(NamedTuple):
    """The earlier capture that a revisit stands for."""

    record_id: str  # "<urn:uuid:...>"
    url: str
    date: str  # its WARC-Date
    profile: str = IDENTICAL_PAYLOAD


class Context(NamedTuple):
    """What is known about a capture besides its bytes."""

    url: str  # the address really requested
    via: str = ""  # the page it was found on
    hops: str = ""  # Heritrix letters from the seed
    delay_seconds: float | None = None  # the pause that was promised before this request
    waited_seconds: float | None = None  # the pause that there was; None before a host's first request
    sample: bytes = b""  # beginning of the content-decoded body, SAMPLE_BYTES are enough
    extra: Sequence[tuple[str, str]] = ()  # more lines of the metadata record


class Render(NamedTuple):
    """What is archived of one render; times in epoch seconds."""

    url: str
    plain_id: str  # record id of the plain answer
    html: bytes  # the DOM, UTF-8
    started_at: float
    ended_at: float
    facts: Sequence[tuple[str, str]]  # lines of the metadata record
    screenshot: bytes = b""  # PNG


class RenderMembers(NamedTuple):
    """The gzip members of one render, to be written at once."""

    members: bytes
    record_id: str  # of the conversion, which comes first
    length: int  # of the conversion


class Capture(NamedTuple):
    """The gzip members of one capture, to be written at once, and what index, log and later revisits say of it."""

    members: bytes
    record_id: str  # of the response or revisit
    date: str  # WARC-Date, microseconds
    line: bytes  # its row, packed for the journal of the index
    offset: int  # of the response or revisit in the file
    length: int  # of the response or revisit


def capture(
    wire: Wire,
    context: Context,
    digest: bytes,
    original: Original | None = None,
    *,
    warcinfo_id: str,
    ids: Sequence[str],
    start: int = 0,
) -> Capture:
    """Build request, response (revisit when there is an ``original``) and metadata as one buffer.

    ``digest`` is the body's sha1. ``ids``: a fresh ``<urn:uuid:...>`` for each of the three; ``warcinfo_id``
    is that of the file written to, ``start`` where in it.
    """
    reader, body, received = native.reader, wire.body, wire.head_bytes
    kept = b"" if original else body  # a revisit has its head alone
    said = None if reader is None or wire.chunked else reader.head(received, len(body))
    if said is not None:
        head, (mime, encoded) = received, said
    else:
        head = stored_head(received, chunked=wire.chunked, body_bytes=len(body))
        mime, encoded = media_type(head), content_encoded(head)
    status, identified = wire.status, payload_type(context.sample) or "" if body else ""
    redirect = redirect_target(head, status, one_line(context.url)) if 300 <= status < 400 else ""
    level = ENCODED_COMPRESSION_LEVEL if kept and encoded else COMPRESSION_LEVEL
    if ":" in (ip := wire.ip):  # IPv6 as RFC 5952 writes it, without a zone
        ip = str(ip_address(ip.partition("%")[0]))
    found = (context, digest, original, warcinfo_id, tuple(ids), start, head, level, mime, ip, identified, redirect)
    made = None if reader is None else reader.capture(Capture, wire, *found)
    return capture_in_python(wire, *found) if made is None else made


def capture_in_python(
    wire: Wire,
    context: Context,
    digest: bytes,
    original: Original | None,
    warcinfo_id: str,
    ids: Sequence[str],
    start: int,
    *stored: Any,
) -> Capture:
    """The same; ``stored`` as there: the head, what it says, and what goes with it."""
    (head, level, mime, ip, identified, redirect), (request_id, response_id, metadata_id) = stored, ids
    kept = b"" if original else wire.body
    date, url = warc_date(wire.started_at), one_line(context.url)
    common = f"WARC-Date: {date}\r\nWARC-Target-URI: {url}\r\nWARC-Warcinfo-ID: {warcinfo_id}\r\n"
    with_response = f"WARC-Concurrent-To: {response_id}\r\nContent-Type: application/"
    peer = f"{common}WARC-IP-Address: {ip}\r\n" if ip else common
    payload = digest_text(digest)
    request = make_member(
        f"{_BEGIN}request\r\nWARC-Record-ID: {request_id}\r\n{peer}{with_response}http; msgtype=request\r\n",
        wire.request_bytes,
    )
    response = make_member(
        f"{_BEGIN}{'revisit' if original else 'response'}\r\nWARC-Record-ID: {response_id}\r\n{peer}"
        f"WARC-Concurrent-To: {request_id}\r\nWARC-Concurrent-To: {metadata_id}\r\n"
        f"{_response_fields(wire, payload, identified, original)}"
        "Content-Type: application/http; msgtype=response\r\n",
        head,
        kept,
        level,
    )
    metadata = make_member(
        f"{_BEGIN}metadata\r\nWARC-Record-ID: {metadata_id}\r\n{common}{with_response}warc-fields\r\n",
        _metadata_block(wire, context),
    )
    members = request + response + metadata
    row = CdxjEntry(
        start=start, end=start + len(members), url=url, digest=payload,
        timestamp=f"{date[:4]}{date[5:7]}{date[8:10]}{date[11:13]}{date[14:16]}{date[17:19]}",
        mime=REVISIT_MIME if original else mime or NO_MIME, identified=identified, status=wire.status,
        offset=start + len(request), length=len(response), redirect=redirect,
        truncated="" if original else wire.truncated or "",
    )  # fmt: skip
    return Capture(members, response_id, date, pack(row), row.offset, row.length)


def withheld(wire: Wire, context: Context, *, warcinfo_id: str, record_id: str) -> bytes:
    """The metadata record, as a gzip member, of an answer that its site reserves: when it came, and the words."""
    return make_member(
        f"{_BEGIN}metadata\r\nWARC-Record-ID: {record_id}\r\nWARC-Date: {warc_date(wire.started_at)}\r\n"
        f"WARC-Target-URI: {one_line(context.url)}\r\nWARC-Warcinfo-ID: {warcinfo_id}\r\n"
        "Content-Type: application/warc-fields\r\n",
        f"status: {wire.status}\r\n".encode() + _metadata_block(wire, context),
    )


def is_render(member: Member) -> bool:
    """Whether a record is a page as a browser left it: the one its ``WARC-Refers-To`` names, for every reader."""
    return member.kind == "conversion" and member.field("content-type").startswith("text/html")


def render_members(render: Render, *, warcinfo_id: str, new_id: Callable[[], str]) -> RenderMembers:
    """Build conversion, screenshot (a resource record) and metadata as one buffer."""
    conversion_id, screenshot_id = new_id(), new_id()
    url = one_line(render.url)
    common = f"WARC-Date: {warc_date(render.ended_at)}\r\nWARC-Target-URI: {url}\r\nWARC-Warcinfo-ID: {warcinfo_id}\r\n"
    conversion = make_member(
        f"{_BEGIN}conversion\r\nWARC-Record-ID: {conversion_id}\r\n{common}"
        f"WARC-Refers-To: {render.plain_id}\r\nContent-Type: text/html; charset=utf-8\r\n",
        render.html,
    )
    screenshot = b""
    if render.screenshot:
        screenshot = make_member(
            f"{_BEGIN}resource\r\nWARC-Record-ID: {screenshot_id}\r\n{common}"
            f"WARC-Concurrent-To: {conversion_id}\r\nContent-Type: image/png\r\n",
            render.screenshot,
        )
    lines = [
        f"renderTimeMs: {max(0, round((render.ended_at - render.started_at) * 1000))}",
        *(f"{name}: {one_line(value)}" for name, value in render.facts),
        "",
    ]
    metadata = make_member(
        f"{_BEGIN}metadata\r\nWARC-Record-ID: {new_id()}\r\n{common}"
        f"WARC-Refers-To: {conversion_id}\r\nContent-Type: application/warc-fields\r\n",
        "\r\n".join(lines).encode(),
    )
    return RenderMembers(conversion + screenshot + metadata, conversion_id, len(conversion))


def warcinfo(fields: Sequence[tuple[str, str]], *, filename: str, record_id: str, now: float) -> bytes:
    """The gzip member that begins every file; ``now`` in epoch seconds, ``fields`` its lines but those of its form."""
    lines = [*fields, ("format", FORMAT), ("conformsTo", CONFORMS_TO)]
    block = "".join([f"{name}: {one_line(value)}\r\n" for name, value in lines if value]).encode()
    return make_member(
        f"{_BEGIN}warcinfo\r\nWARC-Record-ID: {record_id}\r\nWARC-Date: {warc_date(now)}\r\n"
        f"WARC-Filename: {filename}\r\nContent-Type: application/warc-fields\r\n",
        block,
    )


@lru_cache(maxsize=16)  # the moment of a request is asked for by its record and its log line
def warc_date(epoch_seconds: float) -> str:
    """WARC-Date with microseconds (WARC 1.1 allows 1 to 9 fraction digits)."""
    fraction, seconds = modf(epoch_seconds)
    micros = round(fraction * _MICROS)  # as datetime rounds
    if 0 <= micros < _MICROS:
        return f"{_whole_seconds(seconds)}.{micros:06d}Z"
    return datetime.fromtimestamp(epoch_seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


@lru_cache(maxsize=64)  # hundreds of captures and log lines a second, of the last few seconds
def _whole_seconds(epoch_seconds: float) -> str:
    return datetime.fromtimestamp(epoch_seconds, UTC).isoformat()[:-6]


def one_line(value: str) -> str:
    """The value without line breaks: a WARC field must never be able to add another."""
    return value.replace("\r", " ").replace("\n", " ") if "\n" in value or "\r" in value else value


def make_member(fields: str, block: bytes, body: bytes = b"", level: int = COMPRESSION_LEVEL) -> bytes:
    """One record as one gzip member: ``fields`` with their first line, and the block, which is ``block`` + ``body``.

    A code of its own is most of what compressing a short one costs: natively those share one (``deflate.c``).
    """
    reader = native.reader
    if reader is None:
        record = sealed_in_python(fields, block, body)
    elif not body and (short := reader.short(fields, block)) is not None:
        return short
    else:
        record = reader.sealed(fields, block, body)
    member: bytes = igzip_lib.compress(record, level, igzip_lib.COMP_GZIP)
    return member


def sealed_in_python(fields: str, block: bytes, body: bytes) -> bytes:
    """The record, as the native reader makes it."""
    digest = sha1(block, usedforsecurity=False)
    digest.update(body)
    last = f"WARC-Block-Digest: sha1:{digest_text(digest.digest())}\r\nContent-Length: {len(block) + len(body)}\r\n\r\n"
    return b"".join(((fields + last).encode(), block, body, b"\r\n\r\n"))


def _response_fields(wire: Wire, digest: str, identified: str, original: Original | None) -> str:
    """Of a response or revisit: the transport, and what is known of its payload."""
    fields = ""
    for protocol in wire.protocols:
        fields += f"WARC-Protocol: {protocol}\r\n"
    if wire.cipher:
        fields += f"WARC-Cipher-Suite: {wire.cipher}\r\n"
    named = f"WARC-Identified-Payload-Type: {identified}\r\n" if identified else ""
    payload = f"WARC-Payload-Digest: sha1:{digest}\r\n{named}"
    if original is None:
        return f"{fields}{payload}WARC-Truncated: {wire.truncated}\r\n" if wire.truncated else fields + payload
    fields += (
        f"WARC-Profile: {original.profile}\r\nWARC-Refers-To: {original.record_id}\r\n"
        f"WARC-Refers-To-Target-URI: {one_line(original.url)}\r\nWARC-Refers-To-Date: {original.date}\r\n"
    )
    if original.profile == NOT_MODIFIED:
        return fields  # a 304 has no payload of its own
    return f"{fields}{payload}WARC-Truncated: length\r\n"  # WARC 1.1, 6.7.2: the block is the head alone


def _metadata_block(wire: Wire, context: Context) -> bytes:
    text = f"via: {one_line(context.via)}\r\n" if context.via else ""
    took_ms = round((wire.ended_at - wire.started_at) * 1000)
    text += f"hopsFromSeed: {context.hops}\r\nfetchTimeMs: {took_ms if took_ms > 0 else 0}\r\n"
    if context.delay_seconds is not None:
        text += f"politenessDelaySeconds: {context.delay_seconds:.3f}\r\n"
    if context.waited_seconds is not None:
        text += f"politenessWaitedSeconds: {context.waited_seconds:.3f}\r\n"
    for name, value in context.extra:
        text += f"{name}: {one_line(value)}\r\n"
    return text.encode()
