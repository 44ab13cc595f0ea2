"""The download handler behind HTTP proxies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scrapy import Request

from crawlerproject.reasons import Reason
from tests.fetch.handlers import failure, handler, wire_of
from tests.fetch.servers import PAGE, answering, make_ca, ok, pipe, run, server_tls, serving


def test_plain_proxy(tmp_path: Path) -> None:
    """The absolute form goes to the proxy with its password, which the archive never sees."""

    async def main() -> None:
        async with handler(tmp_path) as made, answering(ok()) as proxy:
            meta = {"proxy": f"http://user:secret@proxy.test:{proxy.port}"}
            request = Request("http://far.example/a?b", meta=meta)
            assert (await made.download_request(request)).body == PAGE
            assert proxy.requests[0].startswith(b"GET http://far.example/a?b HTTP/1.1\r\nHost: far.example\r\n")
            assert b"\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n" in proxy.requests[0]
            wire = wire_of(request)
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
                wire = wire_of(request)
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
