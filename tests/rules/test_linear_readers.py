"""What reads a stranger's bytes takes time in proportion to them: whole readers, much of one thing each."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import settings

from crawlerproject.fetch.http1 import MAX_HEAD_BYTES, ResponseReader
from crawlerproject.rules.archive.http_messages import header_pairs, payload_type, stored_head
from crawlerproject.rules.feeds.feeds import is_feed, link_header, read_feed, read_sitemap
from crawlerproject.rules.page.body import in_utf8
from crawlerproject.rules.page.extract import main_text, read_page
from crawlerproject.rules.page.page import page_robots, read_html, refresh_target
from crawlerproject.rules.politeness.pauses import retry_after_seconds
from crawlerproject.rules.rendering.thin_pages import wall
from crawlerproject.rules.robots.policy import parse_robots
from crawlerproject.rules.traps.template_yield import template_of
from crawlerproject.rules.url.refused_urls import Exclusion, trap
from crawlerproject.rules.url.urls import Base, encode_query, parse
from crawlerproject.rules.web_encodings import xml_encoding
from tests.spending import bounded
from tests.web.unread_pages import triage

#: `make hunt` tries half a megabyte.
SIZE = 500_000 if settings.get_current_profile_name() == "hunt" else 100_000
#: CPU seconds of one reader for SIZE bytes: the slowest of ours takes a tenth of it on a busy machine, a square of
#: half a megabyte minutes, one of a fifth of that some seconds.
MOST_SECONDS = 6e-6 * SIZE
#: What is nested is as large on either occasion.
NESTED_SECONDS = 3.0

URL = "http://a.test/x/"
SCRIPTED = b"<!doctype html><script>x</script><body>"


def _page(body: bytes) -> None:
    read_html(body, url=URL, content_type="text/html", x_robots=[], token="x")


def _head(body: bytes, line: bytes) -> bytes:
    """A head as large as one may be: the body's text where ``line`` has %b."""
    return b"HTTP/1.1 200 OK\r\n" + (line % body)[: MAX_HEAD_BYTES - 100] + b"\r\n\r\n"


def _refused(url: str) -> None:
    with suppress(ValueError):
        parse(url)


READERS: dict[str, Callable[[bytes], object]] = {
    "page": _page,
    "page with a script": lambda body: _page(SCRIPTED + body),
    "page in its own encoding": lambda body: read_html(
        body, url=URL, content_type="text/html; charset=gb18030", x_robots=[body.decode("latin-1")], token="x"
    ),
    "triage": lambda body: triage(SCRIPTED + body, "text/html"),
    "text of a page": lambda body: read_page(body, url=URL, content_type="text/html", structured=True),
    "article of a page": lambda body: main_text(body, "text/html"),
    "wall": lambda body: wall(200, {"cf-mitigated": body.decode("latin-1")}, body[:65_536]),
    "sitemap": lambda body: read_sitemap(b"<?xml version='1.0'?><urlset>" + body),
    "sitemap as text": lambda body: read_sitemap(b"http://a.test/\n" + body),
    "sitemap, compressed": lambda body: read_sitemap(gzip.compress(b"<urlset>" + 4 * body, 1)),
    "feed": lambda body: read_feed(b"<rss><channel>" + body),
    "JSON feed": lambda body: read_feed(b"{" + body),
    "feed or not": lambda body: is_feed(body.decode("latin-1"), body),
    "robots.txt": lambda body: parse_robots(body, "x").allowed("/" + body.decode("latin-1")),
    "robots.txt, one rule": lambda body: parse_robots(b"User-agent: *\nDisallow: /" + body, "x").allowed("/a/b"),
    "robots.txt, one path": lambda body: parse_robots(b"User-agent: *\nDisallow: /*a*b\n", "x").allowed(
        URL + body.decode("latin-1")
    ),
    "page robots": lambda body: page_robots([("robots", body.decode("latin-1"))], [body.decode("latin-1")], "x"),
    "encoding": lambda body: in_utf8(body, None),
    "encoding of a header": lambda body: in_utf8(body, "text/html; " + body.decode("latin-1")),
    "refresh": lambda body: refresh_target("0; url" + body.decode("latin-1")),
    "refresh, its number": lambda body: refresh_target("0" + body.decode("latin-1") + "x"),
    "address": lambda body: _refused("http://a.test/" + body.decode("latin-1")),
    "address with a query": lambda body: _refused("http://a.test/?" + body.decode("latin-1")),
    "address with a long host": lambda body: _refused(f"http://{body.decode('latin-1')}/"),
    "link": lambda body: Base(URL, "windows-1252").join(body.decode("latin-1")),
    "query in its encoding": lambda body: encode_query("?" + body.decode("latin-1"), "windows-1252"),
    "encoding of XML": lambda body: xml_encoding(b"<?xml " + body),
    "template": lambda body: template_of("http://a.test/" + body.decode("latin-1")),
    "template of a query": lambda body: template_of("http://a.test/?" + body.decode("latin-1")),
    "shape": lambda body: trap("/" + body.decode("latin-1"), "a.test"),
    "exclusion": lambda body: Exclusion({"a.test": 1}).excludes(body.decode("latin-1")),
    "payload type": payload_type,
    "Retry-After": lambda body: retry_after_seconds(body.decode("latin-1")[:MAX_HEAD_BYTES], 0.0, 9.0),
    "Link": lambda body: link_header(["<" + body.decode("latin-1")]),
    "head": lambda body: ResponseReader().feed(_head(body.replace(b"\n", b" "), b"Content-Type: %b")),
    "head of many headers": lambda body: ResponseReader().feed(_head((body[:16].strip() + b": a\n") * 3_000, b"%b")),
    "stored head": lambda body: header_pairs(
        stored_head(_head(body, b"Content-Length: %b"), chunked=True, body_bytes=1)
    ),
}  # fmt: skip
UNITS = [
    b"<a href=x>", b"<div>", b"<div id=app>", b"<noscript>", b"<a ", b"a=b ", b"<!--", b"<script>", b"&amp", b"%", b"/",
    b"?", b"../", b" ", b"\r\n", b"\t", b"0", b"a", b"A1", b"\x00", b"\xff", b"\xe4\xb8\x96", b"<", b'"', b"<loc>a",
    b"<item>", b"<![CDATA[", b'{"a":', b"[", b"http://a/\n", b"User-agent: *\n", b"Disallow: /*a\n", b"*", b":", b",",
    b";", b"charset=", b"<b>", b"<form>", b"javascript ", b"@", b"xn--", b";jsessionid=a", b"&a=1", b"%41", b"a.",
    b"\n a",
]  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_much_of_one_thing(reader: str) -> None:
    """Each unit, again and again, costs less than the bound."""
    for unit in UNITS:
        with bounded(MOST_SECONDS):
            READERS[reader](unit * (SIZE // len(unit)))


@pytest.mark.parametrize(
    "opened",
    [b"<noscript>", b"<div id=app>", b"<my-app>", b"<a href=/x><object>", b"<a href=/x><marquee>", b"<button>"],
)
@pytest.mark.parametrize("reader", ["page", "triage", "text of a page"])
def test_elements_within_each_other_around_a_long_text(reader: str, opened: bytes) -> None:
    """What holds all that is in it is not read once for each of three thousand."""
    with bounded(NESTED_SECONDS):
        READERS[reader](SCRIPTED + opened * 3_000 + b"word " * 80_000)


def test_folded_headers() -> None:
    """A head of nothing but folds is put together once, not once a fold."""
    head = b"HTTP/1.1 200 OK\r\nA: b\r\n" + b" c\r\n" * ((MAX_HEAD_BYTES - 100) // 4) + b"\r\n"
    with bounded(NESTED_SECONDS):
        for _ in range(20):
            reader = ResponseReader()
            reader.feed(head)
            assert len(reader.headers[b"A"][0]) > 10_000
