"""Reads the head of an HTTP/1.1 message: where it ends, its headers, the length they promise."""

from __future__ import annotations

import re

# Past 18 digits no body is that long, and int() of an unbounded text is slow.
_LENGTH = re.compile(rb"\d{1,18}")


def head_end(block: bytes, start: int) -> int:
    """Index after the first blank line at or after ``start`` (CRLF or bare LF), -1 when there is none."""
    crlf = block.find(b"\n\r\n", start)
    bare = block.find(b"\n\n", start, crlf if crlf >= 0 else len(block))
    if bare >= 0:
        return bare + 2
    return crlf + 3 if crlf >= 0 else -1


def read_headers(head: bytes) -> list[tuple[bytes, bytes]]:
    """Names in lower case and values without outer blanks, in order; what is not a header is passed over."""
    headers: list[tuple[bytes, bytes]] = []
    folds: list[bytes] = []
    for line in head.split(b"\n")[1:-2]:
        if line[:1] in (b" ", b"\t") and headers:  # obs-fold, RFC 9112 5.2
            folds.append(line.strip())
            continue
        if folds:
            _unfold(headers, folds)
        name, colon, value = line.partition(b":")
        if colon and (name := name.strip()):  # a line without colon stays in head_bytes only
            headers.append((name.lower(), value.strip()))
    if folds:
        _unfold(headers, folds)
    return headers


def _unfold(headers: list[tuple[bytes, bytes]], folds: list[bytes]) -> None:
    """Join a value's lines, at once: thousands of them one by one would cost the square of their number."""
    name, value = headers[-1]
    headers[-1] = (name, b" ".join([part for part in (value, *folds) if part]))
    folds.clear()


def body_length(value: bytes | None) -> int | None:
    """Content-Length in bytes; the largest of several, None (read until close) when one is not a number."""
    if value is None:
        return None
    if value.isdigit() and len(value) <= 18:
        return int(value)
    lengths = [part.strip() for part in value.split(b",")]
    return max(map(int, lengths)) if all(map(_LENGTH.fullmatch, lengths)) else None
