"""The bytes of a request: what is sent, in which order, and what never is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request

from crawlerproject.errors import FetchError
from crawlerproject.fetch.http1 import RequestWriter, parse_target
from crawlerproject.reasons import Reason

WRITER = RequestWriter("Test/1.0 (+https://example.com/; a@example.com)")


def write(request: Request) -> bytes:
    """The request as it is sent to the site itself."""
    return WRITER.write(request.method, parse_target(request.url), request.headers, request.body)


def test_plain_request_byte_for_byte() -> None:
    """Host first, User-Agent, Accept, and only the codings that archives can undo; no Content-Length."""
    assert write(Request("https://example.com:443/a?b=c#d")) == (
        b"GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nUser-Agent: Test/1.0 (+https://example.com/; a@example.com)\r\n"
        b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
        b"Accept-Encoding: gzip, deflate, br\r\n\r\n"
    )


def test_own_headers_come_as_given_and_win() -> None:
    """The request's User-Agent wins, repeated headers stay repeated; framing headers and zstd are ours to refuse."""
    request = Request(
        "http://example.com:8080/",
        headers={
            "X-Two": ["1", "2"], "User-Agent": "Mine", "Host": "evil", "Content-Length": "5",
            "Transfer-Encoding": "chunked", "Accept-Encoding": "zstd", "Proxy-Authorization": "Basic secret",
        },
    )  # fmt: skip
    assert write(request) == (
        b"GET / HTTP/1.1\r\nHost: example.com:8080\r\nX-Two: 1\r\nX-Two: 2\r\nUser-Agent: Mine\r\n"
        b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
        b"Accept-Encoding: gzip, deflate, br\r\n\r\n"
    )


def test_post_carries_its_length() -> None:
    """A POST has Content-Length, also when empty; a GET has it where it has a body, which search servers ask for."""
    assert write(Request("http://a.example/", method="POST", body="x=1")).endswith(b"Content-Length: 3\r\n\r\nx=1")
    with_header = Request("http://a.example/", method="POST", body="x=1", headers={"X": "1"})
    assert write(with_header).endswith(b"Content-Length: 3\r\n\r\nx=1")
    assert write(Request("http://a.example/", method="POST")).endswith(b"Content-Length: 0\r\n\r\n")
    assert write(Request("http://a.example/", body="x=1")).endswith(b"Content-Length: 3\r\n\r\nx=1")
    assert write(Request("http://a.example/", body="x=1", headers={"X": "1"})).endswith(b"3\r\n\r\nx=1")
    assert b"Content-Length" not in write(Request("http://a.example/"))


def test_what_is_accepted_may_be_the_requests_alone_to_say() -> None:
    """Its Accept-Encoding is sent, and without one there is none: Scrapy's middleware above undoes what comes."""
    target = parse_target("http://a.example/")
    for own, lines in (({}, b""), ({b"Accept-Encoding": [b"zstd"]}, b"Accept-Encoding: zstd\r\n")):
        sent = WRITER.write("GET", target, own, b"", accepts=False)

        head = b"GET / HTTP/1.1\r\nHost: a.example\r\n" + lines
        assert sent == head + b"User-Agent: Test/1.0 (+https://example.com/; a@example.com)\r\n\r\n"


@given(st.text(max_size=30), st.text(max_size=30))
def test_nothing_breaks_out_of_its_line(path: str, value: str) -> None:
    """Whatever a verbatim address or a header holds, the head has the lines we wrote and no other."""
    url = "http://a.example/" + path.replace("#", "")
    request = Request("http://a.example/", headers={"X-Given": value.encode("utf-8", "replace")})
    try:
        target = parse_target(url.encode("utf-8", "replace").decode())
    except FetchError:
        return
    head = WRITER.write(request.method, target, request.headers, request.body)
    assert head.count(b"\r\n") == head.count(b"\n") == head.count(b"\r") == 7
    assert len(head.split(b"\r\n")[0].split(b" ")) == 3


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://Example.COM", ("http", "example.com", 80, b"example.com", b"/")),
        ("https://example.com?q", ("https", "example.com", 443, b"example.com", b"/?q")),
        ("http://u:p@example.com:81/x", ("http", "example.com", 81, b"example.com:81", b"/x")),
        ("http://[2001:DB8::1]:8/x", ("http", "2001:db8::1", 8, b"[2001:db8::1]:8", b"/x")),
        ("http://[::1]/x", ("http", "::1", 80, b"[::1]", b"/x")),
        ("http://bücher.example/ü", ("http", "xn--bcher-kva.example", 80, b"xn--bcher-kva.example", b"/%C3%BC")),
        ("http://straße.example/", ("http", "xn--strae-oqa.example", 80, b"xn--strae-oqa.example", b"/")),
    ],
)
def test_addresses_are_split(url: str, expected: tuple[str, str, int, bytes, bytes]) -> None:
    """Scheme, host, port, Host header, path and query."""
    assert parse_target(url) == expected


@pytest.mark.parametrize(
    "url", ["", "example.com", "ftp://a/", "http://", "http:///x", "http://a b/", "http://a:x/", "http://a:70000/", "http://a:0/"]
)  # fmt: skip
def test_what_is_no_address_has_a_reason(url: str) -> None:
    """A malformed address fails as INVALID_URL."""
    with pytest.raises(FetchError) as failed:
        parse_target(url)
    assert failed.value.reason == Reason.INVALID_URL
