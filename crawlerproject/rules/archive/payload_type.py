"""What a payload is by its first bytes: the WARC-Identified-Payload-Type, never taken from a header."""

from __future__ import annotations

import re

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
    if len(sample.translate(None, _BINARY)) < len(sample):
        return None
    if _XML.match(sample):
        return _xml(sample)
    comments = _COMMENTS.match(sample)
    if _HTML.match(sample, comments.end() if comments else 0):
        return "text/html"
    if sample.lstrip().startswith(b"<svg"):
        return "image/svg+xml"
    return "application/json" if _JSON.match(sample) else "text/plain"


def _xml(sample: bytes) -> str:
    prologue = _XML_PROLOGUE.match(sample)
    root = _XML_ROOT.match(sample, prologue.end() if prologue else 0)
    name = root[2].lower() if root else (prologue[1] or b"").lower() if prologue else b""
    return _XML_ROOTS.get(name, "application/xml")
