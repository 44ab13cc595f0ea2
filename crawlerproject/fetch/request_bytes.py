"""Makes the bytes of one HTTP/1.1 request from a Scrapy request."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from crawlerproject.errors import FetchError
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.refused_urls import BAD_PORTS
from crawlerproject.rules.url.urls import UrlRefused, parse

if TYPE_CHECKING:
    from scrapy import Request

ACCEPT = b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
"""What Scrapy's DEFAULT_REQUEST_HEADERS asks for."""

ACCEPT_ENCODING = b"gzip, deflate, br"
"""Never a coding that archive readers cannot undo, zstd among them (DESIGN 6)."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(https?)://([^/?#\\]*)([^#]*)", re.IGNORECASE)
_UNSAFE = re.compile(r"[^\x21-\x7e]")
_HOST = re.compile(r"[a-z0-9._~%-]+|\[[0-9a-f:.]+\]")
# Ours to decide: framing is made here, and the proxy's password is not for the site.
_OURS = frozenset((b"Host", b"Content-Length", b"Transfer-Encoding", b"Accept-Encoding", b"Proxy-Authorization"))


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


@lru_cache(maxsize=8192)
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


class RequestWriter:
    """Writes requests with one User-Agent (the request's own headers win over it)."""

    def __init__(self, user_agent: str = "") -> None:
        self._defaults = {b"Accept": b"Accept: " + ACCEPT + b"\r\n"}
        if user_agent:
            self._defaults[b"User-Agent"] = b"User-Agent: " + _one_line(user_agent.encode("latin-1", "replace"))
            self._defaults[b"User-Agent"] += b"\r\n"
        self._tail = b"Accept-Encoding: " + ACCEPT_ENCODING + b"\r\n"
        self._plain = b"".join(reversed(self._defaults.values())) + self._tail + b"\r\n"

    def write(self, request: Request, target: Target, absolute: bool = False) -> bytes:
        """The request's bytes; ``absolute`` is the form for a plain proxy (RFC 9112 3.2.2)."""
        path = b"http://" + target.host_header + target.path if absolute else target.path
        start = b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (request.method.encode("ascii"), path, target.host_header)
        given: dict[bytes, list[bytes]] = request.headers
        body = request.body
        framing = self._framing(request.method, body)
        if not given:
            return start + self._plain if not framing else start + self._plain[:-2] + framing + b"\r\n" + body
        lines = [start]
        for name, values in dict.items(given):
            if name not in _OURS:
                lines += [b"%b: %b\r\n" % (_one_line(name), _one_line(value)) for value in values]
        lines += [line for name, line in self._defaults.items() if not dict.__contains__(given, name)]
        lines += (self._tail, framing, b"\r\n", body if framing else b"")
        return b"".join(lines)

    def _framing(self, method: str, body: bytes) -> bytes:
        """Content-Length where a body belongs (RFC 9110 8.6); a GET or HEAD carries neither."""
        if method in ("GET", "HEAD") or (not body and method not in ("POST", "PUT", "PATCH")):
            return b""
        return b"Content-Length: %d\r\n" % len(body)


def _one_line(value: bytes) -> bytes:
    if b"\n" in value or b"\r" in value or b"\0" in value:
        return b" ".join(value.replace(b"\0", b" ").split())
    return value
