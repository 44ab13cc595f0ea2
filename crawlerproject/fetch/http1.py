"""HTTP/1.1 as bytes: reads one answer from what is handed in, writes one request; no sockets, no clock, all bounded.

Lenient where servers are wrong and the meaning is still clear (RFC 9112 names the cases), strict in what it
keeps: the head is stored byte for byte, and the result is the same however the bytes were split.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from crawlerproject.errors import FetchError
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.refused_urls import BAD_PORTS
from crawlerproject.rules.url.urls import UrlRefused, parse

MAX_HEAD_BYTES = 65_536
"""Status line to blank line, dropped 1xx answers included (DESIGN 7: header 64 KB).

Chunk heads with their extensions may take as much beyond the size of the content, so that 13,000 chunks of one byte
pass; chunks of five bytes or more pay for their own framing.
"""

MAX_BODY_BYTES = 5 * 1024 * 1024
"""Default of FETCH_MAX_BYTES (DESIGN 4)."""

MAX_CHUNK_LINE_BYTES = 4_096
"""A chunk's size and extensions; RFC 9112 7.1.1 asks for a limit, real lines are under 20 bytes."""

MAX_INTERIM_ANSWERS = 100
"""Answers 1xx before the real one (RFC 9110 15.2 sets no limit; Go's client took 5 for years, servers send 1 or 2)."""

# Chunks so short are read at once where they are written plainly: by their head, the length of both.
_PLAIN_CHUNKS = {form % size: size for size in range(1, 256) for form in (b"%x\r\n", b"%X\r\n")}

# "HTTP/1.1 200 OK", also "HTTP/2 200", "HTTP/1.1 999", "HTTP/1.0 200OK"; the reason phrase is not needed.
_STATUS_LINE = re.compile(rb"HTTP/(\d)(?:\.(\d))?[ \t]+([1-9]\d\d)(?!\d)", re.IGNORECASE)
# Up to 20 hex digits as h11 allows; blanks around the size are common with old servers (BWS).
_CHUNK_LINE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,20})[ \t]*(?:;[^\n]*)?\r?")
_KEEP_ALIVE_TIMEOUT = re.compile(rb"timeout\s*=\s*\"?(\d{1,6})", re.IGNORECASE)
_NO_BODY = frozenset((204, 304))  # RFC 9112 6.3, besides HEAD and a CONNECT that succeeded

# Past 18 digits no body is that long, and int() of an unbounded text is slow.
_LENGTH = re.compile(rb"\d{1,18}")

ACCEPT = b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
"""What Scrapy's DEFAULT_REQUEST_HEADERS asks for."""

ACCEPT_ENCODING = b"gzip, deflate, br"
"""Never a coding that archive readers cannot undo, zstd among them (DESIGN 6)."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(https?)://([^/?#\\]*)([^#]*)", re.IGNORECASE)
_UNSAFE = re.compile(r"[^\x21-\x7e]")
_HOST = re.compile(r"[a-z0-9._~%-]+|\[[0-9a-f:.]+\]")
SIGNATURE_FIELDS = frozenset((b"Signature", b"Signature-Input", b"Signature-Agent"))
"""Headers of a signed request, in title case."""

# Ours to decide: framing is made here, robots.txt and pace are those of the URL's host, and the proxy's password is not
# for the site.
_OURS = frozenset((b"Host", b"Content-Length", b"Transfer-Encoding", b"Proxy-Authorization"))
_OURS_TO_DECODE = _OURS | {b"Accept-Encoding"}

_HEAD, _LENGTH_BODY, _CLOSE_BODY, _CHUNK_SIZE, _CHUNK_DATA, _CHUNK_END, _TRAILER = range(7)


class ResponseReader:
    """One answer to one request; make a new reader for the next.

    ``feed`` returns True once the answer is complete (``done``); ``eof`` tells that the server closed;
    ``cut`` keeps what came so far. The only exception is ``FetchError`` with BAD_RESPONSE, HEADER_TOO_LARGE
    or (from ``eof``) DISCONNECTED; the reader is of no use after one.
    """

    __slots__ = (
        "_body", "_dropped_bytes", "_framing_bytes", "_interim_answers", "_left_bytes", "_max_body_bytes",
        "_max_head_bytes", "_method", "_pending", "_state", "body", "chunked", "done", "flaw", "head_bytes",
        "headers", "keepalive_seconds", "received_bytes", "reusable", "status", "truncated",
    )  # fmt: skip

    def __init__(
        self, method: str = "GET", max_body_bytes: int = MAX_BODY_BYTES, max_head_bytes: int = MAX_HEAD_BYTES
    ) -> None:
        self._method = method
        self._max_body_bytes = max_body_bytes
        self._max_head_bytes = max_head_bytes
        self._state = _HEAD
        self._pending = b""  # bytes of an unfinished head or chunk line
        self._body = bytearray()
        self._left_bytes = 0  # of the body or of the chunk
        self._dropped_bytes = 0  # blank lines and 1xx answers before the head; then trailers
        self._interim_answers = 0
        self._framing_bytes = 0  # of chunks
        self.done = False
        self.status = 0  # 0 until the head is complete
        self.head_bytes = b""  # as received; before the head is complete, what of it came
        self.headers: dict[bytes, list[bytes]] = {}  # as ``read_headers`` returns them
        self.body = b""  # without chunked coding; set when done
        self.chunked = False
        self.truncated: str | None = None  # WARC-Truncated: "length" | "disconnect" | the argument of cut()
        self.flaw = ""  # why it was cut, where "length" does not say it: one line for people
        self.reusable = False  # meaningful when done: the connection may carry another request
        self.keepalive_seconds: float | None = None  # what the server's Keep-Alive header promised
        self.received_bytes = 0

    def feed(self, data: bytes) -> bool:
        """Take the next bytes from the wire; True when the answer is complete."""
        self.received_bytes += len(data)
        if self.done:
            self.reusable = False  # bytes beyond the answer: the framing cannot be trusted any more
            return True
        if self._state == _HEAD:
            data = self._feed_head(data)
            if self.done:  # without a body
                self.reusable = self.reusable and not data
        if not data or self.done:
            return self.done
        if self._state == _LENGTH_BODY:
            expected = self._left_bytes
            self._left_bytes = left = expected - len(data)
            if left <= 0 and not self._body and expected <= self._max_body_bytes:  # the common answer: no copy
                self.body = data[:expected] if left else data
                self.done = True
                self.reusable = self.reusable and not left
                return True
            self._body += data[:expected] if left < 0 else data
            if not self._over_limit() and left <= 0:
                self._finish(not left)
        elif self._state == _CLOSE_BODY:
            self._body += data
            self._over_limit()
        else:
            self._feed_chunks(data)
        return self.done

    def eof(self) -> None:
        """The server closed its side: the answer ends here, complete or not."""
        self.reusable = False
        if self.done:
            return
        if self._state == _HEAD:
            raise FetchError(Reason.DISCONNECTED, "closed inside the head" if self._pending else "closed unanswered")
        if self._state != _CLOSE_BODY and self._state != _TRAILER:
            self.truncated = "disconnect"
        self._finish(False)

    def cut(self, why: str, flaw: str = "") -> None:
        """End the answer here, marked ``truncated=why``; only once ``status`` is known."""
        if not self.done:
            if self._state != _TRAILER:  # the last chunk was there: nothing of the body is missing
                self.truncated, self.flaw = why, flaw
            self._finish(False)

    def _feed_head(self, data: bytes) -> bytes:
        """Read the head once it is complete; what follows it."""
        searched = max(len(self._pending) - 2, 0)
        block = self._pending + data if self._pending else data
        while True:
            if block[:1] in (b"\r", b"\n"):  # stray blank lines, RFC 9112 2.2
                stripped = block.lstrip(b"\r\n")
                self._dropped_bytes += len(block) - len(stripped)
                block, searched = stripped, 0
            # The head ends after the first blank line, CRLF or bare LF.
            crlf = block.find(b"\n\r\n", searched)
            bare = block.find(b"\n\n", searched, crlf if crlf >= 0 else len(block))
            end = bare + 2 if bare >= 0 else crlf + 3 if crlf >= 0 else -1
            if self._interim_answers > MAX_INTERIM_ANSWERS:
                raise FetchError(Reason.HEADER_TOO_LARGE, f"more than {MAX_INTERIM_ANSWERS} interim answers")
            most = self._max_head_bytes
            if not b"HTTP/".startswith(block[:5].upper()):
                self.head_bytes = block[:most]
                raise FetchError(Reason.BAD_RESPONSE, f"not HTTP: {block[:40]!r}")
            if self._dropped_bytes + (end if end >= 0 else len(block)) > most:
                self.head_bytes = block[:most]
                raise FetchError(Reason.HEADER_TOO_LARGE, f"head over {most} bytes")
            if end < 0:
                self._pending = self.head_bytes = block
                return b""
            self.head_bytes, rest = block[:end], block[end:]
            match = _STATUS_LINE.match(self.head_bytes)
            if match is None:
                raise FetchError(Reason.BAD_RESPONSE, f"bad status line: {self.head_bytes[:60]!r}")
            status = int(match[3])
            if status >= 200:
                self.status, self._pending = status, b""
                self.headers = read_headers(self.head_bytes)
                self.reusable = match[1] == b"1" and match[2] == b"1"
                self._start_body()
                return rest
            if status == 101:
                raise FetchError(Reason.BAD_RESPONSE, "switched protocols unasked")
            self._dropped_bytes += end
            self._interim_answers += 1
            block, searched = rest, 0
            self.head_bytes = b""

    def _start_body(self) -> None:
        headers = self.headers
        if b"Connection" in headers or b"Keep-Alive" in headers:
            # HTTP/1.0 keeps a connection only when "keep-alive" is there.
            tokens = [token.strip() for token in b",".join(headers.get(b"Connection", ())).lower().split(b",")]
            self.reusable = b"close" not in tokens and (self.reusable or b"keep-alive" in tokens)
            found = _KEEP_ALIVE_TIMEOUT.search(b",".join(headers.get(b"Keep-Alive", ())))
            self.keepalive_seconds = float(found[1]) if found else None
        connects = self._method == "CONNECT" and 200 <= self.status < 300
        if self._method == "HEAD" or self.status in _NO_BODY or connects:
            self._finish(True)
            return
        coding = b",".join(headers.get(b"Transfer-Encoding", ())).lower().strip(b" \t,")
        if coding and coding != b"identity":  # wins over Content-Length, RFC 9112 6.3
            self.chunked = coding.rsplit(b",", 1)[-1].strip() == b"chunked"
            if not self.chunked or b"Content-Length" in headers:
                self.reusable = False
            self._state = _CHUNK_SIZE if self.chunked else _CLOSE_BODY
        elif (length := body_length(headers.get(b"Content-Length"))) is None:
            self._state = _CLOSE_BODY
        else:
            self._state = _LENGTH_BODY
            self._left_bytes = length
            if not length:
                self._finish(True)

    def _over_limit(self) -> bool:
        if len(self._body) <= self._max_body_bytes:
            return False
        del self._body[self._max_body_bytes :]
        self.truncated = "length"
        self._finish(False)
        return True

    def _feed_chunks(self, data: bytes) -> None:
        if self._pending:
            data = self._pending + data
            self._pending = b""
        at = 0
        while not self.done:
            if self._state == _CHUNK_SIZE:
                at = self._plain_chunks(data, at)
            before = at
            if self._state == _CHUNK_DATA:
                piece = data[at : at + self._left_bytes]
                self._body += piece
                at += len(piece)
                self._left_bytes -= len(piece)
                if self._over_limit() or self._left_bytes:
                    return
                self._state = _CHUNK_END
            elif self._state == _CHUNK_END:
                at = self._chunk_end(data, at)
            elif self._state == _CHUNK_SIZE:
                at = self._chunk_size(data, at)
            else:
                at = self._trailer(data, at)
            if at < 0:
                if not self.done:
                    self._pending = data[before:]
                return

    def _plain_chunks(self, data: bytes, at: int) -> int:
        """Take short chunks that are here whole and plain, a fifth of the cost; where the first of another kind begins.

        Whatever breaks a rule or a bound is left to the methods below.
        """
        if data[at : at + 3] not in _PLAIN_CHUNKS and data[at : at + 4] not in _PLAIN_CHUNKS:
            return at
        size_of, pieces, made_bytes, framing_bytes = _PLAIN_CHUNKS.get, list[bytes](), len(self._body), 0
        most_framing = self._max_head_bytes - self._framing_bytes
        while True:
            start = at + 3
            size = size_of(data[at:start])
            if size is None:
                start += 1
                size = size_of(data[at:start])
                if size is None:
                    break
            end = start + size
            more_framing = framing_bytes + start - at
            if data[end : end + 2] != b"\r\n" or more_framing > most_framing + made_bytes:
                break
            if made_bytes + size > self._max_body_bytes:
                break
            pieces.append(data[start:end])
            made_bytes += size
            framing_bytes = more_framing + 2
            at = end + 2
        self._body += b"".join(pieces)
        self._framing_bytes += framing_bytes
        return at

    # The three below return where reading goes on, -1 when the line is not complete yet.

    def _chunk_end(self, data: bytes, at: int) -> int:
        found = data[at : at + 2]
        if found in (b"", b"\r"):
            return -1
        if found[:1] != b"\n" and found != b"\r\n":
            return self._bad_chunk()
        self._state = _CHUNK_SIZE
        length = 1 if found[:1] == b"\n" else 2
        self._framing_bytes += length
        return at + length

    def _chunk_size(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at, at + MAX_CHUNK_LINE_BYTES)
        if end < 0:
            return self._bad_chunk() if len(data) - at >= MAX_CHUNK_LINE_BYTES else -1
        match = _CHUNK_LINE.fullmatch(data, at, end)
        if match is None:
            return self._bad_chunk()
        self._left_bytes = int(match[1], 16)
        self._state = _CHUNK_DATA if self._left_bytes else _TRAILER
        self._framing_bytes += end + 1 - at
        if self._left_bytes and self._framing_bytes > self._max_head_bytes + len(self._body):
            self.cut("length", "more bytes for its chunks' heads than for its content")
            return -1
        return end + 1

    def _trailer(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at)
        if self._dropped_bytes + (len(data) if end < 0 else end) - at > self._max_head_bytes:
            self._finish(False)  # the body is whole; the trailers are of no use
            return -1
        if end < 0:
            return -1
        self._dropped_bytes += end + 1 - at
        if data[at:end].rstrip(b"\r") == b"":
            self._finish(end + 1 == len(data))
        return end + 1

    def _bad_chunk(self) -> int:
        self.truncated = "disconnect"  # what follows cannot be framed: as if the connection had been cut here
        self._finish(False)
        return -1

    def _finish(self, reusable: bool) -> None:
        self.reusable = self.reusable and reusable
        self.body = bytes(self._body)
        self._body = bytearray()
        self._pending = b""
        self.done = True


def read_headers(head: bytes) -> dict[bytes, list[bytes]]:
    """By name in title case, in order, the values without outer blanks; what is not a header is passed over."""
    headers: dict[bytes, list[bytes]] = {}
    values: list[bytes] = []  # of the latest name
    folds: list[bytes] = []
    for line in head.split(b"\n")[1:-2]:
        if line[:1] in (b" ", b"\t") and values:  # obs-fold, RFC 9112 5.2
            folds.append(line.strip())
            continue
        if folds:
            _unfold(values, folds)
        name, colon, value = line.partition(b":")
        if colon and (name := name.strip().title()):  # a line without colon stays in head_bytes only
            values = headers.setdefault(name, [])
            values.append(value.strip())
    if folds:
        _unfold(values, folds)
    return headers


def _unfold(values: list[bytes], folds: list[bytes]) -> None:
    """Join a value's lines, at once: thousands of them one by one would cost the square of their number."""
    values[-1] = b" ".join([part for part in (values[-1], *folds) if part])
    folds.clear()


def body_length(values: list[bytes] | None) -> int | None:
    """Content-Length in bytes; the largest of several, None (read until close) when one is not a number."""
    if values is None:
        return None
    if len(values) == 1 and values[0].isdigit() and len(values[0]) <= 18:
        return int(values[0])
    lengths = [part.strip() for part in b",".join(values).split(b",")]
    return max(map(int, lengths)) if all(map(_LENGTH.fullmatch, lengths)) else None


class Target(NamedTuple):
    """Where a URL points: what to connect to and what to ask for."""

    scheme: str  # "http" or "https"
    host: str  # lower-case, without brackets: a name or an IP address
    port: int
    host_header: bytes  # host[:port], without the default port
    path: bytes  # path and query, always starting with "/"


def parse_target(url: str) -> Target:
    """Split an absolute http(s) URL; raises FetchError(INVALID_URL)."""
    match = _URL.match(url)
    if match is None:
        raise FetchError(Reason.INVALID_URL, f"not an absolute http address: {url[:100]!r}")
    scheme, authority, path = match.groups()
    if not path.startswith("/"):
        path = "/" + path
    if _UNSAFE.search(path):  # nothing in an address may end the request line
        path = quote(path, safe="%/:=&?~#+!$,;'@()*[]|\"<>\\^`{}")
    return Target(*_parse_authority(scheme.lower(), authority), path.encode("ascii"))


@lru_cache(maxsize=65_536)  # as many as other caches by host: a broad crawl asks its hosts in turn
def _parse_authority(scheme: str, authority: str) -> tuple[str, str, int, bytes]:
    host_port = authority.rpartition("@")[2].lower()
    host, colon, digits = host_port.rpartition(":")
    if not colon or host_port.endswith("]"):
        host, digits = host_port, ""
    if not host.isascii():
        try:
            host = parse(f"http://{host}/").host
        except UrlRefused as error:
            raise FetchError(Reason.INVALID_URL, f"not a host name: {host[:100]!r}") from error
    if not _HOST.fullmatch(host) or (digits and not (digits.isdecimal() and len(digits) < 6)):
        raise FetchError(Reason.INVALID_URL, f"not a host: {authority[:100]!r}")
    port = int(digits) if digits else _DEFAULT_PORTS[scheme]
    if not 0 < port < 65536:
        raise FetchError(Reason.INVALID_URL, f"not a port: {port}")
    if port in BAD_PORTS:  # the last look, for every caller
        raise FetchError(Reason.BAD_PORT, f"port {port} is not the web's")
    header = host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
    return scheme, host.strip("[]"), port, header.encode("ascii")


Sign = Callable[[str, Target, Callable[[], dict[bytes, list[bytes]]]], bytes]
"""Header lines that sign a request, b"" for none: by method, target and, if need be, its other headers."""


class RequestWriter:
    """Writes requests with one User-Agent (the request's own headers win over it), signed if there is ``sign``.

    Every request of this crawler is written here, so that here is where it is signed.
    """

    def __init__(self, user_agent: str = "", sign: Sign | None = None) -> None:
        self._sign = sign
        self._defaults = {b"Accept": b"Accept: " + ACCEPT + b"\r\n"}
        if user_agent:
            self._defaults[b"User-Agent"] = b"User-Agent: " + _one_line(user_agent.encode("latin-1", "replace"))
            self._defaults[b"User-Agent"] += b"\r\n"
        self._tail = b"Accept-Encoding: " + ACCEPT_ENCODING + b"\r\n"
        self._plain = b"".join(reversed(self._defaults.values())) + self._tail + b"\r\n"

    def write(
        self,
        method: str,
        target: Target,
        given: dict[bytes, list[bytes]],
        body: bytes,
        *,
        absolute: bool = False,
        accepts: bool = True,
    ) -> bytes:
        """The request's bytes; ``absolute`` is the form for a plain proxy (RFC 9112 3.2.2).

        ``given`` are its own headers by name in title case: Scrapy's, read past its normalising. ``accepts`` False:
        they alone say what is accepted, and in which coding.
        """
        path = b"http://" + target.host_header + target.path if absolute else target.path
        start = b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (method.encode("ascii"), path, target.host_header)
        framing = b""  # Content-Length where a body is, or belongs (RFC 9110 8.6)
        if body or method in ("POST", "PUT", "PATCH"):
            framing = b"Content-Length: %d\r\n" % len(body)
        if not given and accepts:
            rest = self._plain if not framing else self._plain[:-2] + framing + b"\r\n"
        else:
            lines, ours = [], _OURS_TO_DECODE if accepts else _OURS
            ours = ours if self._sign is None else ours | SIGNATURE_FIELDS
            for name, values in dict.items(given):
                if name not in ours:
                    lines += [b"%b: %b\r\n" % (_one_line(name), _one_line(value)) for value in values]
            defaults = (name for name in self._defaults if accepts or name != b"Accept")
            lines += [self._defaults[name] for name in defaults if not dict.__contains__(given, name)]
            rest = b"".join((*lines, self._tail if accepts else b"", framing, b"\r\n"))
        signed = b"" if self._sign is None else self._sign(method, target, lambda: read_headers(start + rest))
        return start + signed + rest + (body if framing else b"")


def _one_line(value: bytes) -> bytes:
    if b"\n" in value or b"\r" in value or b"\0" in value:
        return b" ".join(value.replace(b"\0", b" ").split())
    return value
