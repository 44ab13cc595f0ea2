"""Requests as the scheduler makes them: with an exchange of their own."""

from __future__ import annotations

from typing import Any
from weakref import ref

from scrapy import Request

from crawlerproject.request_meta import META_KEY, Exchange, LeasedExchange


def told(request: Request, **fields: Any) -> Request:
    """The request, with these fields in its exchange."""
    request.meta[META_KEY] = Exchange(ref(request), **fields)
    return request


def under_lease(request: Request, lease: Any, **fields: Any) -> Request:
    """The request, as it is handed out for a lease."""
    request.meta[META_KEY] = LeasedExchange(ref(request), lease=lease, **fields)
    return request
