"""Well-formed responses and pages, as bytes."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable
from html import escape

from tests.web.graph import Answer

WORDS = (  # noqa: SIM905 - a list literal of this would be three times as long
    "river stone lantern orchard winter copper garden harbour meadow thunder violet anchor basket candle dragon ember "
    "feather glacier hollow island jasmine kettle ladder marble needle ocean pepper quarry ribbon saddle temple "
    "umbrella valley willow yonder zephyr market village morning evening silver golden quiet narrow distant gentle"
).split()
REST_DATE = b"@the moment after the rest@"  # where the server puts an HTTP date
REASONS = {200: "OK", 204: "No Content", 301: "Moved Permanently", 302: "Found", 303: "See Other",
           307: "Temporary Redirect", 308: "Permanent Redirect", 403: "Forbidden", 404: "Not Found", 410: "Gone",
           429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable"}  # fmt: skip


def text(seed: str, words: int = 120) -> str:
    """``words`` words in sentences; the same seed gives the same text."""
    chance = random.Random(seed)
    sentences = (" ".join(chance.choices(WORDS, k=12)).capitalize() + "." for _ in range(max(1, words // 12)))
    return " ".join(sentences)


def page_html(title: str, links: Iterable[str] = (), *, body: str | None = None, head: str = "") -> bytes:
    """A small HTML page; ``links`` become anchors, ``head`` goes into its head as it is."""
    anchors = "\n".join(f'<li><a href="{escape(link)}">{escape(link)}</a></li>' for link in links)
    content = f"<p>{text(title)}</p>" if body is None else body
    return (
        f"<!DOCTYPE html>\n<html><head><title>{escape(title)}</title>{head}</head>\n"
        f"<body><h1>{escape(title)}</h1>\n{content}\n<ul>\n{anchors}\n</ul></body></html>\n"
    ).encode()


def answer(
    body: bytes, *, status: int = 200, kind: str = "text/html; charset=utf-8", headers: Iterable[str] = (),
    wait_seconds: float = 0.0, rest_seconds: float = 0.0,
) -> Answer:  # fmt: skip
    """A correct HTTP/1.1 response with a Content-Length; ``headers`` are further lines."""
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Other')}", "Server: synthetic"]
    if status != 204:
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    head = "\r\n".join([*lines, *headers]).encode("latin-1") + b"\r\n\r\n"
    return Answer(status, (head + body,), wait_seconds=wait_seconds, rest_seconds=rest_seconds)


def redirect(location: str, status: int = 302) -> Answer:
    """A redirect with a short body."""
    return answer(b"moved\n", status=status, kind="text/plain", headers=[f"Location: {location}"])


def refusal(status: int, retry_after: str, rest_seconds: float) -> Answer:
    """A 429 or 503 that says for how long the host wants to be left alone."""
    headers = [f"Retry-After: {retry_after}"]
    return answer(b"later\n", status=status, kind="text/plain", headers=headers, rest_seconds=rest_seconds)


def refusal_until(status: int, rest_seconds: float) -> Answer:
    """A 429 or 503 that names the moment from which it may be asked again."""
    made = refusal(status, REST_DATE.decode(), rest_seconds)
    return made._replace(dated=True)


def chunked(body: bytes, sizes: int = 100, gap_seconds: float = 0.0) -> Answer:
    """The body in chunks of ``sizes`` bytes, with an extension, a trailer and each in its own write."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
    cuts = [body[at : at + sizes] for at in range(0, len(body), sizes)]
    chunks = [b"%x;note=1\r\n%s\r\n" % (len(cut), cut) for cut in cuts]
    return Answer(200, (head, *chunks, b"0\r\nX-Trailer: yes\r\n\r\n"), gap_seconds=gap_seconds)


def until_close(body: bytes, version: str = "1.0") -> Answer:
    """No length at all: the end of the connection is the end of the body."""
    head = f"HTTP/{version} 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n".encode()
    return Answer(200, (head + body,), close=True)


def encoded(body: bytes, coding: str) -> Answer:
    """The body under a Content-Encoding: gzip, deflate (zlib), raw-deflate or br."""
    if coding == "br":
        import brotli  # only this one page needs it

        packed: bytes = brotli.compress(body)
    else:
        packer = zlib.compressobj(6, zlib.DEFLATED, {"gzip": 31, "deflate": 15, "raw-deflate": -15}[coding])
        packed = packer.compress(body) + packer.flush()
    name = "deflate" if coding == "raw-deflate" else coding
    return answer(packed, headers=[f"Content-Encoding: {name}", "Vary: Accept-Encoding"])


NOT_FOUND = answer(page_html("not found", body="<p>nothing here</p>"), status=404)
