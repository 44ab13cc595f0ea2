"""The download handler as Scrapy uses it, against real servers and proxies."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse
from scrapy.utils.test import get_crawler

from crawlerproject.errors import FetchError
from crawlerproject.fetch.handler import CrawlerDownloadHandler
from crawlerproject.fetch.wire import Wire
from crawlerproject.reasons import Reason
from tests.fetch.servers import PAGE, answering, make_ca, ok, pipe, run, server_tls, serving


@asynccontextmanager
async def handler(tmp_path: Path, **settings: Any) -> AsyncIterator[CrawlerDownloadHandler]:
    """A handler that may connect to loopback, where every *.test is."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 site.test proxy.test\n")
    defaults = {"FETCH_ALLOW_NETWORKS": ["127.0.0.0/8"], "FETCH_HOSTS_FILE": str(hosts), "CRAWLER_NAME": "Test"}
    made = CrawlerDownloadHandler.from_crawler(get_crawler(settings_dict=defaults | settings))
    try:
        yield made
    finally:
        await made.close()


async def failure(made: CrawlerDownloadHandler, request: Request) -> FetchError:
    """The error a request ends with."""
    with pytest.raises(FetchError) as failed:
        await made.download_request(request)
    return failed.value


def test_a_page(tmp_path: Path) -> None:
    """Everything Scrapy asks of a response, and the wire in the request's meta."""

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
            wire: Wire = request.meta["wire"]
            assert wire.request_bytes == server.requests[0]
            assert wire.request_bytes.startswith(f"GET /a?b HTTP/1.1\r\nHost: site.test:{server.port}\r\n".encode())
            assert b"\r\nUser-Agent: Test/1.0" in wire.request_bytes
            again = request.replace(method="HEAD")
            assert (await made.download_request(again)).body == b""
            assert again.meta["wire"].head_bytes == wire.head_bytes

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
            wire: Wire = request.meta["wire"]
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
                assert f"truncated-{request.meta['wire'].truncated}" == flag
                assert len(request.meta["wire"].body) <= 1000

    run(main())


def test_failures_raise_fetch_errors_with_the_wire(tmp_path: Path) -> None:
    """What was sent and received before the failure is at hand; a former try's wire is not."""

    async def main() -> None:
        async with handler(tmp_path) as made, answering(b"junk\r\n\r\n", close=True) as server:
            request = Request(f"http://site.test:{server.port}/", meta={"wire": "old"})
            error = await failure(made, request)
            assert error.reason == Reason.BAD_RESPONSE
            assert error.wire is request.meta["wire"]
            assert request.meta["wire"].head_bytes == b"junk\r\n\r\n"
            nowhere = Request("http://site.test:1/", meta={"wire": "old"})
            assert (await failure(made, nowhere)).reason == Reason.CONNECT_REFUSED
            assert "wire" not in nowhere.meta

    run(main())


def test_found_errors_are_raised_at_once(tmp_path: Path) -> None:
    """``fetch_error`` in the meta ends the request before anything is done."""

    async def main() -> None:
        async with handler(tmp_path) as made:
            known = FetchError(Reason.DNS_NOT_FOUND, "known before")
            assert await failure(made, Request("http://nowhere.test/", meta={"fetch_error": known})) is known

    run(main())


def test_private_addresses_are_refused(tmp_path: Path) -> None:
    """By name, by literal and by the address handed in; nothing is sent."""

    async def main() -> None:
        async with handler(tmp_path, FETCH_ALLOW_NETWORKS=[]) as made, answering(ok()) as server:
            for url, meta in (
                (f"http://site.test:{server.port}/", {}),
                (f"http://127.0.0.1:{server.port}/", {}),
                (f"http://[::ffff:127.0.0.1]:{server.port}/", {}),
                (f"http://example.com:{server.port}/", {"address": "127.0.0.1"}),
                ("http://127.0.0.1/", {"proxy": f"http://127.0.0.1:{server.port}"}),
                ("http://example.com/", {"proxy": f"http://127.0.0.1:{server.port}", "address": "10.0.0.1"}),
            ):
                assert (await failure(made, Request(url, meta=meta))).reason == Reason.PRIVATE_ADDRESS
            assert server.connections == 0

    run(main())


def test_address_in_meta_is_connected_to(tmp_path: Path) -> None:
    """The scheduler's address is used without a look-up; the Host header stays the name."""

    async def main() -> None:
        async with handler(tmp_path) as made, answering(ok()) as server:
            request = Request(f"http://unknown.test:{server.port}/", meta={"address": "127.0.0.1"})
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
            assert request.meta["wire"].protocols == ("http/1.1", "tls/1.3")

    run(main())


def test_plain_proxy(tmp_path: Path) -> None:
    """The absolute form goes to the proxy with its password, which the archive never sees."""

    async def main() -> None:
        async with handler(tmp_path) as made, answering(ok()) as proxy:
            meta = {"proxy": f"http://user:secret@proxy.test:{proxy.port}"}
            request = Request("http://far.example/a?b", meta=meta)
            assert (await made.download_request(request)).body == PAGE
            assert proxy.requests[0].startswith(b"GET http://far.example/a?b HTTP/1.1\r\nHost: far.example\r\n")
            assert b"\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n" in proxy.requests[0]
            wire: Wire = request.meta["wire"]
            assert b"Proxy-Authorization" not in wire.request_bytes
            assert wire.request_bytes.startswith(b"GET http://far.example/a?b HTTP/1.1\r\n")
            assert (wire.ip, wire.port) == ("127.0.0.1", proxy.port)

    run(main())


def test_environment_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """http_proxy is followed, and meta proxy None steps around it."""

    async def main() -> None:
        async with answering(ok(b"by proxy")) as proxy, answering(ok(b"direct")) as server:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
            monkeypatch.setenv("no_proxy", "")
            async with handler(tmp_path) as made:
                url = f"http://site.test:{server.port}/"
                assert (await made.download_request(Request(url))).body == b"by proxy"
                assert (await made.download_request(Request(url, meta={"proxy": None}))).body == b"direct"

    run(main())


def test_connect_proxy(tmp_path: Path) -> None:
    """https goes through CONNECT, verified end to end; a second page reuses the tunnel."""
    ca = make_ca(tmp_path)
    heads: list[bytes] = []

    async def main() -> None:
        async with answering(ok(), tls=server_tls(tmp_path, ca, "far.test")) as site:

            async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                heads.append(await reader.readuntil(b"\r\n\r\n"))
                there, back = await asyncio.open_connection("127.0.0.1", site.port)
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await asyncio.gather(pipe(reader, back), pipe(there, writer))

            async with handler(tmp_path, FETCH_CA_FILE=ca[2]) as made, serving(talk) as proxy:
                meta = {"proxy": f"http://u:p@proxy.test:{proxy.port}"}
                for path in ("a", "b"):
                    request = Request(f"https://far.test/{path}", meta=meta)
                    assert (await made.download_request(request)).body == PAGE
                wire: Wire = request.meta["wire"]
                assert (wire.reused, wire.protocols) == (True, ("http/1.1", "tls/1.3"))
                assert wire.request_bytes.startswith(b"GET /b HTTP/1.1\r\nHost: far.test\r\n")
                assert heads == [
                    b"CONNECT far.test:443 HTTP/1.1\r\nHost: far.test:443\r\nProxy-Authorization: Basic dTpw\r\n\r\n"
                ]
                assert not any(b"Proxy-Auth" in sent for sent in site.requests)
                wrong = await failure(made, Request("https://other.test/", meta=meta))
                assert wrong.reason == Reason.TLS_CERTIFICATE
                assert wrong.detail.startswith("wrong-name")

    run(main())


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 Login\r\nContent-Length: 0\r\n\r\n", b"junk\r\n", b""])
def test_proxy_that_refuses(tmp_path: Path, answer: bytes) -> None:
    """A proxy's refusal is the proxy's failure, not the site's."""

    async def main() -> None:
        async with handler(tmp_path) as made, answering(answer, close=True) as proxy:
            meta = {"proxy": f"http://127.0.0.1:{proxy.port}"}
            assert (await failure(made, Request("https://far.test/", meta=meta))).reason == Reason.PROXY_FAILED
            for url in ("http://far.test/", "https://far.test/"):
                dead = await failure(made, Request(url, meta={"proxy": "http://127.0.0.1:1"}))
                assert dead.reason == Reason.PROXY_FAILED

    run(main())


def test_http_and_https_share_one_pool(tmp_path: Path) -> None:
    """Scrapy makes a handler a scheme; the connections, the cap and the TLS context are one."""

    async def main() -> None:
        async with handler(tmp_path) as made:
            other = CrawlerDownloadHandler.from_crawler(made.crawler)
            assert other._pool is made._pool
            await other.close()

    run(main())
