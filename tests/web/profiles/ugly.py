"""Answers that break the rules the way real servers do; each is raw bytes, named after what is wrong with it."""

from __future__ import annotations

from tests.web.graph import Answer

_BODY = b"<html><head><title>ugly</title></head><body><p>still a page</p></body></html>\n"
_LENGTH = b"Content-Length: %d\r\n" % len(_BODY)
_TYPE = b"Content-Type: text/html\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
_LONG = 9000  # more than 8190 bytes, where several clients stop reading one header line


def _whole(head: bytes, status: int = 200, *, body: bytes = _BODY, close: bool = False) -> Answer:
    return Answer(status, (head + b"\r\n" + body,), close=close)


#: A client can make sense of these: they must be archived.
READABLE: dict[str, Answer] = {
    "no-colon": _whole(b"HTTP/1.1 200 OK\r\nthis line has no colon\r\n" + _TYPE + _LENGTH),
    "space-in-name": _whole(b"HTTP/1.1 200 OK\r\nX Odd Name: 1\r\n" + _TYPE + _LENGTH),
    "empty-name": _whole(b"HTTP/1.1 200 OK\r\n: nameless\r\n" + _TYPE + _LENGTH),
    "length-twice": _whole(b"HTTP/1.1 200 OK\r\n" + _TYPE + _LENGTH + _LENGTH),
    "lf-only": Answer(200, ((b"HTTP/1.1 200 OK\r\n" + _TYPE + _LENGTH + b"\r\n").replace(b"\r\n", b"\n") + _BODY,)),
    "folded": _whole(b"HTTP/1.1 200 OK\r\nX-Folded: one\r\n two\r\n\tthree\r\n" + _TYPE + _LENGTH),
    "long-header": _whole(b"HTTP/1.1 200 OK\r\nX-Long: " + b"y" * _LONG + b"\r\n" + _TYPE + _LENGTH),
    "latin-header": _whole(b"HTTP/1.1 200 OK\r\nX-Place: K\xf6ln\r\n" + _TYPE + _LENGTH),
    "no-reason": _whole(b"HTTP/1.1 200\r\n" + _TYPE + _LENGTH),
    "status-999": _whole(b"HTTP/1.1 999 Request denied\r\n" + _TYPE + _LENGTH, 999),
    "wrong-encoding": _whole(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n" + _TYPE + _LENGTH),
    "short-body": _whole(b"HTTP/1.1 200 OK\r\n" + _TYPE + b"Content-Length: 1000\r\n", close=True),
    "http-0-style": _whole(b"HTTP/1.0 200 OK\r\n" + _TYPE, close=True),
    "informational": Answer(200, (b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n",
                                  b"HTTP/1.1 200 OK\r\n" + _TYPE + _LENGTH + b"\r\n" + _BODY)),
    "length-and-chunked": Answer(200, (b"HTTP/1.1 200 OK\r\n" + _TYPE + b"Content-Length: 7\r\n" + _CHUNKED +
                                       b"\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(_BODY), _BODY),)),
    "slow-drip": Answer(200, (b"HTTP/1.1 200 OK\r\n" + _TYPE + _LENGTH + b"\r\n",
                              *(_BODY[at : at + 16] for at in range(0, len(_BODY), 16))), gap_seconds=0.05),
}  # fmt: skip

#: Nothing sensible can be read from these: archived or an error with a reason, either is right.
HOPELESS: dict[str, Answer] = {
    "garbage": Answer(0, (b"\x16\x03\x01 this is not HTTP at all\r\n\r\n",), close=True),
    "lengths-differ": _whole(b"HTTP/1.1 200 OK\r\n" + _TYPE + _LENGTH + b"Content-Length: 5\r\n", close=True),
    "closes-at-once": Answer(0, (), close=True),
    "head-only": Answer(0, (b"HTTP/1.1 200 OK\r\nContent-Ty",), close=True),
    "bad-chunk": _whole(b"HTTP/1.1 200 OK\r\n" + _TYPE + _CHUNKED, body=b"zz\r\nno\r\n", close=True),
}  # fmt: skip
