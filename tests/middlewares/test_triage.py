"""Triage outside a crawl: which pages would go to the browser."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from crawlerproject.middlewares.triage import TriageMiddleware
from tests.exchanges import under_lease

URL = "http://a.test/app"
SHELL = (
    b"<div id=root></div><noscript>You need to enable JavaScript</noscript><script src=/assets/index-abc.js></script>"
)


def test_outside_a_crawl_it_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """Only where a crawl would render: a page that was rendered, or leased, has no line."""
    middleware = TriageMiddleware("TestBot")
    html = {"Content-Type": "text/html"}
    with caplog.at_level(logging.INFO, "crawlerproject.middlewares.triage"):
        for meta in ({}, {"rendered": object()}):
            middleware.process_response(Request(URL, meta=meta), HtmlResponse(URL, body=SHELL, headers=html))
        leased = under_lease(Request(URL), SimpleNamespace())
        middleware.process_response(leased, HtmlResponse(URL, body=SHELL, headers=html))
        plain = Response(URL, body=b"{}", headers={"Content-Type": "application/json"})
        middleware.process_response(Request(URL), plain)

    said = [record.getMessage() for record in caplog.records if record.name == TriageMiddleware.__module__]
    assert [line.partition(": render")[0] for line in said] == [f"triage: {URL} would be rendered"]
