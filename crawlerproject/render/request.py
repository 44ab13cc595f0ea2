"""The request for a rendered page, from the shell or from any spider."""

from __future__ import annotations

from scrapy import Request


def rendered(url: str) -> Request:
    """A request whose answer is the page as the browser shows it; ``response.meta["rendered"]`` tells what it took."""
    return Request(url, meta={"render": True, "seed": True}, dont_filter=True)
