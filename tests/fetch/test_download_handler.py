"""The download handler as Scrapy uses it, against real servers and proxies."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse

from crawlerproject.errors import FetchError, OperatorError
from crawlerproject.fetch.download_handler import CrawlerDownloadHandler, Proxies, Proxy, parse_proxy
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import exchange_of
from crawlerproject.rules.archive.http_messages import Wire
from tests.exchanges import told
from tests.fetch.handlers import failure, handler, wire_of
from tests.fetch.servers import PAGE, answering, make_ca, ok, run, server_tls


def test_a_page(tmp_path: Path) -> None:
    """Everything Scrapy asks of a response, and the wire in the request's exchange."""

    async def main() -> None:
        async with handler(tmp_path) as made, answering(ok(PAGE, b"X-Two: 1", b"x-two: 2")) as server:
            request = Request(f"http://site.test:{server.port}/a?b", headers={"Accept": "x/y"})
            response = await made.download_request(request)
            assert type(response) is HtmlResponse
            assert (response.status, response.body, response.url) == (200, PAGE, request.url)
            assert response.headers.getlist("X-Two") == [b"1", b"2"]
            assert (str(response.ip_address), response.protocol, response.flags) == ("127.0.0.1", "HTTP/1.1", [])
            assert response.css("title::text").get() == "a page"
            assert request.meta["download_latency"] > 0
            wire = wire_of(request)
            assert wire.request_bytes == server.requests[0]
            assert wire.request_bytes.startswith(f"GET /a?b HTTP/1.1\r\nHost: site.test:{server.port}\r\n".encode())
            assert b"\r\nUser-Agent: Test/1.0" in wire.request_bytes
            again = request.replace(method="HEAD")
            assert (await made.download_request(again)).body == b""
            assert wire_of(again).head_bytes == wire.head_bytes

    run(main())


def test_redirects_and_errors_are_answers(tmp_path: Path) -> None:
    """A 301 and a 503 come back as they are; nothing is followed or tried again."""

    async def main() -> None:
        for status in (301, 404, 429, 503, 999):
            wire = b"HTTP/1.1 %d X\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n" % status
            async with handler(tmp_path) as made, answering(wire) as server:
                response = await made.download_request(Request(f"http://site.test:{server.port}/"))
                assert response.status == status
                assert response.headers["Location"] == b"/other"
                assert len(server.requests) == 1

    run(main())


@pytest.mark.parametrize(
    ("content_type", "path", "cls"),
    [
        (b"text/html; charset=utf-8", "", HtmlResponse),
        (b"APPLICATION/XHTML+XML", "", HtmlResponse),
        (b"application/rss+xml", "", XmlResponse),
        (b"text/css", "", TextResponse),
        (b"application/json", "", JsonResponse),
        (b"image/png", "x.png", Response),
        (b"application/octet-stream", "x.html", HtmlResponse),
        (b"", "", HtmlResponse),
        (b"", "x.xml", XmlResponse),
        (b"\xff\xfe", "", HtmlResponse),
    ],
)
def test_response_classes(tmp_path: Path, content_type: bytes, path: str, cls: type[Response]) -> None:
    """By Content-Type, else as Scrapy guesses: name, then bytes."""

    async def main() -> None:
        wire = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(PAGE)
        wire += b"Content-Type: " + content_type + b"\r\n\r\n" if content_type else b"\r\n"
        body = b"\x89PNG\r\n\x1a\n" if cls is Response else PAGE
        wire = wire.replace(b"%d" % len(PAGE), b"%d" % len(body)) + body
        async with handler(tmp_path) as made, answering(wire) as server:
            assert type(await made.download_request(Request(f"http://site.test:{server.port}/{path}"))) is cls

    run(main())


def test_encoded_body_is_decoded_for_the_page_and_kept_for_the_archive(tmp_path: Path) -> None:
    """The response is plain, without Content-Encoding; the wire is what was sent."""
    packed = gzip.compress(PAGE)

    async def main() -> None:
        async with handler(tmp_path) as made, answering(ok(packed, b"Content-Encoding: gzip")) as server:
            request = Request(f"http://site.test:{server.port}/")
            response = await made.download_request(request)
            assert (response.body, response.flags, "Content-Encoding" in response.headers) == (PAGE, [], False)
            wire = wire_of(request)
            assert wire.body == packed
            assert b"Content-Encoding: gzip\r\n" in wire.head_bytes

    run(main())


@pytest.mark.parametrize(("coding", "flag"), [(b"gzip", "encoding-wrong"), (b"zstd", "encoding-unknown")])
def test_wrong_encoding_loses_nothing(tmp_path: Path, coding: bytes, flag: str) -> None:
    """A body that is not what its header says is kept as it is, flagged."""

    async def main() -> None:
        async with handler(tmp_path) as made, answering(ok(PAGE, b"Content-Encoding: " + coding)) as server:
            response = await made.download_request(Request(f"http://site.test:{server.port}/"))
            assert (response.body, response.flags) == (PAGE, [flag])
            assert ("Content-Encoding" in response.headers) == (flag == "encoding-unknown")

    run(main())


def test_truncation_is_flagged(tmp_path: Path) -> None:
    """A large body, a bomb and a broken line: cut, kept, marked in flags and wire."""
    bomb = gzip.compress(b"\0" * 9_000_000)

    async def main() -> None:
        for wire_bytes, flag, size in (
            (ok(b"x" * 5000), "truncated-length", 1000),
            (ok(bomb, b"Content-Encoding: gzip"), "truncated-length", 1000),
            (ok(PAGE)[:-9], "truncated-disconnect", len(PAGE) - 9),
        ):
            async with handler(tmp_path, FETCH_MAX_BYTES=1000) as made, answering(wire_bytes, close=True) as server:
                request = Request(f"http://site.test:{server.port}/")
                response = await made.download_request(request)
                assert flag in response.flags
                assert len(response.body) == size
                assert f"truncated-{wire_of(request).truncated}" == flag
                assert len(wire_of(request).body) <= 1000

    run(main())


def test_failures_raise_fetch_errors_with_the_wire(tmp_path: Path) -> None:
    """What was sent and received before the failure is at hand; a former try's wire is not."""

    async def main() -> None:
        async with handler(tmp_path) as made, answering(b"junk\r\n\r\n", close=True) as server:
            request = told(Request(f"http://site.test:{server.port}/"), wire=Wire())
            error = await failure(made, request)
            assert error.reason == Reason.BAD_RESPONSE
            assert error.wire is wire_of(request)
            assert wire_of(request).head_bytes == b"junk\r\n\r\n"
            nowhere = told(Request("http://site.test:2/"), wire=Wire())
            assert (await failure(made, nowhere)).reason == Reason.CONNECT_REFUSED
            assert exchange_of(nowhere).wire is None

    run(main())


def test_found_errors_are_raised_at_once(tmp_path: Path) -> None:
    """An error in the exchange ends the request before anything is done."""

    async def main() -> None:
        async with handler(tmp_path) as made:
            known = FetchError(Reason.DNS_NOT_FOUND, "known before")
            assert await failure(made, told(Request("http://nowhere.test/"), error=known)) is known

    run(main())


def test_private_addresses_are_refused(tmp_path: Path) -> None:
    """By name, by literal and by the address handed in; nothing is sent."""

    async def main() -> None:
        async with handler(tmp_path, FETCH_ALLOW_NETWORKS=[]) as made, answering(ok()) as server:
            for url, proxy, address in (
                (f"http://site.test:{server.port}/", None, ""),
                (f"http://127.0.0.1:{server.port}/", None, ""),
                (f"http://[::ffff:127.0.0.1]:{server.port}/", None, ""),
                (f"http://example.com:{server.port}/", None, "127.0.0.1"),
                ("http://127.0.0.1/", f"http://127.0.0.1:{server.port}", ""),
                ("http://example.com/", f"http://127.0.0.1:{server.port}", "10.0.0.1"),
            ):
                request = told(Request(url, meta={"proxy": proxy}), address=address)
                assert (await failure(made, request)).reason == Reason.PRIVATE_ADDRESS
            assert server.connections == 0

    run(main())


def test_the_address_in_the_exchange_is_connected_to(tmp_path: Path) -> None:
    """The scheduler's address is used without a look-up; the Host header stays the name."""

    async def main() -> None:
        async with handler(tmp_path) as made, answering(ok()) as server:
            request = told(Request(f"http://unknown.test:{server.port}/"), address="127.0.0.1")
            assert (await made.download_request(request)).status == 200
            assert b"\r\nHost: unknown.test" in server.requests[0]

    run(main())


def test_download_timeout_can_only_shorten(tmp_path: Path) -> None:
    """Scrapy's own meta key works."""

    async def main() -> None:
        async with handler(tmp_path) as made, answering(ok()[:-3]) as server:
            request = Request(f"http://site.test:{server.port}/", meta={"download_timeout": 0.3})
            assert (await made.download_request(request)).flags == ["truncated-time"]

    run(main())


def test_https(tmp_path: Path) -> None:
    """FETCH_CA_FILE is trusted, the facts are in the wire."""
    ca = make_ca(tmp_path)

    async def main() -> None:
        async with (
            handler(tmp_path, FETCH_CA_FILE=ca[2]) as made,
            answering(ok(), tls=server_tls(tmp_path, ca, "site.test")) as server,
        ):
            request = Request(f"https://site.test:{server.port}/")
            assert (await made.download_request(request)).body == PAGE
            assert wire_of(request).protocols == ("http/1.1", "tls/1.3")

    run(main())


def test_http_and_https_share_one_pool(tmp_path: Path) -> None:
    """Scrapy makes a handler a scheme; the connections, the cap and the TLS context are one."""

    async def main() -> None:
        async with handler(tmp_path) as made:
            other = CrawlerDownloadHandler.from_crawler(made.crawler)
            assert other._pool is made._pool
            await other.close()

    run(main())


ENVIRONMENT = {
    "http": "http://web.example:3128",
    "https": "http://u:p%40ss@tls.example",
    "no": "localhost,.inside.example",
}


def test_environment_is_followed() -> None:
    """http_proxy, https_proxy and no_proxy mean what they mean to curl."""
    proxies = Proxies(ENVIRONMENT)
    assert proxies.choose({}, "http", "a.example", 80) == Proxy("web.example", 3128, b"")
    assert proxies.choose({}, "https", "a.example", 443) == Proxy("tls.example", 1080, b"Basic dTpwQHNz")
    assert proxies.choose({}, "http", "localhost", 80) is None
    assert proxies.choose({}, "http", "x.inside.example", 80) is None
    assert Proxies({}).choose({}, "http", "a.example", 80) is None


def test_meta_wins() -> None:
    """A request's own proxy wins, and None means none."""
    proxies = Proxies(ENVIRONMENT)
    assert proxies.choose({"proxy": "http://own.example:1"}, "http", "localhost", 80) == Proxy("own.example", 1, b"")
    assert proxies.choose({"proxy": None}, "http", "a.example", 80) is None


@pytest.mark.parametrize("url", ["https://p.example:1", "socks5://p.example:1", "http://", "http://p.example:port"])
def test_other_proxies_are_refused(url: str) -> None:
    """Only http:// proxies are spoken to; the environment's are checked at start."""
    with pytest.raises(FetchError) as failed:
        parse_proxy(url)
    assert failed.value.reason == Reason.PROXY_FAILED
    with pytest.raises(OperatorError, match="http_proxy"):
        Proxies({"http": url})
