"""Takes a body's Content-Encoding off, never making more bytes than allowed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import brotli
from isal import isal_zlib

from crawlerproject.rules.archive.http_messages import UNDECODED, is_encoded

MAX_LAYERS = 3
"""Stacked codings taken off; two is the most seen on real servers, and each layer multiplies a bomb."""

MAX_GZIP_MEMBERS = 1_000
"""Members of one gzip body; more are ignored, since a million empty ones cost seconds for no text."""

_BLOCK_BYTES = 16_384
"""Encoded bytes handed to a decoder at a time: how exactly the cut of a bomb is known, and what a tail copy costs."""

_INFLATE_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # its stub: an instance
_JUNK_BYTES = 16
"""What may follow raw deflate or brotli; more, and the "end" was found in bytes that were never encoded."""

_GZIP_MARK = b"\x1f\x8b"  # RFC 1952 2.3.1
_GZIP, _ZLIB, _RAW = 31, 15, -15  # wbits of zlib's inflateInit2


class Decoded(NamedTuple):
    """``encoded_bytes``: how much of the input gave ``body``, less than all of it only when ``truncated``.

    ``flag``: "" when all went well, "encoding-wrong" when the body was not what the header names (kept as it is),
    "encoding-damaged" when it broke off (the part before is kept), "encoding-unknown" for a coding we never asked for.
    """

    body: bytes
    encoded_bytes: int
    truncated: bool = False
    flag: str = ""

    @property
    def readable(self) -> bytes:
        """The body for those who read it; nothing while it has a coding still, which may look like text."""
        return b"" if self.flag in UNDECODED and is_encoded(self.body) else self.body


class _Broken(Exception):
    """Not decodable past ``body``; private to this module."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body


def decode(body: bytes, content_encoding: bytes, max_bytes: int) -> Decoded:
    """Undo ``content_encoding`` (the header's value, several joined by commas) up to ``max_bytes`` of result."""
    codings = [coding for part in content_encoding.lower().split(b",") if (coding := part.strip()) not in _IDENTITY]
    if not codings or not body:
        return Decoded(body, len(body))
    if len(codings) > MAX_LAYERS or not all(coding in _DECODERS for coding in codings):
        return Decoded(body, len(body), flag="encoding-unknown")
    data, encoded_bytes, truncated = body, len(body), False
    for layer, coding in enumerate(reversed(codings)):  # applied in order, so undone from the last
        try:
            data, used_bytes, cut = _DECODERS[coding](data, max_bytes)
        except _Broken as broken:
            kept = broken.body or data
            return Decoded(kept, encoded_bytes, truncated, "encoding-damaged" if broken.body else "encoding-wrong")
        truncated = truncated or cut
        if layer == 0:
            encoded_bytes = used_bytes
    return Decoded(data, encoded_bytes, truncated)


def _inflate_any(data: bytes, max_bytes: int) -> tuple[bytes, int, bool]:
    """``deflate`` is zlib by RFC 9110 8.4.1.2, and raw deflate with many servers."""
    looks_like_zlib = len(data) > 1 and data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
    first, second = (_ZLIB, _RAW) if looks_like_zlib else (_RAW, _ZLIB)
    try:
        return _inflate(data, max_bytes, first)
    except _Broken as broken:
        if broken.body:
            raise
        return _inflate(data, max_bytes, second)


def _inflate(data: bytes, max_bytes: int, wbits: int = _GZIP) -> tuple[bytes, int, bool]:
    kept: list[bytes] = []
    for step_bytes in _steps(data):  # the second time in small steps, to keep what came before the damage
        kept.clear()
        with suppress(_INFLATE_ERROR):
            return _inflate_blocks(data, max_bytes, wbits, step_bytes, kept)
    # Raw deflate has no mark of its own: what it made of other bytes is noise.
    raise _Broken(b"" if wbits == _RAW else b"".join(kept))


def _inflate_blocks(
    data: bytes, max_bytes: int, wbits: int, step_bytes: int, pieces: list[bytes]
) -> tuple[bytes, int, bool]:
    decoder = isal_zlib.decompressobj(wbits=wbits)
    made_bytes = at = members = 0
    while at < len(data):
        block = data[at : at + step_bytes]
        try:
            piece = decoder.decompress(block, max_bytes + 1 - made_bytes)
        except _INFLATE_ERROR:
            if members:  # bytes after a complete member: padding or junk, as gzip(1) ignores it
                break
            raise
        pieces.append(piece)
        made_bytes += len(piece)
        at += len(block) - len(decoder.unconsumed_tail) - len(decoder.unused_data)
        if made_bytes > max_bytes:
            return b"".join(pieces)[:max_bytes], at, True
        if decoder.eof:
            members += 1
            if wbits == _RAW and len(data) - at > _JUNK_BYTES:
                raise _Broken(b"")
            if wbits != _GZIP or members == MAX_GZIP_MEMBERS:
                break
            decoder = isal_zlib.decompressobj(wbits=wbits)
    if not made_bytes and not members and data[:2] != _GZIP_MARK:  # waits for a start that never comes: not encoded
        raise _Broken(b"")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces), len(data), False


def _unbrotli(data: bytes, max_bytes: int) -> tuple[bytes, int, bool]:
    for step_bytes in _steps(data):  # the second time in small steps, to find a complete stream before junk
        with suppress(brotli.error):
            return _unbrotli_blocks(data, max_bytes, step_bytes)
    raise _Broken(b"")  # brotli has no mark of its own: what it made of other bytes is noise


def _unbrotli_blocks(data: bytes, max_bytes: int, step_bytes: int) -> tuple[bytes, int, bool]:
    decoder: Any = brotli.Decompressor()
    pieces: list[bytes] = []
    made_bytes = 0
    for at in range(0, len(data), step_bytes):
        block = data[at : at + step_bytes]
        while True:
            piece = decoder.process(block, output_buffer_limit=max_bytes + 1 - made_bytes)
            pieces.append(piece)
            made_bytes += len(piece)
            if made_bytes > max_bytes:
                return b"".join(pieces)[:max_bytes], min(at + step_bytes, len(data)), True
            if decoder.can_accept_more_data():
                break
            block = b""
        if decoder.is_finished():
            if len(data) - at - step_bytes > _JUNK_BYTES:
                raise _Broken(b"")
            break
    if not made_bytes and not decoder.is_finished():
        raise _Broken(b"")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces), len(data), False


def _steps(data: bytes) -> tuple[int, int]:
    """Bytes a step for a first look and for a second: exact on short bodies, at most 4096 steps on long ones."""
    return _BLOCK_BYTES, max(1, len(data) // 4096)


_IDENTITY = frozenset((b"", b"identity", b"none"))
_DECODERS: dict[bytes, Callable[[bytes, int], tuple[bytes, int, bool]]] = {
    b"gzip": _inflate,
    b"x-gzip": _inflate,
    b"deflate": _inflate_any,
    b"br": _unbrotli,
}
