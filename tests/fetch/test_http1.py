"""The response reader: each ugly answer, every split alike, h11 agrees on what is well formed, nothing else raised."""

from __future__ import annotations

from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.errors import FetchError
from crawlerproject.fetch.http1 import MAX_CHUNK_LINE_BYTES, MAX_HEAD_BYTES, ResponseReader
from crawlerproject.reasons import Reason

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def read(wire: bytes, method: str = "GET", *, eof: bool = True, **limits: int) -> ResponseReader:
    """One answer read in one go."""
    reader = ResponseReader(method, **limits)
    reader.feed(wire)
    if eof and not reader.done:
        reader.eof()
    return reader


UGLY = [  # what is odd, the wire, body, truncated, reusable
    ("plain", OK + b"Content-Length: 5\r\n\r\nhello", b"hello", None, True),
    ("until close", OK + b"\r\nhello", b"hello", None, False),
    ("HTTP/1.0", b"HTTP/1.0 200 OK\r\n\r\nhello", b"hello", None, False),
    ("HTTP/1.0 kept", b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx", b"x", None, True),
    ("closes", OK + b"Connection: close\r\nContent-Length: 1\r\n\r\nx", b"x", None, False),
    ("no reason", b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", b"x", None, True),
    ("no reason, blank", b"HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx", b"x", None, True),
    ("HTTP/2 in the line", b"HTTP/2 200\r\nContent-Length: 1\r\n\r\nx", b"x", None, False),
    ("lower case", b"http/1.1 200 ok\r\ncontent-length: 1\r\n\r\nx", b"x", None, True),
    ("LF only", b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", b"hello", None, True),
    ("LF only, CRLFs in body", b"HTTP/1.1 200 OK\nContent-Length: 6\n\na\r\n\r\nb", b"a\r\n\r\nb", None, True),
    ("mixed line ends", b"HTTP/1.1 200 OK\nContent-Length: 1\n\r\nx", b"x", None, True),
    ("obs-fold", OK + b"X: a\r\n b\r\nContent-Length: 1\r\n\r\nx", b"x", None, True),
    ("no colon", OK + b"this is no header\r\nContent-Length: 1\r\n\r\nx", b"x", None, True),
    ("no name", OK + b": nobody\r\nContent-Length: 1\r\n\r\nx", b"x", None, True),
    ("space before colon", OK + b"Content-Length : 1\r\n\r\nx", b"x", None, True),
    ("length twice", OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", b"x", None, True),
    ("lengths in a list", OK + b"Content-Length: 1, 1\r\n\r\nx", b"x", None, True),
    ("lengths differ", OK + b"Content-Length: 1\r\nContent-Length: 3\r\n\r\nxyz", b"xyz", None, True),
    ("length no number", OK + b"Content-Length: many\r\n\r\nhello", b"hello", None, False),
    ("length negative", OK + b"Content-Length: -5\r\n\r\nhello", b"hello", None, False),
    ("length huge", OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\nhello", b"hello", None, False),
    ("short body", OK + b"Content-Length: 50\r\n\r\nhello", b"hello", "disconnect", False),
    ("bytes too many", OK + b"Content-Length: 1\r\n\r\nxyz", b"x", None, False),
    ("length, chunked", OK + b"Content-Length: 9\r\n" + CHUNKED[len(OK):] + b"1\r\nx\r\n0\r\n\r\n", b"x", None, False),
    ("identity", OK + b"Transfer-Encoding: identity\r\nContent-Length: 1\r\n\r\nx", b"x", None, True),
    ("coding unknown", OK + b"Transfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\nxyz", b"xyz", None, False),
    ("chunked", CHUNKED + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", b"hello world", None, True),
    ("chunk extension", CHUNKED + b"5;a=b;c\r\nhello\r\n0;x\r\n\r\n", b"hello", None, True),
    ("chunk size padded", CHUNKED + b"0005  \r\nhello\r\n000\r\n\r\n", b"hello", None, True),
    ("chunks LF only", CHUNKED + b"5\nhello\n0\n\n", b"hello", None, True),
    ("trailers", CHUNKED + b"1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", b"x", None, True),
    ("final CRLF missing", CHUNKED + b"5\r\nhello\r\n0\r\n", b"hello", None, False),
    ("closed in a chunk", CHUNKED + b"5\r\nhel", b"hel", "disconnect", False),
    ("closed between chunks", CHUNKED + b"5\r\nhello\r\n", b"hello", "disconnect", False),
    ("no chunk size", CHUNKED + b"hello\r\n", b"", "disconnect", False),
    ("size is no hex", CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n", b"", "disconnect", False),
    ("size with sign", CHUNKED + b"+5\r\nhello\r\n0\r\n\r\n", b"", "disconnect", False),
    ("chunk too long", CHUNKED + b"2\r\nhello\r\n0\r\n\r\n", b"he", "disconnect", False),
    ("endless extension", CHUNKED + b"5;" + b"e" * MAX_CHUNK_LINE_BYTES + b"\r\nhello", b"", "disconnect", False),
    ("204", b"HTTP/1.1 204 No Content\r\n\r\n", b"", None, True),
    ("304 with length", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", b"", None, True),
    ("999", b"HTTP/1.1 999 Denied\r\nContent-Length: 1\r\n\r\nx", b"x", None, True),
    ("stray blank lines", b"\r\n\n" + OK + b"Content-Length: 1\r\n\r\nx", b"x", None, True),
    ("early hints", b"HTTP/1.1 103 Hint\r\nLink: </a>\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx", b"x", None, True),
    ("several 1xx", b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + OK + b"Content-Length: 0\r\n\r\n", b"", None, True),
]  # fmt: skip


@pytest.mark.parametrize(("wire", "body", "truncated", "reusable"), [row[1:] for row in UGLY], ids=[r[0] for r in UGLY])
def test_ugly_answers_in_one_piece_and_byte_by_byte(
    wire: bytes, body: bytes, truncated: str | None, reusable: bool
) -> None:
    """Each answer is read as meant, whole or byte by byte."""
    whole = read(wire)
    assert (whole.body, whole.truncated, whole.reusable) == (body, truncated, reusable)
    slow = ResponseReader()
    for at in range(len(wire)):
        if slow.feed(wire[at : at + 1]) and truncated:
            break
    if not slow.done:
        slow.eof()
    assert (slow.body, slow.truncated, slow.reusable) == (body, truncated, reusable)
    assert slow.head_bytes == whole.head_bytes
    assert slow.headers == whole.headers


HOPELESS = [
    ("not HTTP", b"\x16\x03\x01 hello\r\n\r\n", Reason.BAD_RESPONSE),
    ("HTTP/0.9", b"<html>hello</html>", Reason.BAD_RESPONSE),
    ("no status", b"HTTP/1.1 OK\r\n\r\n", Reason.BAD_RESPONSE),
    ("status of two digits", b"HTTP/1.1 20 OK\r\n\r\n", Reason.BAD_RESPONSE),
    ("status of four digits", b"HTTP/1.1 2000 OK\r\n\r\n", Reason.BAD_RESPONSE),
    ("switches protocols", b"HTTP/1.1 101 Switching Protocols\r\n\r\n", Reason.BAD_RESPONSE),
    ("endless head", OK + b"X: " + b"y" * MAX_HEAD_BYTES + b"\r\n\r\n", Reason.HEADER_TOO_LARGE),
    ("endless 1xx", b"HTTP/1.1 100 Continue\r\n\r\n" * 3000, Reason.HEADER_TOO_LARGE),
    ("endless blank lines", b"\r\n" * 40_000, Reason.HEADER_TOO_LARGE),
    ("nothing", b"", Reason.DISCONNECTED),
    ("half a head", OK + b"Content-Ty", Reason.DISCONNECTED),
]


@pytest.mark.parametrize(("wire", "reason"), [row[1:] for row in HOPELESS], ids=[row[0] for row in HOPELESS])
def test_hopeless_answers_have_one_reason(wire: bytes, reason: Reason) -> None:
    """What cannot be read fails with its word, whole or in pieces."""
    for step in (len(wire) or 1, 1000, 3):
        reader = ResponseReader()
        with pytest.raises(FetchError) as failed:
            for at in range(0, len(wire), step):
                reader.feed(wire[at : at + step])
            reader.eof()
        assert failed.value.reason == reason
        assert len(reader.head_bytes) <= MAX_HEAD_BYTES


def test_head_is_kept_byte_for_byte() -> None:
    """Order, case, duplicates, blanks, folds and Latin-1 stay; 1xx answers do not."""
    head = b"HTTP/1.1  200  Fine \r\nB: 1\r\nb:\t2 \r\nA : K\xf6ln\r\n folded\r\nno colon\r\nContent-Length: 0\r\n\r\n"
    reader = read(b"HTTP/1.1 103 Hint\r\n\r\n" + head)
    assert reader.head_bytes == head
    assert reader.headers == {b"B": [b"1", b"2"], b"A": [b"K\xf6ln folded"], b"Content-Length": [b"0"]}
    assert [*reader.headers] == [b"B", b"A", b"Content-Length"]


def test_head_and_connect_have_no_body() -> None:
    """RFC 9112 6.3: HEAD never has a body, nor a CONNECT that succeeded."""
    assert read(OK + b"Content-Length: 99\r\n\r\n", "HEAD", eof=False).reusable
    tunnel = read(OK + b"Transfer-Encoding: chunked\r\n\r\n", "CONNECT", eof=False)
    assert tunnel.done
    assert not tunnel.body


@pytest.mark.parametrize("framing", [b"", b"Content-Length: 11\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_body_limit_cuts_and_marks(framing: bytes) -> None:
    """The limit holds for every framing: ten bytes stay, and exactly ten are not cut."""
    body = b"b\r\n0123456789X\r\n" if b"chunked" in framing else b"0123456789X"
    reader = read(OK + framing + b"\r\n" + body, max_body_bytes=10, eof=False)
    assert reader.done
    assert (reader.body, reader.truncated, reader.reusable) == (b"0123456789", "length", False)
    whole = read(OK + b"Content-Length: 10\r\n\r\n0123456789", max_body_bytes=10)
    assert (whole.truncated, whole.reusable) == (None, True)


def test_cut_keeps_what_came() -> None:
    """A timeout after the head keeps the part that came."""
    reader = read(OK + b"Content-Length: 9\r\n\r\nhalf", eof=False)
    reader.cut("time")
    assert (reader.done, reader.body, reader.truncated, reader.reusable) == (True, b"half", "time", False)


def test_cut_after_the_last_chunk_is_no_truncation() -> None:
    """A server that never sends the final CRLF has sent the whole body all the same."""
    reader = read(CHUNKED + b"4\r\nbody\r\n0\r\n", eof=False)
    assert not reader.done
    reader.cut("time")
    assert (reader.body, reader.truncated, reader.reusable) == (b"body", None, False)


def test_keep_alive_promise() -> None:
    """The server's own timeout is read, so that we can hang up first."""
    reader = read(OK + b"Keep-Alive: timeout=5, max=100\r\nContent-Length: 0\r\n\r\n")
    assert reader.keepalive_seconds == 5.0


def test_bytes_after_the_answer_forbid_reuse() -> None:
    """A second answer nobody asked for means that framing cannot be trusted."""
    reader = read(OK + b"Content-Length: 0\r\n\r\n")
    reader.feed(OK)
    assert not reader.reusable


# Properties

_token = st.text("abcdefghijklmnopqrstuvwxyzABC-0123456789", min_size=1, max_size=12).map(str.encode)
_value = st.text("abc DEF;=/*,.\"'0123456789\xe4\xf6", max_size=30).map(lambda text: text.strip().encode("latin-1"))
_reserved = (b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"upgrade")
_headers = st.lists(st.tuples(_token.filter(lambda name: name.lower() not in _reserved), _value), max_size=6)


@st.composite
def well_formed(draw: Any) -> tuple[bytes, str]:
    """A well-formed answer and the method it is for."""
    method = draw(st.sampled_from(["GET", "HEAD", "POST"]))
    status = draw(st.sampled_from([200, 204, 206, 301, 304, 404, 429, 503]))
    version = draw(st.sampled_from([b"1.1", b"1.1", b"1.0"]))
    lines = [b"HTTP/%b %d %b" % (version, status, draw(st.sampled_from([b"OK", b"", b"Not So Good"])))]
    lines += [b"%b:%b%b" % (name, draw(st.sampled_from([b"", b" ", b"\t "])), value) for name, value in draw(_headers)]
    if draw(st.booleans()):
        lines.append(b"Connection: " + draw(st.sampled_from([b"close", b"keep-alive", b"x, Close"])))
    pieces = draw(st.lists(st.binary(min_size=1, max_size=40), max_size=4))
    body = b"".join(pieces)
    kinds = ["length", "close"] if version == b"1.0" else ["length", "close", "chunked"]
    kind = draw(st.sampled_from(kinds))
    if kind == "length":
        lines.append(b"Content-Length: %d" % len(body))
    elif kind == "chunked":
        lines.append(b"Transfer-Encoding: chunked")
        end = draw(st.sampled_from([b"", b"X-Trailer: yes\r\n"]))
        body = b"".join(b"%x%b\r\n%b\r\n" % (len(p), draw(st.sampled_from([b"", b";q=1"])), p) for p in pieces)
        body += b"0\r\n" + end + b"\r\n"
    if method == "HEAD" or status in (204, 304):
        body = b""
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"]))
    return interim + b"\r\n".join(lines) + b"\r\n\r\n" + body, method


def by_h11(wire: bytes, method: str) -> tuple[int, dict[bytes, list[bytes]], bytes, bool]:
    """Status, headers, body and "may be used again" in h11's eyes."""
    client = h11.Connection(h11.CLIENT)
    headers = [("Host", "example.com")] + ([("Content-Length", "0")] if method == "POST" else [])
    client.send(h11.Request(method=method, target="/", headers=headers))
    client.send(h11.EndOfMessage())
    client.receive_data(wire)
    status, body, fields = 0, b"", dict[bytes, list[bytes]]()
    told_end = False
    while True:
        event = client.next_event()
        if event is h11.NEED_DATA:
            assert not told_end
            client.receive_data(b"")
            told_end = True
        elif isinstance(event, h11.Response):
            status = event.status_code
            for name, value in event.headers:
                fields.setdefault(name.title(), []).append(value)
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            both_done = client.their_state is h11.DONE and client.our_state is h11.DONE
            return status, fields, body, both_done and not told_end


@given(well_formed(), st.data())
def test_h11_agrees_however_the_bytes_are_split(answer: tuple[bytes, str], data: st.DataObject) -> None:
    """On well-formed answers we read what h11 reads, for any split of the bytes."""
    wire, method = answer
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=6)))
    reader = ResponseReader(method)
    for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        if start < end:
            reader.feed(wire[start:end])
    if not reader.done:
        reader.eof()
    status, fields, body, reusable = by_h11(wire, method)
    assert (reader.status, reader.headers, reader.body, reader.truncated) == (status, fields, body, None)
    if b"HTTP/1.0" not in wire:  # h11 never keeps an HTTP/1.0 connection, we do when the server says so
        assert reader.reusable == reusable


_fragments = st.sampled_from(
    [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 C\r\n\r\n", b"HTTP/1.0 404\n", b"Content-Length: 5\r\n", b"\r\n", b"\n",
     b"\r", b"Transfer-Encoding: chunked\r\n", b"Content-Length:", b"5\r\n", b"hello", b"0\r\n", b"ffffffffffff\r\n",
     b" fold\r\n", b"Connection: close\r\n", b"Keep-Alive: timeout=9\r\n", b";", b":", b"\x00\xff", b"HTTP/"]
)  # fmt: skip
_junk = st.one_of(
    st.lists(st.one_of(_fragments, st.binary(max_size=8)), max_size=14).map(b"".join),
    st.lists(_fragments, max_size=10).map(lambda parts: b"HTTP/1.1 200 OK\r\n" + b"".join(parts)),
)


def outcome(wire: bytes, cuts: list[int]) -> tuple[Any, ...]:
    """All that the reader says of a wire that was split at ``cuts``; asserts what it may raise."""
    reader = ResponseReader(max_body_bytes=12, max_head_bytes=200)
    try:
        for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
            if reader.feed(wire[start:end]):
                return (reader.status, reader.headers, reader.head_bytes, reader.body, reader.truncated)
        reader.eof()
    except FetchError as error:
        assert error.reason in (Reason.BAD_RESPONSE, Reason.HEADER_TOO_LARGE, Reason.DISCONNECTED)
        return (error.reason,)
    return (reader.status, reader.headers, reader.head_bytes, reader.body, reader.truncated)


@given(_junk, st.data())
def test_junk_raises_nothing_else_and_reads_alike_in_any_split(wire: bytes, data: st.DataObject) -> None:
    """Whatever comes, only documented errors, bounded results, and the same ones for any split."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=8)))
    whole = outcome(wire, [])
    assert whole == outcome(wire, cuts)
    if len(whole) > 1:
        assert len(whole[3]) <= 12
