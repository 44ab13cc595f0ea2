"""What is read of a Scrapy response: a header, or the facts of an HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.rules.page.page import PageFacts, read_html

if TYPE_CHECKING:
    from scrapy.http import Headers, Response

REDIRECTS = frozenset({301, 302, 303, 307, 308})


def header(headers: Headers, name: bytes) -> str:
    """A header's last value as text; "" without one. ``name`` in title case, as Scrapy keeps names: "Etag".

    Past ``Headers.get``, which normalises the name at each of the dozen looks that a page takes.
    """
    values = dict.get(headers, name)
    return values[-1].decode("latin-1") if values else ""


def html_facts(response: Response, content_type: str | None, token: str) -> PageFacts:
    """Read an HTML response, which may take a second."""
    x_robots = [value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")]
    return read_html(response.body, url=response.url, content_type=content_type, x_robots=x_robots, token=token)
