"""Requests for rendered pages, for the shell and for any spider."""

from __future__ import annotations

from scrapy import Request


def rendered(url: str) -> Request:
    """A request for the page as its scripts leave it; ``response.meta["rendered"]`` is its ``Rendered``."""
    return Request(url, meta={"render": True, "seed": True}, dont_filter=True)
