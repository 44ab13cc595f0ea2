"""What is read of a Scrapy response."""

from __future__ import annotations

from scrapy.http import Headers, Response

from crawlerproject.parse.response_page import header, html_facts


def test_a_headers_last_value_counts() -> None:
    """Names in title case, as Scrapy keeps them."""
    headers = Headers({"X-Y": ["one", "two"]})

    assert header(headers, b"X-Y") == "two"
    assert header(headers, b"Z") == ""


def test_a_page_is_read_with_what_its_headers_ask() -> None:
    """Each X-Robots-Tag counts beside the page's own meta elements."""
    headers = {"Content-Type": "text/html", "X-Robots-Tag": ["noindex", "noai"]}
    facts = html_facts(Response("http://a.test/", body=b"<a href=/1>1</a>", headers=headers), "text/html", "TestBot")

    assert ([link.url for link in facts.links], facts.noindex) == (["http://a.test/1"], True)
