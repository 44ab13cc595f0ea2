"""The lease that a request's meta names, for the middlewares that decide early."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

    from crawlerproject.frontier.lease import Lease


def lease_in(request: Request) -> Lease | None:
    """None without one, and where another spider's own word "lease" stands in its place."""
    lease: Lease | None = request.meta.get("lease")
    return lease if lease is None or hasattr(lease, "row") else None
