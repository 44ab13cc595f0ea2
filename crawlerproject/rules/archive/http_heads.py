"""HTTP heads as bytes: the form in which one is stored, and the three things the index reads from it."""

from __future__ import annotations

import re
from itertools import islice, takewhile
from urllib.parse import urljoin

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
        and _lengths_hold(head, body_bytes)
    ):
        return head  # as most come
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


def _lengths_hold(head: bytes, body_bytes: int) -> bool:
    """Whether each Content-Length is plainly this number; where it is folded or odd, the long way decides."""
    for value, folded in _LENGTHS.findall(head):
        plain = _PLAIN_LENGTH.fullmatch(value)
        if plain is None or folded or int(plain[1]) != body_bytes:
            return False
    return True


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
