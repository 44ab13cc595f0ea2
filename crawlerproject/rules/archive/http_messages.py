"""HTTP messages as an archive has them: what crossed the wire, heads as they are stored, payloads and their digests."""

from __future__ import annotations

import re
from binascii import b2a_base64
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha1
from itertools import islice, takewhile
from urllib.parse import urljoin

from crawlerproject import native


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
    signature_asked: bool = False  # refused since another signature is required, which the next request to its host has
    unverified: bool = False  # any certificate was taken: a test server of TLS_ALLOW_HOSTS
    headers: dict[bytes, list[bytes]] = field(default_factory=dict)  # by name in title case, as they were read


EDITED_PREFIX = b"X-Crawler-"
"""Common Crawl's prefix for header lines that no longer hold for the stored body."""
MAX_LENGTH_DIGITS = 19
"""More digits than any 64-bit length has: such a Content-Length is not a number to believe."""
_BODILESS = ([b"204"], [b"304"])  # RFC 9110 6.4.1: their Content-Length speaks of another message
_CONTENT_ENCODING = re.compile(rb"\ncontent-encoding[ \t]*:[ \t]*(?!identity)[^\s]", re.IGNORECASE)
_CODINGS = re.compile(rb"\ncontent-encoding[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_CONTENT_TYPE = re.compile(rb"\ncontent-type[ \t]*:[ \t]*([^\r\n;]*)", re.IGNORECASE)
_LENGTHS = re.compile(rb"\ncontent-length[ \t]*:([^\n]*)(?=\n([ \t]?))", re.IGNORECASE)
_PLAIN_LENGTH = re.compile(rb" ?([0-9]{1,%d})\r" % MAX_LENGTH_DIGITS)
_HEAD_END = b"\r\n\r\n"
_TWO_EMPTY = b"\r\n\r\n\r\n"
_LOCATION = re.compile(rb"\nlocation[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)


def stored_head(head: bytes, *, chunked: bool, body_bytes: int) -> bytes:
    """The HTTP head as it is stored: the received lines, edited only where they would belie the stored body.

    A taken-off Transfer-Encoding and a Content-Length that does not hold get the prefix X-Crawler-, a true
    Content-Length then ends the head; bare LF becomes CRLF (a reader would swallow the body otherwise).
    """
    if (
        not chunked
        and head.endswith(_HEAD_END)
        and not head.endswith(_TWO_EMPTY)
        and len(head) > len(_HEAD_END)
        and head.count(b"\n") == head.count(b"\r\n")
    ):  # as most come; where a Content-Length is another number, folded or odd, the long way decides
        for value, folded in _LENGTHS.findall(head):
            plain = _PLAIN_LENGTH.fullmatch(value)
            if plain is None or folded or int(plain[1]) != body_bytes:
                break
        else:
            return head
    return _edited(head, chunked=chunked, body_bytes=body_bytes)


def content_encoded(head: bytes) -> bool:
    """Whether the body of this HTTP head is compressed already."""
    return _CONTENT_ENCODING.search(head) is not None


def content_encoding(head: bytes) -> bytes:
    """Every Content-Encoding of an HTTP head, joined by commas."""
    return b",".join(_CODINGS.findall(head))


def media_type(head: bytes) -> str:
    """Content-Type of an HTTP head without its parameters, lower-cased; "" without one."""
    found = _CONTENT_TYPE.search(head)
    return found[1].strip().lower().decode("latin-1") if found else ""


def redirect_target(head: bytes, status: int, url: str) -> str:
    """Absolute Location of a 3xx answer to ``url``; "" without one."""
    found = _LOCATION.search(head) if 300 <= status < 400 else None
    if not found:
        return ""
    location = found[1].strip()
    try:
        target = location.decode()
    except UnicodeDecodeError:
        target = location.decode("latin-1")
    try:
        joined: str = urljoin(url, target)
    except ValueError:  # such as a broken IPv6 host
        return target
    return joined


def header_pairs(head: bytes) -> list[tuple[str, str]]:
    """Names and values of a stored head, in order; a folded line belongs to the one before."""
    pairs: list[tuple[str, list[str]]] = []
    for line in head.decode("latin-1").splitlines()[1:]:
        if line[:1] in (" ", "\t") and pairs:
            pairs[-1][1].append(line.strip())
        elif ":" in line:
            name, _, value = line.partition(":")
            pairs.append((name.strip(), [value.strip()]))
    return [(name, " ".join(parts)) for name, parts in pairs]


def _edited(head: bytes, *, chunked: bool, body_bytes: int) -> bytes:
    """The stored form of any head, line by line."""
    lines = [line[:-1] if line.endswith(b"\r") else line for line in head.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    if lines and lines[0].split(None, 2)[1:2] not in _BODILESS:
        true_length, edited = _mark_untrue_lines(lines, chunked=chunked, body_bytes=body_bytes)
        if edited and not true_length:
            lines.append(b"Content-Length: %d" % body_bytes)
    lines.append(b"\r\n")
    return b"\r\n".join(lines)


def _mark_untrue_lines(lines: list[bytes], *, chunked: bool, body_bytes: int) -> tuple[bool, bool]:
    """Prefix what does not hold; (a true Content-Length stands, something was prefixed)."""
    true_length = edited = False
    for index in range(1, len(lines)):
        line = lines[index]
        if line[:1] not in (b"c", b"C", b"t", b"T"):
            continue
        name, colon, value = line.partition(b":")
        name = name.rstrip(b" \t").lower()
        if name == b"content-length" and colon:
            if _length(value, lines, index) == body_bytes:
                true_length = True
                continue
        elif name != b"transfer-encoding" or not colon or not chunked:
            continue
        lines[index] = EDITED_PREFIX + line
        edited = True
    return true_length, edited


def _length(value: bytes, lines: list[bytes], index: int) -> int | None:
    """The number a Content-Length says, folded lines included; None when it is no number."""
    parts = [value, *takewhile(lambda line: line[:1] in (b" ", b"\t"), islice(lines, index + 1, None))]
    value = b"".join(parts).strip(b" \t")
    return int(value) if value.isdigit() and len(value) <= MAX_LENGTH_DIGITS else None


SAMPLE_BYTES = 1445
"""Bytes worth looking at; the WHATWG MIME Sniffing Standard (section 5.2) reads this many."""

# Magic bytes at the start; first match wins. From the same standard, section 6, and the formats' own pages.
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\x00\x00\x01\x00", "image/vnd.microsoft.icon"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"wOF2", "font/woff2"),
    (b"wOFF", "font/woff"),
    (b"OggS", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"\x7fELF", "application/x-elf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"{\\rtf", "application/rtf"),
    (b"\x00asm", "application/wasm"),
)
_MAGIC_STARTS = frozenset(magic[0] for magic, _ in _MAGIC)

# RIFF containers name themselves at byte 8.
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}

# Tags that only HTML starts with: the standard's table (section 7.1) and the ones templates really begin with.
_HTML = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|script|iframe|h1|div|font|table|a|style|title|b|br|p|meta|link|main|nav|section)"
    rb"(?=[\s>/])",
    re.IGNORECASE,
)
_COMMENTS = re.compile(rb"(?:\s*<!--.*?-->)*\s*", re.DOTALL)
_XML = re.compile(rb"\s*<\?xml(?=[\s?])")
_XML_PROLOGUE = re.compile(
    rb"\s*<\?xml.*?\?>(?:\s*(?:<!--.*?-->|<\?.*?\?>))*\s*(?:<!doctype\s+([\w:-]+)[^>\[]*>\s*)?",
    re.DOTALL | re.IGNORECASE,
)
_XML_ROOT = re.compile(rb"<([\w.-]+:)?([\w.-]+)")
_XML_ROOTS = {
    b"html": "application/xhtml+xml",
    b"svg": "image/svg+xml",
    b"rss": "application/rss+xml",
    b"feed": "application/atom+xml",
}
_JSON = re.compile(rb"\s*(?:\{\s*(?:\"|\})|\[\s*(?:[\[{\"\]]|-?\d|true|false|null))")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BINARY = bytes([*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])  # "binary data byte", section 3


def payload_type(sample: bytes) -> str | None:
    """The MIME type that the beginning of a content-decoded body shows; None when it shows nothing.

    >>> payload_type(b"<!DOCTYPE html><title>x</title>")
    'text/html'
    """
    sample = sample[:SAMPLE_BYTES]
    if not sample:
        return None
    is_text = len(sample.translate(None, _BINARY)) == len(sample)
    if is_text and sample[4:8] != b"ftyp" and _HTML.match(sample):
        return "text/html"  # as nearly all
    if sample[0] in _MAGIC_STARTS:
        for magic, name in _MAGIC:
            if sample.startswith(magic):
                return name
    if sample.startswith(b"RIFF") and (container := _RIFF.get(sample[8:12])):
        return container
    if sample[4:8] == b"ftyp":
        return "image/avif" if sample[8:12] in (b"avif", b"avis") else "video/mp4"
    if sample.startswith(_UTF16):
        return "text/plain"
    if sample.startswith(b"\xef\xbb\xbf"):
        sample = sample[3:]
    if not is_text:
        return None
    if _XML.match(sample):
        return _xml(sample)
    comments = _COMMENTS.match(sample)
    if _HTML.match(sample, comments.end() if comments else 0):
        return "text/html"
    if sample.lstrip().startswith(b"<svg"):
        return "image/svg+xml"
    return "application/json" if _JSON.match(sample) else "text/plain"


UNDECODED = frozenset({"encoding-unknown", "encoding-wrong"})
"""Flags of a response whose Content-Encoding could not be taken off: the body is as it was received."""
_COMPRESSED = (*(f"application/{name}" for name in ("gzip", "zstd", "x-bzip2", "x-xz")), None)

PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How gzip and zstd begin, as no text does: some servers pack pages without saying so."""


def is_encoded(body: bytes) -> bool:
    """Whether a body may have a content coding still: it shows no type, or a compressor's."""
    return payload_type(body) in _COMPRESSED


def _xml(sample: bytes) -> str:
    prologue = _XML_PROLOGUE.match(sample)
    root = _XML_ROOT.match(sample, prologue.end() if prologue else 0)
    name = root[2].lower() if root else (prologue[1] or b"").lower() if prologue else b""
    return _XML_ROOTS.get(name, "application/xml")


_SPREAD_BYTES = 24  # a sha1 has 32 groups of five bits; of six bits each
_BASE32_OF_64 = bytes.maketrans(b"abcdef", b"234567")  # of the values 26 to 31; those before are written alike


def _spreading(groups: int) -> tuple[int, int, int]:
    """Bits to leave and bits to shift, and how far, so that groups of five bits lie six times ``groups`` bits apart."""
    half = (1 << 5 * groups) - 1
    places = range(0, _SPREAD_BYTES * 8, 12 * groups)
    return sum(half << at for at in places), sum(half << at + 5 * groups for at in places), groups


_SPREAD = tuple(_spreading(groups) for groups in (16, 8, 4, 2, 1))


def payload_digest(body: bytes | memoryview) -> bytes:
    """sha1 of a payload: the body without transfer coding, its Content-Encoding kept."""
    return sha1(body, usedforsecurity=False).digest()


@lru_cache(maxsize=16)  # a payload's is asked for by its record, its index row and its log line
def digest_text(digest: bytes) -> str:
    """A sha1 as WARC and Common Crawl's index write it: 32 letters of base32, without a label.

    Without the native reader each five bits get a sixth, which is zero, and are then written as base64: half the work
    of ``b32encode``.
    """
    if (reader := native.reader) is not None:
        return reader.base32(digest)
    return _base32(digest)


def _base32(digest: bytes) -> str:
    bits = int.from_bytes(digest)
    for low, high, shift in _SPREAD:
        bits = bits & low | (bits & high) << shift
    return b2a_base64(bits.to_bytes(_SPREAD_BYTES), newline=False).translate(_BASE32_OF_64).decode()


def holds(stated: str, data: bytes | memoryview) -> bool:
    """Whether a digest field holds, in base32 or (as others write it) in hex; what is no sha1 is not checked."""
    return stated.partition(":")[0].lower() != "sha1" or states(stated, payload_digest(data))


def states(stated: str, digest: bytes) -> bool:
    """The same of the sha1 that the data has."""
    label, _, value = stated.partition(":")
    if label.lower() != "sha1":
        return True
    text = digest_text(digest)
    return value == text or value.upper() == text or value.lower() == digest.hex()
